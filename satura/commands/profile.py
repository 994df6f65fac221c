"""`satura bench --profile`: per dispatch, what was predicted and what is measured."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace

import satura
from satura.commands.bench import case_of
from satura.commands.compiling import Compiling
from satura.commands.failures import results_of
from satura.commands.models import refuse_missing
from satura.commands.terminal import measured, print_json, print_line, print_table, progress
from satura.experiments.profile import Profile, profile
from satura.light import NAMES
from satura.pipeline.inputs import parse_sizes
from satura.pipeline.rates import cost_model
from satura.rewrite.program.interpreter import bind_sizes

_SHOWN = 40  # dispatches of a table


def profile_models(
    models: list[str], sizes: list[str], values: list[str], rounds: int, compiling: Compiling,
    json: bool,
) -> None:  # fmt: skip
    """Profile each model, or all light ones, compiled for the sizes of its arguments."""
    given, names = parse_sizes(sizes), models or NAMES
    refuse_missing(*models)
    cost_model(compiling.cost)  # where it is unknown, or not measured, no model needs to be tried

    def result(name: str) -> dict[str, object]:
        case = case_of(name, given, values, len(models) != 1)
        with progress(f"profiling {case.name}") as phase:
            dims = bind_sizes(satura.load(case.model), case.arguments)
            compiled = replace(compiling, dims=dims).compile(case.model, phase)
            found = profile(compiled, case.arguments, rounds)
        if not json:
            print_profile(f"{case.name}{case.sizes and f' at {case.sizes} (see --size)'}", found)
        return {"model": case.name, "threads": compiled.threads, **as_data(found)}

    results = results_of(names, result)
    if json:
        print_json({"models": results})
    if len(results) < len(names):
        sys.exit(1)


def as_data(found: Profile) -> dict[str, object]:
    """A profile as JSON has it."""
    return {
        "peak-gflops": found.roofline.peak / 1e9,
        "bandwidth-gbs": found.roofline.bandwidth / 1e9,
        "cached-gbs": found.roofline.cached / 1e9,
        "median-error": found.errors,
        "spearman": found.spearman,
        "counted": dict(found.counted),
        "expected": dict(found.expected),
        "dispatches": [
            {**asdict(each), "gflops": each.flops / each.seconds / 1e9,
             "gbs": each.bytes / each.seconds / 1e9}
            for each in found.dispatches
        ],
    }  # fmt: skip


def print_profile(name: str, found: Profile) -> None:
    """The slowest dispatches in a table, then what concerns all of them."""
    total = sum(each.seconds for each in found.dispatches)
    slowest = sorted(found.dispatches, key=lambda each: -each.seconds)[:_SHOWN]
    rows = [
        [
            str(each.number), each.form, f"{each.seconds * 1e6:.1f}",
            f"{each.seconds / total:.1%}", f"{each.predicted * 1e6:.1f}",
            f"{each.predicted / each.seconds:.2f}", f"{each.flops / each.seconds / 1e9:.1f}",
            f"{each.bytes / each.seconds / 1e9:.1f}", f"{each.share:.0%}", each.text,
        ]
        for each in slowest
    ]  # fmt: skip
    header = ["dispatch", "form", "us", "share", "predicted us", "ratio", "GFLOP/s", "GB/s",
              "of limit", "what"]  # fmt: skip
    shown = f"{len(slowest)} slowest of {len(found.dispatches)} launches"
    print_table(f"{name}: {measured(total * 1e3)} ms, {shown}", header, rows)
    limits = found.roofline
    print_line(
        f"limits measured here: {limits.peak / 1e9:.0f} GFLOP/s, {limits.bandwidth / 1e9:.0f} GB/s,"
        f" {limits.cached / 1e9:.0f} GB/s in caches"
    )
    predicted = sum(each.predicted for each in found.dispatches)
    errors = ", ".join(f"{form} {error:.0%}" for form, error in found.errors.items())
    print_line(
        f"predicted {measured(predicted * 1e3)} ms; median error: {errors}; rank correlation"
        f" {found.spearman:.3f}"
    )
    for key, count in found.counted.items():
        expected = found.expected[key]
        note = "" if count == expected else f", but the schedule says {expected}"
        print_line(f"{key} at run time: {count}{note}")
