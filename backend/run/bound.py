"""Bound calls: everything about a call but its work is done once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NoReturn

from satura.backend.run.routine import Instance
from satura.backend.run.signatures import values_of
from satura.rewrite.errors import CallError
from satura.rewrite.system.forks import renew_after_fork
from satura.rewrite.types.shown import shown
from satura.rewrite.types.tensor_type import Array


class Bound:
    """A call on arrays that stay the same: `bound()` reads what they hold and writes the outputs.

    It has buffers of its own. Threads that call it at once wait for each other.
    """

    def __init__(
        self, instance: Instance, arrays: Mapping[str, Array], out: Mapping[str, Array] | None
    ) -> None:
        for name, array in arrays.items():
            if not (array.flags.c_contiguous and array.flags.aligned):
                raise CallError(f"input {name!r} must be C-contiguous and aligned to be bound")
        instance.bind(arrays, out)
        self._execute = instance.execute
        self._deciding: Mapping[str, Array] = {}
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Unlock it, as it is made or as a child of fork has it."""
        self._lock = threading.Lock()

    def with_deciding(self, arrays: Mapping[str, Array]) -> Bound:
        """This call, refused once one of the `arrays`, which decide shapes, holds something else.

        The outputs are for what they hold now.
        """
        self._deciding = dict(arrays)
        self._values = values_of(arrays, arrays.keys())
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: its buffers are addresses of this process."""
        raise CallError("a bound call cannot be pickled or copied: bind anew in the other process")

    def __call__(self) -> dict[str, Array]:
        """The outputs by name: the same arrays in every call.

        Raises CallError where an index leaves its axis, or where an input that decides shapes has
        other values than when it was bound.
        """
        if self._deciding:
            self._check_values()
        with self._lock:
            return self._execute()

    def _check_values(self) -> None:
        now = values_of(self._deciding, self._deciding.keys())
        for before, after in zip(self._values, now, strict=True):
            if before != after:
                name = after[0]
                raise CallError(
                    f"the values of input {name!r} decide shapes, and are no longer those that it"
                    f" was bound with, but {shown(self._deciding[name])}: bind anew, or use run"
                )
