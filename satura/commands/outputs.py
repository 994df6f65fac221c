"""Files that commands write at their end, looked at before the work begins."""

from __future__ import annotations

from pathlib import Path

from satura.rewrite.errors import CallError


def check_output(path: Path) -> None:
    """Raise CallError where no file can stand at a path."""
    if not path.parent.is_dir():
        raise CallError(f"{path} cannot be written: there is no folder '{path.parent}'")
    if path.is_dir():
        raise CallError(f"{path} cannot be written: it is a folder: name a file in it")
