"""`satura cache`: the folder of compiled kernels, remembered schedules and programs."""

from __future__ import annotations

from satura.backend.jit.cache import default_cache
from satura.commands.terminal import counted, number, print_json, print_line

KINDS = ("kernel", "schedule", "program")


def show(json: bool) -> None:
    """Folder, and entries, size and limit of each kind; and the rates that were calibrated."""
    caches = [default_cache(kind) for kind in KINDS]
    found = [cache.statistics() for cache in caches]
    rates = default_cache("rates").statistics()
    if json:
        kinds: dict[str, dict[str, int]] = {
            f"{cache.kind}s": {"entries": each.entries, "size": each.size, "limit": cache.limit}
            for cache, each in zip(caches, found, strict=True)
        }
        kinds["rates"] = {"entries": rates.entries, "size": rates.size}
        print_json({"folder": str(found[0].folder), "usable": found[0].usable, **kinds})
        return
    state = "" if found[0].usable else f" (not used: {found[0].fault})"
    print_line(f"{found[0].folder}{state}")
    for cache, each in zip(caches, found, strict=True):
        size = f"{number(each.size)} of {number(cache.limit)} bytes"
        print_line(f"{counted(each.entries, cache.kind)}, {size}")
    sets = counted(rates.entries, "set")
    print_line(f"{sets} of calibrated rates, {number(rates.size)} bytes (`clear` leaves them)")


def clear(json: bool) -> None:
    """Remove every entry, and say how many of each kind there were."""
    removed = {cache: cache.clear() for cache in map(default_cache, KINDS)}
    if json:
        folder = str(next(iter(removed)).folder)
        print_json({"folder": folder, **{f"{each.kind}s": n for each, n in removed.items()}})
        return
    for cache, count in removed.items():
        print_line(f"{cache.folder}: removed {counted(count, cache.kind)}")
