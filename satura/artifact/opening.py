"""Opens a saved program. Its weights are checked while the modules that run it are imported."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from satura.artifact.container import Container, natural, of
from satura.rewrite.errors import ArtifactError
from satura.rewrite.system.interrupts import import_whole

if TYPE_CHECKING:
    from pathlib import Path

    from satura.artifact.elsewhere import SearchAgain
    from satura.artifact.opened import Opened


def open_artifact(path: str | Path, is_trusted: bool, search: SearchAgain) -> Opened:
    """The program in the file at `path`; `search` is for sizes that it excludes.

    Raises ArtifactError, or OSError where there is none.
    """
    file = Container(path)
    is_ready = is_trusted or file.is_private
    import_whole("satura.artifact.opened", lambda: _check_weights(file) if is_ready else None)
    from satura.artifact.opened import Opened

    return Opened(file, is_trusted, search)


def _check_weights(file: Container) -> None:
    """Check the weights that are ready to run. What is damaged is found again by who takes it."""
    with suppress(ArtifactError, KeyError, TypeError, ValueError):
        for program in of(list, file.header["programs"]):
            for _, section in of(list, of(dict, program)["constants"]):
                file.section(natural(section))
