"""How many threads this process can keep busy.

That is the least of $SATURA_THREADS, the CPUs that it may run on, their physical cores, and the
quota of its cgroup, of which a part of a CPU counts as a whole one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from math import ceil

from satura.rewrite.errors import CallError, UnsupportedError, brief, warn_caller
from satura.rewrite.program.arguments import as_number

_CGROUPS = "/sys/fs/cgroup"
_MEMBERSHIP = "/proc/self/cgroup"
_CPUS = "/sys/devices/system/cpu"
_AnyPath = str | os.PathLike[str]
_V2_FOLDERS: tuple[str, ...] = ("", "unified")
_V1_FOLDERS: tuple[str, ...] = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


def usable_threads() -> int:
    """The number of threads worth running, at least 1."""
    cpus = _allowed_cpus()
    limits = [len(cpus), physical_cores(cpus), _asked_for()]
    quota = cgroup_quota()
    if quota is not None:
        limits.append(ceil(quota))
    return max(1, min(limit for limit in limits if limit is not None))


def usable_of(asked: object, what: str, otherwise: str = "") -> int:
    """As many threads or processes as are asked for, but no more than are worth running.

    `otherwise` says what else may be asked for. Raises CallError for what is not a number of them,
    and warns where fewer are usable.
    """
    count = as_number(asked)
    if count is None or count < 1:
        raise CallError(f"{what} must be an int of at least 1{otherwise}, not {brief(asked)}")
    usable = usable_threads()
    if count > usable:
        warn_caller(f"{count} {what} are more than the {usable} CPUs: {usable} are used")
    return min(count, usable)


def cgroup_quota(root: _AnyPath = _CGROUPS, membership: _AnyPath = _MEMBERSHIP) -> float | None:
    """How many CPUs the cgroups of this process, and those around them, allow; None for all.

    `root` is where cgroups of version 1 or 2 are mounted, `membership` says which are its own.
    """
    quotas = [
        quota for folder in _own_folders(root, membership) if (quota := _quota(folder)) is not None
    ]
    return min(quotas, default=None)


def physical_cores(cpus: Iterable[int], root: _AnyPath = _CPUS) -> int | None:
    """How many cores `cpus` belong to; None where the system does not say."""
    cores = {_text(f"{root}/cpu{cpu}/topology/thread_siblings_list") for cpu in cpus}
    return None if None in cores or not cores else len(cores)


def _allowed_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _asked_for() -> int | None:
    asked = os.environ.get("SATURA_THREADS", "")
    if not asked:
        return None
    if not asked.isascii() or not asked.isdigit() or int(asked) < 1:
        raise UnsupportedError(f"SATURA_THREADS is '{asked}'; it must be a number of at least 1")
    return int(asked)


def _own_folders(root: _AnyPath, membership: _AnyPath) -> Iterator[str]:
    """The folders of this process's CPU cgroups and of all around them.

    In a container the path may be the host's, which is not mounted: then what is there of it.
    """
    for line in (_text(membership) or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            mounts = _V2_FOLDERS
        elif "cpu" in controllers.split(","):
            mounts = _V1_FOLDERS
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for mount in mounts:
            for count in range(len(parts) + 1):
                yield os.path.join(root, mount, *parts[:count])


def _quota(folder: str) -> float | None:
    """The CPUs that one cgroup allows, of version 2 or 1."""
    words = (_text(f"{folder}/cpu.max") or "").split()
    if not words:
        words = [_text(f"{folder}/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
        return None  # "max", or -1
    quota, period = (int(word) for word in words)
    return quota / period if quota and period else None


def _text(file: _AnyPath) -> str | None:
    try:
        with open(file) as text:
            return text.read().strip()
    except (OSError, UnicodeDecodeError):
        return None
