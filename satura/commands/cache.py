"""`satura cache`: the folder of compiled kernels."""

from __future__ import annotations

from satura.backend.jit.cache import default_cache
from satura.commands.terminal import number, print_json, print_line


def show(json: bool) -> None:
    """Folder, entries, size and limit of the kernel cache."""
    cache = default_cache()
    found = cache.statistics()
    if json:
        print_json(
            {
                "folder": str(found.folder),
                "usable": found.usable,
                "entries": found.entries,
                "size": found.size,
                "limit": cache.limit,
            }
        )
        return
    state = "" if found.usable else " (not used: others may write to it)"
    print_line(f"{found.folder}{state}")
    print_line(f"{found.entries} kernels, {number(found.size)} of {number(cache.limit)} bytes")


def clear() -> None:
    """Remove every entry of the kernel cache."""
    cache = default_cache()
    print_line(f"{cache.folder}: removed {cache.clear()} kernels")
