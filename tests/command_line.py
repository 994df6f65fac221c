"""The command line in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from satura.commands.cli import main

Run = Callable[..., tuple[int, str, str]]
"""Exit code of a command, and what it prints on stdout and stderr."""


def cli(*arguments: object) -> int:
    """Exit code of `satura arguments…`."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


def runs(command: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs `satura command arguments…`."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli(command, *arguments)
        return code, *capsys.readouterr()

    return run
