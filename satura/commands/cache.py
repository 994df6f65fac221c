"""`satura cache`: the folder of compiled kernels, remembered schedules and programs."""

from __future__ import annotations

from satura.backend.jit.cache import default_cache
from satura.commands.terminal import number, print_json, print_line

KINDS = ("kernel", "schedule", "program")


def show(json: bool) -> None:
    """Folder, and entries, size and limit of each kind."""
    caches = [default_cache(kind) for kind in KINDS]
    found = [cache.statistics() for cache in caches]
    if json:
        kinds = {
            f"{cache.kind}s": {"entries": each.entries, "size": each.size, "limit": cache.limit}
            for cache, each in zip(caches, found, strict=True)
        }
        print_json({"folder": str(found[0].folder), "usable": found[0].usable, **kinds})
        return
    state = "" if found[0].usable else " (not used: others may write to it)"
    print_line(f"{found[0].folder}{state}")
    for cache, each in zip(caches, found, strict=True):
        size = f"{number(each.size)} of {number(cache.limit)} bytes"
        print_line(f"{each.entries} {cache.kind}s, {size}")


def clear() -> None:
    """Remove every entry."""
    for cache in map(default_cache, KINDS):
        print_line(f"{cache.folder}: removed {cache.clear()} {cache.kind}s")
