"""Constants of a schedule: evaluated once at compile time, equal ones stored once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from satura.backend.cache_lines import on_whole_lines
from satura.backend.sizes.size import refuse_traced
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.isolation.process import KilledError, call
from satura.rewrite.ops import REGISTRY
from satura.rewrite.ops.registry import Kind
from satura.rewrite.program.memory import named_types, refuse_beyond_memory, tensor_bytes
from satura.rewrite.program.program import Node, Program
from satura.rewrite.system.heap import give_back_freed
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.copies import row_major
from satura.rewrite.types.remade import SMALLEST_REMADE
from satura.rewrite.types.tensor_type import Array

_NOTHING = np.empty(0, np.uint8)
_COPIED = 1 << 16  # bytes of a constant of the model, at most: a copy of a large one takes memory
_BETWEEN = 1 << 24  # bytes of arrays that are made before freed memory is given back
USER_CODE_SECONDS = 20.0  # for code of users that gives a constant


def fold_constants(schedule: Schedule) -> Schedule:
    """The schedule in which every materialised constant is a constant node.

    A large one that no other is computed with is computed when it is packed, and not kept. Raises
    ModelError where memory cannot hold them.
    """
    nodes = list(schedule.program.nodes)
    wanted = [index for index in schedule.constants if nodes[index].op.name != "constant"]
    behind = {index: _behind(nodes, index) for index in wanted}
    readers = Counter(i for found in behind.values() for i in found if nodes[i].operands)
    needed = sorted({*schedule.constants, *(i for found in behind.values() for i in found)})
    sizes = {index: tensor_bytes(nodes[index].type) for index in needed}
    together = max([sum(sizes[index] for index in schedule.constants), *sizes.values()])
    refuse_beyond_memory(together, named_types(schedule.program, needed), ModelError)
    is_late = {
        index: sizes[index] >= SMALLEST_REMADE
        and all(
            _is_repeatable(nodes[i]) and (readers[i] <= 1 or sizes[i] < SMALLEST_REMADE)
            for i in found
        )
        for index, found in behind.items()
    }
    at_once = [index for index in wanted if not is_late[index]]
    values = _values(nodes, sorted({i for index in at_once for i in behind[index]}), at_once)
    digests: dict[int, bytes] = {}
    made = list(nodes)
    for index in wanted:
        if is_late[index]:
            make = partial(_value_of_last, nodes, behind[index])
            digest = _recipe_digest(nodes, behind[index], digests)
            constant = Constant.remade(make, nodes[index].type, digest)
        else:
            constant = Constant(values[index])
        made[index] = Node(REGISTRY["constant"], (), (constant,), nodes[index].type)
    program = schedule.program
    return replace(schedule, program=Program(tuple(made), program.inputs, program.outputs))


def _behind(nodes: Sequence[Node], index: int) -> tuple[int, ...]:
    """The node and all that it is computed from, in order."""
    needed: set[int] = set()
    stack = [index]
    while stack:
        index = stack.pop()
        if index not in needed:
            needed.add(index)
            stack.extend(nodes[index].operands)
    return tuple(sorted(needed))


def _is_repeatable(node: Node) -> bool:
    """Whether the node has the same value each time that it is computed, and no code of a user."""
    return node.op.user is None and node.op.kind is not Kind.HOST


def _value_of_last(nodes: Sequence[Node], needed: Sequence[int]) -> Array:
    """The value of the last of the nodes, which nobody else has."""
    value = _values(nodes, needed, needed[-1:])[needed[-1]]
    is_own = value.flags.owndata and value.flags.c_contiguous
    return value if is_own else row_major(value, value.shape)


def _values(
    nodes: Sequence[Node], needed: Sequence[int], wanted: Sequence[int]
) -> dict[int, Array]:
    """The values of the `wanted` nodes; `needed` are those and all behind them, in order."""
    kept = set(wanted)
    last_use: dict[int, int] = {}
    for index in needed:
        last_use.update(dict.fromkeys(nodes[index].operands, index))
    values: dict[int, Array] = {}
    for index in needed:
        node = nodes[index]
        values[index] = _evaluate(node, [values[operand] for operand in node.operands])
        values[index].flags.writeable = False  # nobody else has it: no need for a copy
        for operand in dict.fromkeys(node.operands):
            if last_use[operand] == index and operand not in kept:
                del values[operand]
    return values


def _recipe_digest(nodes: Sequence[Node], needed: Sequence[int], known: dict[int, bytes]) -> bytes:
    """What tells the value of the last of the nodes from others, before it is computed.

    It is a digest of how that is done, for which there is more than one way. `known` are those of
    other nodes.
    """
    for index in needed:
        if index in known:
            continue
        node = nodes[index]
        if node.op.name == "constant":
            known[index] = node.constant.digest
            continue
        digest = hashlib.sha256(f"{node.op.name} {node.type} {node.attributes!r}".encode())
        for operand in node.operands:
            digest.update(known[operand])
        known[index] = digest.digest()[:16]
    return known[needed[-1]]


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
        self._arrays: list[Array | None] = []
        self._numbers: dict[bytes, int] = {}
        self._makers: dict[int, Callable[[], Array]] = {}
        self._since = 0  # bytes made since freed memory was given back

    def number(self, constant: Constant) -> int:
        """The number of the elements of `constant`."""
        is_small = constant.nbytes <= _COPIED

        def make() -> Array:
            return on_whole_lines(constant.array) if is_small else constant.array

        return self.made(self._number(constant.digest, make))

    def derived(self, key: bytes, make: Callable[[], Array]) -> int:
        """The number of an array computed from constants, which `made` makes once per `key`."""
        if key not in self._numbers:
            refuse_traced(key.decode())
        return self._number(key, lambda: on_whole_lines(make()))

    def made(self, number: int) -> int:
        """`number`, whose array is there from now on."""
        if self._arrays[number] is None:
            made = self._arrays[number] = self._makers.pop(number)()
            self._since += made.nbytes
            if self._since >= _BETWEEN:  # what was computed on the way to many would add up
                self._since = 0
                give_back_freed(_BETWEEN)
        return number

    def forget_unmade(self) -> None:
        """Drop what would make arrays that nobody has asked for."""
        self._makers.clear()

    def _number(self, key: bytes, make: Callable[[], Array]) -> int:
        number = self._numbers.setdefault(key, len(self._arrays))
        if number == len(self._arrays):
            self._arrays.append(None)
        if self._arrays[number] is None:
            self._makers[number] = make
        return number

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What is kept so far, by number; empty ones for what was not made."""
        return tuple(_NOTHING if array is None else array for array in self._arrays)

    @property
    def count(self) -> int:
        return sum(array is not None for array in self._arrays)

    @property
    def size(self) -> int:
        """Bytes of all kept arrays."""
        return sum(array.nbytes for array in self.arrays)
