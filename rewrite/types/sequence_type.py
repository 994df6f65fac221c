"""Inputs that are sequences of tensors, or optionals: programs have an input for each tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from satura.rewrite.errors import CallError
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.shown import shown
from satura.rewrite.types.tensor_type import Array, DType, TensorType

ABSENT = -1
"""What stands for the ranks of an optional that is not there."""


@dataclass(frozen=True)
class SequenceType(TensorType):
    """The type of what decides a program: the ranks of the tensors, which are inputs of their own.

    Each tensor has the type `element` and the extents `dims`, of which None are open; where `dims`
    are None, any rank. An optional may be absent; one that is not a list has at most one tensor.
    """

    element: DType
    dims: tuple[int | None, ...] | None
    is_optional: bool
    is_list: bool

    def members(self, name: str, ranks: Array) -> dict[str, TensorType]:
        """The types of the tensors by name. Raises CallError for ranks that this has not."""
        if is_absent(ranks):
            fits = self.is_optional
            ranks = ranks[1:]
        else:
            wanted = None if self.dims is None else len(self.dims)
            fits = all(int(x) == wanted if wanted is not None else x >= 0 for x in ranks)
            fits = fits and (self.is_list or ranks.size == 1)
        if not fits:
            raise CallError(f"input {name!r} is {self}: its ranks cannot be {shown(ranks)}")
        found = {}
        for at, rank in enumerate(map(int, ranks)):
            dims = self.dims or (None,) * rank
            own = member(name, at)
            shape: list[Dim] = [
                symbol(f"{own}_{axis}") if dim is None else dim for axis, dim in enumerate(dims)
            ]
            found[own] = TensorType(self.element, tuple(shape))
        return found

    @property
    def example(self) -> tuple[list[int], str]:
        """Ranks that this may have, and what they say."""
        rank = 2 if self.dims is None else len(self.dims)
        if self.is_list:
            return [rank, rank], f"two tensors of rank {rank}"
        absent = f", {ABSENT} for none" if self.is_optional else ""
        return [rank], f"a tensor of rank {rank}{absent}"

    def __str__(self) -> str:
        shape = "[…]" if self.dims is None else f"[{', '.join(str(x or '?') for x in self.dims)}]"
        kind = "a sequence of " if self.is_list else ""
        return f"{'optional ' if self.is_optional else ''}{kind}{self.element.value}{shape}"


def member(name: str, at: int) -> str:
    """What a tensor of a sequence is called."""
    return f"{name}[{at}]"


def are_alike(outputs: Mapping[str, TensorType], others: Mapping[str, TensorType]) -> bool:
    """Whether outputs of one model have the same names and element types at two sizes, at which its
    sequences may have more or fewer tensors."""
    kinds = {
        (_whole(name), type_.dtype) for each in (outputs, others) for name, type_ in each.items()
    }
    has_one_each = len(kinds) == len({name for name, _ in kinds})
    return has_one_each and all(_whole(name) != name for name in outputs.keys() ^ others.keys())


def _whole(name: str) -> str:
    """The name of the sequence that a tensor is called after; its own where there is none."""
    return name[: name.rindex("[")] if name.endswith("]") and "[" in name else name


def is_absent(ranks: Array) -> bool:
    """Whether these ranks stand for an optional that is not there."""
    return bool(ranks.tolist() == [ABSENT])
