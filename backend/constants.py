"""Constants of a schedule: evaluated once at compile time, equal ones stored once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from satura.backend.sizes.size import refuse_traced
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.isolation.process import KilledError, call
from satura.rewrite.ops import REGISTRY
from satura.rewrite.ops.registry import Kind
from satura.rewrite.program.memory import named_types, refuse_beyond_memory, tensor_bytes
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.attributes import Constant
from satura.rewrite.types.tensor_type import Array

USER_CODE_SECONDS = 20.0  # for code of users that gives a constant


def fold_constants(schedule: Schedule) -> Schedule:
    """The schedule in which every materialised constant is a constant node.

    Raises ModelError where memory cannot hold them.
    """
    nodes = list(schedule.program.nodes)
    values: dict[int, Array] = {}
    last_use: dict[int, int] = {}
    wanted = set(schedule.constants)
    needed: set[int] = set()
    stack = list(wanted)
    while stack:
        index = stack.pop()
        if index not in needed:
            needed.add(index)
            stack.extend(nodes[index].operands)
    sizes = {index: tensor_bytes(nodes[index].type) for index in needed}
    together = max([sum(sizes[index] for index in wanted), *sizes.values()])
    refuse_beyond_memory(together, named_types(schedule.program, needed), ModelError)
    for index in sorted(needed):
        last_use.update(dict.fromkeys(nodes[index].operands, index))
    for index in sorted(needed):
        node = nodes[index]
        operands = [values[operand] for operand in node.operands]
        values[index] = _evaluate(node, operands)
        values[index].flags.writeable = False  # nobody else has it: no need for a copy
        if index in wanted and node.op.name != "constant":
            constant = Constant(values[index])
            nodes[index] = Node(REGISTRY["constant"], (), (constant,), node.type)
        for operand in dict.fromkeys(node.operands):
            if last_use[operand] == index:
                del values[operand]
    program = schedule.program
    return replace(schedule, program=Program(tuple(nodes), program.inputs, program.outputs))


def _evaluate(node: Node, operands: list[Array]) -> Array:
    """The node's value. Raises CallError where code of a user does not give it in time."""

    def value() -> Array:
        return np.asarray(node.op.reference(*operands, *node.attributes))

    user = node.op.user
    if user is None or node.op.kind is not Kind.HOST:
        return value()
    try:
        return call(lambda doing: value(), USER_CODE_SECONDS)
    except KilledError as killed:
        raise CallError(
            f"op '{node.op.name}' ({user.place}) of constants, which is computed when a program is"
            f" compiled, {killed.what}"
        ) from None


class ConstantStore:
    """Arrays that kernels read, numbered; an array stays where it is as long as the store does."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._numbers: dict[bytes, int] = {}
        self._lent: dict[int, int] = {}

    def number(self, digest: bytes, array: Array) -> int:
        """The number of the contents of `array`, known by `digest`."""
        return self._kept(digest, lambda: array)

    def derived(self, key: bytes, make: Callable[[], Array]) -> tuple[int, tuple[int, ...]]:
        """Number and shape of an array computed from constants, `make`d once per `key`."""
        if key not in self._numbers:
            refuse_traced(key.decode())
        number = self._kept(key, make)
        return number, self._arrays[number].shape

    def _kept(self, key: bytes, make: Callable[[], Array]) -> int:
        if key not in self._numbers:
            made = make()
            self._numbers[key] = len(self._arrays)
            self._arrays.append(made)
        return self._numbers[key]

    def lent(self, array: Array) -> int:
        """Number of a constant of the program that kernels hardly ever read: it is not counted,
        since the program has it anyway."""
        number = self._lent.setdefault(id(array), len(self._arrays))
        if number == len(self._arrays):
            self._arrays.append(array)
        return number

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What is kept so far, by number."""
        return tuple(self._arrays)

    @property
    def count(self) -> int:
        return len(self._numbers)

    @property
    def size(self) -> int:
        """Bytes of all kept arrays."""
        return sum(self._arrays[number].nbytes for number in self._numbers.values())
