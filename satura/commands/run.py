"""`satura run`: compile a model and run it once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import satura
from satura.commands.terminal import print_json, print_table, progress
from satura.commands.values import with_values
from satura.pipeline.inputs import parse_sizes, random_inputs, read_inputs
from satura.pipeline.sizes import Dims
from satura.rewrite.errors import CallError
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.system.files import output_file
from satura.rewrite.types.tensor_type import Array


def run(
    model: Path,
    inputs: Path | None,
    output: Path | None,
    sizes: list[str],
    values: list[str],
    dims: Dims,
    threads: int | None,
    precision: str,
    cost: str,
    rules: RuleSet,
    verify: bool,
    json: bool,
) -> None:
    """Run `model` on the arrays of `inputs`; write the results to `output` and sum them up."""
    if inputs is not None and sizes:
        raise CallError("--size is for random inputs; the arrays of --inputs have their own sizes")
    arguments = None if inputs is None else read_inputs(inputs)
    with progress(f"running {model.name}") as phase:
        compiled = satura.compile(
            with_values(model, values),
            threads,
            precision,
            rules,
            verify,
            phase,
            dims=dims,
            cost=cost,
        )
        if arguments is None:
            arguments = random_inputs(compiled.source, parse_sizes(sizes))
        results = compiled.run(arguments)
    if output is not None:
        with output_file(output) as file:
            np.savez(file, allow_pickle=False, **results)
    summaries = {name: _summary(array) for name, array in results.items()}
    if json:
        print_json(summaries)
    else:
        header = ["output", "dtype", "shape", "min", "max", "mean"]
        rows = [[name, *map(_text, summary.values())] for name, summary in summaries.items()]
        print_table(f"outputs of {model.name}", header, rows)


def _summary(array: Array) -> dict[str, object]:
    """Dtype, shape, and the range and mean of the finite elements (None when there are none)."""
    wide = array.astype(np.float64).ravel()
    finite = wide[np.isfinite(wide)]
    measures = [float(f(finite)) if finite.size else None for f in (np.min, np.max, np.mean)]
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        **dict(zip(("min", "max", "mean"), measures, strict=True)),
    }


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)
