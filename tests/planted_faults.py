"""Faults are planted to see which test catches each.

    python -m tests.planted_faults [--all] [NUMBER…]

plants one after the other in a copy of the tracked files and runs the tests that should catch it
first; with `--all` the whole of the tier, where those do not. It exits with 1 where one is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fault import ROOT, Fault
from tests.faults import FAULTS

TIERS = {"test": [], "deep": ["-m", "deep or hypothesis", "--hypothesis-profile=deep"]}
HANG = 3600.0  # seconds


def copy_tracked(target: Path) -> None:
    """Copy the tracked files, links as links."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name, follow_symlinks=False)


def environment(copy: Path, cache: Path) -> dict[str, str]:
    """The variables with which Python imports the copy, and not what is installed."""
    # Bytecode is compiled beforehand: a planted file and its original may be of one length, and
    # Python would tell them apart by whole seconds only.
    return {
        **os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1",
        "SATURA_CACHE": str(cache),
    }  # fmt: skip


def failing_test(copy: Path, variables: dict[str, str], arguments: Sequence[str]) -> str | None:
    """The first test that fails in the copy, None where all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, *arguments], cwd=copy, env=variables, capture_output=True, text=True,
            timeout=HANG,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "a hang"
    if run.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", run.stdout, re.MULTILINE)
    if found is None and run.returncode > 0:
        raise RuntimeError(run.stdout + run.stderr)
    return found[1] if found else f"a crash by signal {-run.returncode}"


def catching_test(fault: Fault, copy: Path, variables: dict[str, str], all_: bool) -> str | None:
    """The test that catches `fault`, None where none does."""
    tier = TIERS[fault.tier]
    original = copy / fault.file
    original.write_text(fault.faulty_text())
    try:
        found = failing_test(copy, variables, ["-n", "0", *tier, *fault.tests.split()])
        if found is None and all_:
            found = failing_test(copy, variables, ["-n", "2", "--dist", "worksteal", *tier])
    finally:
        shutil.copy2(ROOT / fault.file, original)
    if found and "::" in found and failing_test(copy, variables, ["-n", "0", *tier, found]):
        raise RuntimeError(f"{found} fails without a fault")
    return found


def main(arguments: Sequence[str]) -> int:
    """Plant the faults with the given numbers, all by default; 1 where one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="run all tests where the first pass")
    parser.add_argument("numbers", metavar="NUMBER", type=int, nargs="*")
    options = parser.parse_args(arguments)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="satura-faults-") as folder:
        copy, cache = Path(folder) / "copy", Path(folder) / "cache"
        copy_tracked(copy)
        subprocess.run([sys.executable, "-m", "compileall", "-q", "satura"], cwd=copy, check=True)
        variables = environment(copy, cache)
        where = "import satura; print(satura.__file__)"
        imported = subprocess.check_output(
            [sys.executable, "-c", where], cwd=folder, env=variables, text=True
        )
        assert Path(imported.strip()).is_relative_to(copy), imported
        for number, fault in enumerate(FAULTS, 1):
            if not options.numbers or number in options.numbers:
                found = catching_test(fault, copy, variables, options.all)
                missed += found is None
                shown = f"caught by {found}" if found else "NOT caught"
                print(f"{number} {fault.file} ({fault.tier}): {shown}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
