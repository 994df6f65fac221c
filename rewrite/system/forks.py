"""Locks after a fork: the thread of the parent that may have held one is not in the child."""

from __future__ import annotations

import os
from typing import Protocol

from satura.rewrite.system.living import Living


class Locked(Protocol):
    """What has locks of its own."""

    def renew_locks(self) -> None:
        """Take new locks, which nobody holds."""


_owners: Living[Locked] = Living()


def renew_after_fork(owner: Locked) -> None:
    """Let `owner` renew its locks in every child, as long as it lives."""
    _owners.add(owner)


def _renew() -> None:
    for owner in _owners:
        owner.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
