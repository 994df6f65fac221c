"""Files that a command reads are not replaced by what it writes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from satura.artifact.container import is_artifact

if TYPE_CHECKING:
    from onnx import ModelProto


def refuse_to_replace(
    output: Path | None,
    model: Path | ModelProto,
    others: Iterable[Path] | None,
    may_be_model: bool = False,
) -> None:
    """Raise BadParameter where `output` is the model, a file of its weights, or one of the others
    that a command reads, by whatever name."""
    if output is None or not output.is_file():
        return
    read = list(others or [])
    if isinstance(model, Path) and not may_be_model:
        read.append(model)
    if isinstance(model, Path) and not is_artifact(model):
        from satura.rewrite.onnx.files import weight_files  # slow to import

        read += weight_files(model)
    for path in read:
        if path.exists() and path.samefile(output):
            raise typer.BadParameter(
                f"'{output}' is read by this command, and would be replaced by what it writes: name"
                " another file"
            )
