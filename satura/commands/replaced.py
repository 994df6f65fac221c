"""Files that a command reads, or that are of another kind, are not replaced by what it writes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import is_zipfile

import typer

from satura.artifact.container import is_artifact
from satura.commands.outputs import check_output
from satura.rewrite.errors import CallError

if TYPE_CHECKING:
    from onnx import ModelProto


def refuse_to_replace(
    output: Path | None,
    model: Path | ModelProto,
    others: Iterable[Path] | None,
    may_be_model: bool = False,
) -> None:
    """Raise BadParameter where `output` is the model, a file of its weights, or one of the others
    that a command reads, by whatever name. Raises CallError where it cannot be written."""
    if output is None:
        return
    check_output(output)
    if not output.is_file():
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


def refuse_other_than_results(output: Path | None) -> None:
    """Raise CallError where results would replace a file that is not one of arrays: it may be a
    model, or a saved program."""
    if output is None or not output.is_file() or not output.stat().st_size:
        return
    if not is_zipfile(output):
        raise CallError(
            f"'{output}' is there, and is not an .npz file, so it is not replaced by one: name"
            " another file, or remove it first"
        )
