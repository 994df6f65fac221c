"""What documents show is run: their commands, without the start of a process for each."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from satura.commands.cli import main
from satura.rewrite.isolation.process import Doing, call

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
SECONDS = 300.0

for _module in (
    "egglog", "satura.backend.jit.machine_code", "satura.commands.check", "satura.commands.why",
):  # fmt: skip
    importlib.import_module(_module)  # or each command would, in its own process


def satura(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Exit code and output of `satura arguments…` in `folder`; nothing of it stays here."""

    def run(doing: Doing) -> tuple[int, str]:
        doing(f"satura {' '.join(arguments)}", SECONDS)
        printed = io.StringIO()
        with chdir(folder), redirect_stdout(printed), redirect_stderr(printed):
            try:
                main(list(arguments))
            except SystemExit as end:
                return int(end.code or 0), printed.getvalue()
        return 0, printed.getvalue()

    return call(run, SECONDS)
