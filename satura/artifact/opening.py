"""Opens a saved program. Its weights are checked while the modules that run it are imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Thread
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
    with _weights_checked(file) if is_trusted or file.is_private else nullcontext():
        import_whole("satura.artifact.opened")
        from satura.artifact.opened import Opened

        return Opened(file, is_trusted, search)


@contextmanager
def _weights_checked(file: Container) -> Iterator[None]:
    """Another thread checks weights meanwhile. Afterwards it does not read the file any more."""
    thread = Thread(target=lambda: _check_weights(file), name="satura-check")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _check_weights(file: Container) -> None:
    """Check the weights that are ready to run, last first: who takes them begins with the first.

    What is damaged stays unchecked, and is found again by who takes it.
    """
    with suppress(ArtifactError, KeyError, TypeError, ValueError):
        for program in of(list, file.header["programs"]):
            for _, section in reversed(of(list, of(dict, program)["constants"])):
                file.section(natural(section))
