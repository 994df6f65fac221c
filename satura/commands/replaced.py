"""Files that a command reads are not replaced by what it writes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer

from satura.rewrite.onnx.files import weight_files


def refuse_to_replace(output: Path | None, read: Iterable[Path]) -> None:
    """Raises BadParameter where `output` is one of the files `read`, by whatever name."""
    if output is None or not output.is_file():
        return
    for path in read:
        if path.exists() and path.samefile(output):
            raise typer.BadParameter(
                f"'{output}' is read by this command, and would be replaced by what it writes: name"
                " another file"
            )


def files_of(model: Path) -> list[Path]:
    """The file of a model, and those of its weights."""
    return [model, *weight_files(model)]
