"""No test depends on time: clocks are read only to end a wait that would never end by itself."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

CLOCKS = {
    f"{name}{unit}"
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
} | {"now", "utcnow", "today", "default_timer"}
MODULES = {"time", "datetime", "timeit", "date"}
NAMED = re.compile(rf"\b({'|'.join(sorted(MODULES))})\b")
ALLOWED = {
    "test_cli_failures.py": "waits at most a minute until a process has begun its work",
    "test_guarded.py": "a rule that hangs is ended within a minute",
    "test_process.py": "waits at most a minute until a killed process is gone",
}


def clocks_read(source: str) -> set[str]:
    """The clocks that a Python source reads, in its child processes' scripts, too."""
    found: set[str] = set()
    if not NAMED.search(source):
        return found  # without parsing: most files
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(ast.Name(owner) | ast.Attribute(_, owner), name):
                found |= {name} & CLOCKS if owner in MODULES else set()
            case ast.ImportFrom(module, names) if module in MODULES:
                found |= {alias.name for alias in names if alias.name in CLOCKS}
            case ast.Constant(str(text)) if "time." in text:
                found |= {name for name in CLOCKS if f"time.{name}(" in text}
    return found


FILES = sorted(set(Path(__file__).parent.glob("*.py")) - {Path(__file__)})


def test_only_waits_read_a_clock() -> None:
    assert {file.name for file in FILES if clocks_read(file.read_text())} == ALLOWED.keys()


@pytest.mark.parametrize(
    "source",
    [
        "import time\nstarted = time.monotonic()",
        "from time import perf_counter",
        "from time import process_time_ns as cpu",
        "import datetime\ndatetime.datetime.now()",
        "script = 'import time; print(time.process_time())'",
    ],
)
def test_clocks_are_found(source: str) -> None:
    assert clocks_read(source)


def test_sleeping_is_no_clock() -> None:
    assert not clocks_read("import time\ntime.sleep(1)")
