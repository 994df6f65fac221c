"""`satura compile`: compile a model, and write it ready to run."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from satura.commands.compiling import Compiling
from satura.commands.terminal import number, print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.inputs import parse_sizes


def compile_to(
    name: str, model: Path | ModelProto, output: Path, sizes: list[str], values: list[str],
    compiling: Compiling, with_model: bool, json: bool,
) -> None:  # fmt: skip
    """Compile `model`, which is called so, and write it to `output`, ready for each of `sizes` of
    its symbols."""
    ready = [parse_sizes([text]) for text in sizes]
    with progress(f"compiling {Path(name).name}") as phase:
        compiled = compiling.compile(with_values(model, values), phase)
        compiled.save(output, ready, with_model)
    size = output.stat().st_size
    if json:
        types = {
            kind: {name: str(type_) for name, type_ in named.items()}
            for kind, named in (("inputs", compiled.inputs), ("outputs", compiled.outputs))
        }
        print_json({"file": str(output), "bytes": size, "threads": compiled.threads, **types})
    else:
        print_line(f"{output}: {number(size)} bytes, {compiled!r}")
