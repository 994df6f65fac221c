"""Instances of a routine for calls at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from satura.backend.run.bound import Bound
from satura.backend.run.routine import Instance
from satura.backend.run.workspace import Workspace, Workspaces
from satura.rewrite.types.tensor_type import Array


class Instances:
    """Instances of one routine; those that no call uses at the moment are kept.

    Calls work in `workspaces`, which several routines may share.
    """

    def __init__(self, make: Callable[[Workspace], Instance], workspaces: Workspaces) -> None:
        self._make = make
        self._workspaces = workspaces
        self._free: list[Instance] = []

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """As `Instance.run`; several threads may call it at once."""
        workspace = self._workspaces.take()
        try:
            instance = self._free.pop()
            instance.work_in(workspace)
        except IndexError:
            instance = self._make(workspace)
        try:
            return instance.run(arguments, out)
        finally:
            self._free.append(instance)
            self._workspaces.give_back(workspace)

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """A call on these arrays, with an instance of its own."""
        return Bound(self._make(Workspace()), arguments, out)
