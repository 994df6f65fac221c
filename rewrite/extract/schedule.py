"""Schedule: a program together with its grouping into dispatches and the homes of its tensors.

This is all that the backend sees. A *materialised* node is stored in memory; every other node is
computed, or its reads are redirected, inside the dispatches that list it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from satura.rewrite.extract.features import Features
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.index_map import row_major


class Form(Enum):
    """What kernel a dispatch becomes."""

    LOOP = "loop"  # elementwise and layout ops over the root's index space
    ROW = "row"  # reductions over the same axes with elementwise ops around them
    CONTRACTION = "contraction"  # conv or matmul with an epilogue
    WINDOW = "window"  # pool with an epilogue
    ALONE = "alone"  # one op whose kernel is its own
    HOST = "host"  # a call of the onnx package's reference implementation


@dataclass(frozen=True)
class Home:
    """Where a tensor lies: inside `buffer` (a node), from index `start` of that node's shape on.

    A tensor that has a buffer of its own has itself as buffer and starts at zeros. Otherwise
    the buffer is that of a concat that the tensor is a part of, and the strides are the buffer's.
    """

    buffer: int
    start: tuple[Dim, ...]

    def concrete(self, sizes: Mapping[str, int]) -> Home:
        return Home(self.buffer, tuple(evaluate(dim, sizes) for dim in self.start))


@dataclass(frozen=True)
class Dispatch:
    """One kernel launch: it computes node `root` and stores it at `target`.

    `nodes` are all nodes that run inside, in topological order, the root last; none for a copy of
    a materialised tensor (then `operands == (root,)`). `operands` are the materialised nodes that
    are read. `anchor` is the conv, matmul or pool of a CONTRACTION or WINDOW; for a ROW it is the
    first reduction, whose operand's shape is the iteration space. `seconds` is the predicted cost,
    and `features` what it is predicted from; None where that is not known.
    """

    form: Form
    root: int
    nodes: tuple[int, ...]
    operands: tuple[int, ...]
    anchor: int | None
    target: Home
    seconds: float = 0.0
    features: Features | None = None


@dataclass(frozen=True)
class Schedule:
    """A program, its dispatches in execution order, and the home of every materialised node.

    `constants` are the materialised nodes that are computed from constants at compile time;
    inputs are materialised too and have their own homes, outputs always own their buffer.
    `seconds` is the predicted cost of one run. Where it `is_exact`, kernels multiply elements as
    they are, and in no other way that is as near.
    """

    program: Program
    dispatches: tuple[Dispatch, ...]
    constants: tuple[int, ...]
    homes: Mapping[int, Home]
    seconds: float = 0.0
    is_exact: bool = False

    @cached_property
    def materialised(self) -> frozenset[int]:
        return frozenset(self.homes)

    def strides(self, node: int) -> tuple[Dim, ...]:
        """Strides of a materialised node, in elements."""
        return row_major(self.program.nodes[self.homes[node].buffer].type.shape)

    def concrete(self, sizes: Mapping[str, int]) -> Schedule:
        """The schedule where every symbol has its size from `sizes`."""
        if not sizes:
            return self
        return Schedule(
            self.program.concrete(sizes),
            tuple(
                replace(dispatch, target=dispatch.target.concrete(sizes))
                for dispatch in self.dispatches
            ),
            self.constants,
            {node: home.concrete(sizes) for node, home in self.homes.items()},
            self.seconds,
            self.is_exact,
        )

    def is_fill(self, dispatch: Dispatch) -> bool:
        """Whether the dispatch only writes constants."""
        known = self.program.known
        return dispatch.form is Form.LOOP and all(known[node] for node in dispatch.operands)

    def is_copy(self, dispatch: Dispatch) -> bool:
        """Whether the dispatch only moves data."""
        if dispatch.form is not Form.LOOP or self.is_fill(dispatch):
            return False
        return all(self.program.nodes[node].op.kind is Kind.LAYOUT for node in dispatch.nodes)


Refusals: TypeAlias = Callable[[Schedule], Mapping[int, str]]
"""Gives the numbers of the dispatches that cannot be lowered, and why."""
