"""`satura calibrate`: measure this machine's rates and keep them for `--cost calibrated`."""

from __future__ import annotations

from satura.commands.terminal import print_json, print_line, print_table, progress
from satura.experiments.calibration import calibrate
from satura.pipeline.rates import check_cache, cost_model, store_rates


def calibrate_machine(seed: int, json: bool) -> None:
    """Fit the rates, keep them, and print the errors on the dispatches that are held out."""
    check_cache()
    with progress("calibrating", is_long=True) as phase:
        found = calibrate(cost_model(), seed, phase)
    store_rates(found.model.rates)
    if json:
        print_json(
            {"samples": len(found.samples), "median-error": found.errors,
             "default-median-error": found.before, "rates": dict(found.model.rates)}
        )  # fmt: skip
        return
    rows = [
        [form, f"{found.before[form]:.0%}", f"{error:.0%}"] for form, error in found.errors.items()
    ]
    title = f"median error on held-out dispatches, of {len(found.samples)} timed"
    print_table(title, ["form", "default", "calibrated"], rows)
    print_line("kept; use them with satura.compile(model, cost='calibrated')")
