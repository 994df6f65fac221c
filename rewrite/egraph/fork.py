"""egglog's bindings, and a copy of them for forked processes.

egglog runs on a pool of threads that its library starts once. A forked process has none of these
threads, but the library believes that it does, and waits for them for ever. So a forked process
loads the library a second time.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
from pathlib import Path
from types import ModuleType

from satura.rewrite.egraph.bindings import bindings

_LIBRARY = Path(str(bindings.__file__)).resolve()  # as the system names it: without links
_forks = 0
_copied_after = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def fresh_bindings() -> ModuleType | None:
    """A copy of `egglog.bindings`, once after each fork; None where it is not needed."""
    global _copied_after
    if _copied_after == _forks or not hasattr(os, "memfd_create"):
        return None
    # Another file: the loader would give the same library for the same one.
    copy = os.memfd_create(f"egglog-{os.getpid()}")
    try:
        with open(copy, "wb", closefd=False) as file:
            file.write(loaded_part())
        loader = importlib.machinery.ExtensionFileLoader(
            "egglog.bindings", f"/proc/{os.getpid()}/fd/{copy}"
        )
        spec = importlib.util.spec_from_loader("egglog.bindings", loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    finally:
        os.close(copy)
    _copied_after = _forks  # not earlier: there may be no room for the copy
    return module


def loaded_part() -> bytes:
    """The beginning of the library, which programs use; the longer rest is for debuggers."""
    end = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, _, offset, _, _, *path = line.split(maxsplit=5)
        if path == [str(_LIBRARY)]:
            first, last = (int(address, 16) for address in span.split("-"))
            end = max(end, int(offset, 16) + last - first)
    with _LIBRARY.open("rb") as file:
        return file.read(end or -1)
