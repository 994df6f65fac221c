"""Files that commands write at their end, looked at before the work begins."""

from __future__ import annotations

import os
from pathlib import Path

from satura.rewrite.errors import CallError
from satura.rewrite.system.files import is_special


def check_output(path: Path) -> None:
    """Raise CallError where no file can stand at a path, or none may be written there."""
    if not path.parent.is_dir():
        raise CallError(f"{path} cannot be written: there is no folder '{path.parent}'")
    if path.is_dir():
        raise CallError(f"{path} cannot be written: it is a folder: name a file in it")
    is_written_into = is_special(path)  # a device or a FIFO, which is not replaced
    if not os.access(path if is_written_into else path.parent, os.W_OK):
        what = "it" if is_written_into else f"the folder '{path.parent}'"
        raise CallError(f"{path} cannot be written: {what} is read-only for this user")
