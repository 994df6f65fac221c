"""`satura run`: run a model once, compiled now or before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import satura
from satura.artifact.opened import Opened
from satura.backend.run.calls import Runnable
from satura.commands.terminal import print_json, print_table, progress
from satura.pipeline.inputs import (
    full_sizes,
    parse_sizes,
    random_arguments,
    read_input,
    read_inputs,
    refuse_twice,
    sizes_text,
    types_at,
)
from satura.rewrite.errors import CallError
from satura.rewrite.system.files import output_file
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes

if TYPE_CHECKING:  # what was compiled before starts without what compiles
    from onnx import ModelProto

    from satura.commands.compiling import Compiling
    from satura.pipeline.sizes import Dims

Given = tuple[Path | None, list[str], list[str]]
"""What --inputs, --input and --size say of the arguments."""
Arguments = tuple[dict[str, Array], str]
"""Arguments by name, and the sizes that were chosen for them, as a table says them."""


def run(
    name: str,
    model: Path | ModelProto,
    given: Given,
    output: Path | None,
    values: list[str],
    compiling: Compiling,
    verify: bool,
    json: bool,
) -> None:
    """Compile `model`, which is called so, and run it; write the results to `output` and sum them
    up."""
    from satura.commands.values import with_values
    from satura.pipeline.verify import verify as verify_call
    from satura.rewrite.onnx.defaults import defaults_among
    from satura.rewrite.onnx.files import read_apart

    arrays = _given_arrays(given)
    arguments, title = _arguments(given, arrays, model, compiling.dims), Path(name).name
    with progress(f"running {title}") as phase:
        source = with_values(model, values)
        replaced = tuple(defaults_among(read_apart(source), arrays)) if arrays else ()
        compiled = replace(compiling, inputs=replaced).compile(source, phase, verify)
        arrays, sizes = arguments(compiled)
        if verify and any(given) and not compiled.deciding and len(compiled.parts) == 1:
            verify_call(compiled, arrays, read_apart(source))
        results = _results(compiled, arrays, _is_drawn(given), "--value {}=...")
    _show(f"{title}{sizes}", results, output, json)


def run_opened(
    file: Path, given: Given, output: Path | None, is_trusted: bool, files: Sequence[Path],
    compiling: Mapping[str, object], verify: bool, json: bool,
) -> None:  # fmt: skip
    """Run a saved program, for which `files` declare ops; options that are `compiling` come too
    late for it, but for --threads where it says as many as there are."""
    threads = compiling["--threads"]
    late = [option for option, value in compiling.items() if value and option != "--threads"]
    if late:
        raise CallError(f"{late[0]} is for models, and {file} is compiled already")
    arguments = _arguments(given, _given_arrays(given))
    if files:
        from satura.commands.rule_files import with_files

        with_files("none", files)
    opened = satura.open(file, is_trusted, verify)
    if threads not in (None, opened.threads):
        raise CallError(
            f"{file} is compiled for --threads {opened.threads}; compile it again for {threads}"
        )
    arrays, sizes = arguments(opened)
    results = _results(opened, arrays, _is_drawn(given), "all inputs, as by --input {}=FILE.npy")
    _show(f"{file.name}{sizes}", results, output, json)


def _is_drawn(given: Given) -> bool:
    """Whether nothing says what the arguments are, which are random then."""
    inputs, single, _ = given
    return inputs is None and not single


def _results(
    program: Runnable, arrays: Mapping[str, Array], is_drawn: bool, option: str
) -> dict[str, Array]:
    """The outputs by name. Where arguments that decide shapes were drawn, an error says so, and
    names the `option` that gives them."""
    try:
        return program.run(arrays)
    except CallError as error:
        if is_drawn and program.deciding:
            names, first = ", ".join(program.deciding), program.deciding[0]
            if isinstance(program.inputs[first], SequenceType):
                option = "--inputs FILE.npz, which names its tensors {0}[0], {0}[1], …"
            error.args = (
                f"{error}; the values of {names}, which decide shapes, were drawn at random: give"
                f" {option.format(first)}",
            )
        raise


def _arguments(
    given: Given, arrays: dict[str, Array], model: Path | ModelProto | None = None,
    dims: Dims | None = None,
) -> Callable[[Runnable], Arguments]:  # fmt: skip
    """The arguments for a program, of a `model` or saved: the `arrays`, where these are given.

    Sizes that were not given are those of `dims`, which the program is made for.
    """
    if _is_drawn(given):
        wanted = parse_sizes(given[2])

        def drawn(program: Runnable) -> Arguments:
            types: Mapping[str, TensorType] = program.inputs
            if model is not None:
                from satura.pipeline.sizes import middles

                symbols = open_sizes(types.values())
                typical = {name: size for name, size in middles(dims).items() if name in symbols}
                types, own = types_at({**typical, **wanted}, model, types)
            else:  # sizes that a file is ready for are those that it was made for
                own = {**program.first_sizes, **wanted} if isinstance(program, Opened) else wanted
            full = full_sizes(types, own)
            shown = f" at {sizes_text(full)} (see --size)" if full else ""
            return random_arguments(types, own), shown

        return drawn
    return lambda program: (arrays, "")


def _given_arrays(given: Given) -> dict[str, Array]:
    """The arguments that are read from files, by name."""
    inputs, single, sizes = given
    if not _is_drawn(given) and sizes:
        raise CallError("--size is for random inputs; arrays that are given have their own sizes")
    arrays: dict[str, Array] = {}
    for text in single:
        name, _, path = text.rpartition("=")
        if not name or not path:
            raise CallError(f"an input is written NAME=FILE.npy, as in x=x.npy; got {text!r}")
        refuse_twice("input", name, arrays)
        arrays[name] = read_input(Path(path))
    return {**(read_inputs(inputs) if inputs else {}), **arrays}


def _show(title: str, results: Mapping[str, Array], output: Path | None, json: bool) -> None:
    if output is not None:
        with output_file(output) as file:
            np.savez(file, allow_pickle=False, **results)
    summaries = {name: _summary(array) for name, array in results.items()}
    if json:
        print_json(summaries)
    else:
        header = ["output", "dtype", "shape", "min", "max", "mean"]
        rows = [[name, *map(_text, summary.values())] for name, summary in summaries.items()]
        print_table(f"outputs of {title}", header, rows)


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
