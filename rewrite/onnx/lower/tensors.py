"""A Builder with what lowerings share: NumPy broadcasting, scalars, dropped axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.onnx.lower.broadcasting import (
    common_shape,
    fits,
    is_equal_wherever_it_runs,
    is_one_wherever_it_runs,
    is_single,
    may_be_equal,
    simplest,
)
from satura.rewrite.onnx.lower.refused import Refusing
from satura.rewrite.types.at_sizes import evaluate, substitute
from satura.rewrite.types.attributes import Padding, Window
from satura.rewrite.types.clamps import never_negative
from satura.rewrite.types.dims import (
    Dim,
    SymbolicDim,
    exact_quotient,
    known_at_least,
    product,
    root,
    symbol,
    symbols_of,
)
from satura.rewrite.types.size_condition import FixedSize, Relation, SizeCondition
from satura.rewrite.types.tensor_type import DType


class SameSize(Exception):
    """The model runs only where the size `name` is `dim`, or else `may_broadcast` there.

    It may run elsewhere, too, where a single element decides whether `it_counts`, and where the
    program is one of several. `place` is where; `taken` is what was assumed of sizes where the
    model may run at others.
    """

    def __init__(
        self, name: str, dim: Dim, place: str, may_broadcast: bool = False,
        it_counts: bool = True, taken: SizeCondition | None = None,
    ) -> None:  # fmt: skip
        super().__init__(f"{name} is {dim}")
        self.name, self.dim, self.place = name, dim, place
        self.may_broadcast, self.it_counts, self.taken = may_broadcast, it_counts, taken


class Tensors(Refusing):
    """Builds nodes of canonical ops from operands that broadcast; tensors are node indices.

    Extents that must be equal, and may be, are taken for equal: `conditions` collects what calls
    must fulfil, each with the `place` in the model that needs it, and `taken` those without which
    operands broadcast. One that `clamps` has no
    condition where an extent can say the same, and one `for_all_sizes` takes no sizes for numbers:
    else those that must be known are what they are where sizes are as in `likely`, and others
    `usual`.
    """

    def __init__(
        self, for_all_sizes: bool = False, usual: int = 16, likely: Mapping[str, int] = {},
        clamps: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.for_all_sizes, self.usual, self.likely = for_all_sizes, usual, likely
        self.clamps = clamps or for_all_sizes
        self.has_chosen = False
        self.takes_turns = False  # whether Python may take the steps of the node at hand
        self.may_stay = False  # whether it may be no part of this program, though it could be
        self.is_run = True
        self.where: int | None = None
        self.place = ""
        self.conditions: dict[tuple[Dim, Relation, Dim], SizeCondition] = {}
        self.taken: dict[SizeCondition, None] = {}
        self.sequences: dict[int, tuple[int, ...] | None] = {}

    @contextmanager
    def only_typed(self) -> Iterator[None]:
        """Build what no call runs, of which only types count: it may read of no elements."""
        outer, self.is_run = self.is_run, False
        try:
            yield
        finally:
            self.is_run = outer

    @contextmanager
    def only_where(self, condition: int) -> Iterator[None]:
        """Build what counts only where a single element holds: indices are 0 elsewhere."""
        outer, alone = self.where, self.reshape(condition, ())
        self.where = alone if outer is None else self.binary("and", outer, alone)
        try:
            yield
        finally:
            self.where = outer

    def excuse(self, first: int) -> list[SizeCondition]:
        """The conditions from number `first` on, where from now on another program may run."""
        found = [*self.conditions.values()][first:]
        for each in found:
            del self.conditions[each.left, each.relation, each.right]
            self._add(each.excused)
        return found

    def arg_reduce(self, f: str, x: int, axis: int, last: bool = False) -> int:
        """As the op; what does not count is not computed of an axis that is empty."""
        if self.where is not None:
            self.need_elements(self.shape(x)[axis], 1)
        return super().arg_reduce(f, x, axis, last)

    def gather(self, x: int, indices: int, axis: int) -> int:
        """As the op; indices that do not count are inside of an axis that has elements."""
        if self.where is not None and self.nodes[indices].op.name != "constant":
            counts = self.expand(self.where, self.shape(indices))
            indices = self.choose(counts, indices, self.number(0, indices))
        return super().gather(x, indices, axis)

    def sequence(self, tensors: Sequence[int] | None) -> int:
        """A negative number that stands for a list of tensors; None is an absent optional."""
        number = -1 - len(self.sequences)
        self.sequences[number] = None if tensors is None else tuple(tensors)
        return number

    def need_equal(
        self, dim: Dim, other: Dim, may_broadcast: bool = False, is_chosen: bool = False
    ) -> None:
        """Take two extents for equal, although others `may_broadcast`, or have another program.

        Raises SameSize where a size must be something else.
        """
        of_kind = SizeCondition if may_broadcast else FixedSize
        is_taken = may_broadcast or is_chosen or self.where is not None

        def same(name: str, size: Dim) -> SameSize:
            taken = of_kind(symbol(name), size, "=", self.place) if is_taken else None
            return SameSize(name, size, self.place, may_broadcast, self.where is None, taken)

        for one, two in ((dim, other), (other, dim)):
            if isinstance(one, SymbolicDim) and one.name not in {None, *symbols_of([two])}:
                raise same(str(one.name), two)
            factor = exact_quotient(one, two)
            if isinstance(factor, SymbolicDim) and factor.name is not None:
                raise same(factor.name, 1)
            if (multiple := root(one, two)) is not None:
                raise same(*multiple)
        if is_taken and not is_equal_wherever_it_runs(dim, other):
            self.taken[of_kind(dim, other, "=", self.place)] = None
        self._need(dim, "=", other)

    def need_if_possible(self, dim: Dim, other: Dim) -> None:
        """Take two extents for equal that may be."""
        if may_be_equal(dim, other):
            self.need_equal(dim, other)

    def need_broadcast(self, dim: Dim, to: Dim) -> Dim:
        """Take an extent that is broadcast for equal, or for 1 where it is that at most sizes; what
        it is taken for."""
        if not is_single(dim, to, self.likely):
            self.need_equal(dim, to, may_broadcast=True)
            return to
        self.need_equal(dim, 1)
        if not is_one_wherever_it_runs(dim, to):
            self.taken[SizeCondition(dim, 1, "=", self.place)] = None
        return 1

    def need_at_least(self, dim: Dim, least: Dim) -> None:
        """Let calls where `dim` is less than `least` be refused."""
        self._need(dim, ">=", least)

    def _need(self, left: Dim, relation: Relation, right: Dim) -> None:
        if relation != "=" or (right, relation, left) not in self.conditions:
            self._add(SizeCondition(left, right, relation, self.place))

    def _add(self, condition: SizeCondition) -> None:
        key = condition.left, condition.relation, condition.right
        self.conditions.setdefault(key, condition)

    def need_extent(self, dim: Dim) -> None:
        """Let calls where the extent `dim` is negative be refused, if there may be some."""
        if not never_negative(dim):
            self.need_elements(dim, 0)

    def need_elements(self, dim: Dim, least: int) -> None:
        """Let calls where the extent `dim` is less be refused: no program runs there."""
        if (self.is_run or not least) and not self.is_at_least(dim, least):
            self._need(least, "<=", dim)

    def is_at_least(self, dim: Dim, least: int) -> bool:
        """Whether calls that are not refused so far have a `dim` of at least `least`."""
        if known_at_least(dim, least):
            return True
        bounds: dict[str, Dim] = {}
        for condition in self.conditions.values():
            left, right = condition.left, condition.right
            more = right - left if condition.is_of_extent else left - right
            for name in symbols_of([more]) if condition.relation != "=" else ():
                number = symbol(name) - more  # as 8 in n - 8 >= 0
                if isinstance(number, int) and number > 0:
                    bounds[name] = symbol(name) + number
        return known_at_least(substitute(dim, bounds), least)

    def at_some_sizes(self, dim: Dim) -> int | None:
        """`dim` at the sizes that the program is made for: others need another program.

        None where it is made for all sizes. Raises SameSize as `need_equal` does.
        """
        if self.for_all_sizes or isinstance(dim, int):
            return None if isinstance(dim, SymbolicDim) else dim
        number = self.at_likely_sizes(dim)
        self.need_equal(dim, number, is_chosen=True)
        return number

    def at_likely_sizes(self, dim: Dim) -> int:
        """`dim` at the sizes that are chosen where sizes must be known."""
        self.has_chosen = True
        return self.usual_number(dim)

    def usual_number(self, dim: Dim) -> int:
        """`dim` at the sizes that would be chosen."""
        sizes = {name: self.likely.get(name, self.usual) for name in symbols_of([dim])}
        return evaluate(dim, sizes)

    def _fitted(self, x: int, shape: Sequence[Dim], may_broadcast: bool = False) -> int:
        """x cut to the extents of `shape` that its own may be equal to, or to 1 where it is that at
        most sizes, and `may_broadcast`: nothing is cut in calls."""
        sizes = list(self.shape(x))
        for axis, (own, dim) in enumerate(zip(sizes, shape, strict=True)):
            if own == 1 or not may_be_equal(own, dim):
                continue
            if may_broadcast:
                sizes[axis] = self.need_broadcast(own, dim)
            else:
                sizes[axis] = dim
                self.need_equal(own, dim)
        if tuple(sizes) == self.shape(x):
            return x
        return self.slice(x, [0] * len(sizes), sizes)

    def reshape(self, x: int, shape: Sequence[Dim]) -> int:
        """As the op; numbers of elements that may be equal are taken for equal."""
        size, wanted = self.type(x).size, product(shape)
        if may_be_equal(size, wanted):
            x = self._fitted(super().reshape(x, (size,)), (wanted,))
        return super().reshape(x, shape)

    def concat(self, operands: Sequence[int], axis: int) -> int:
        """As the op; extents of the other axes that may be equal are taken for equal."""
        shapes = [self.shape(x) for x in operands]
        if len({len(shape) for shape in shapes}) > 1:
            return super().concat(operands, axis)
        common = [simplest(dims) for dims in zip(*shapes, strict=True)]
        parts = [
            self._fitted(x, [*common[:axis], shape[axis], *common[axis + 1 :]])
            for x, shape in zip(operands, shapes, strict=True)
        ]
        return super().concat(parts, axis)

    def matmul(self, x: int, y: int) -> int:
        """As the op; extents that may be equal are taken for equal."""
        rows, columns = self.shape(x), self.shape(y)
        if len(rows) == len(columns) >= 2:
            inner = simplest([rows[-1], columns[-2]])
            batch = [simplest(dims) for dims in zip(rows[:-2], columns[:-2], strict=True)]
            x = self._fitted(x, [*batch, rows[-2], inner])
            y = self._fitted(y, [*batch, inner, columns[-1]])
        return super().matmul(x, y)

    def conv(self, x: int, w: int, window: Window, groups: int = 1) -> int:
        """As the op; channels of x or of w that may be what the other has are taken for that, and
        those that are open for what they are at some sizes."""
        channels, (*kernel, inner, outer) = self.shape(x)[-1], self.shape(w)
        if isinstance(channels, int) and channels % groups == 0 and not isinstance(inner, int):
            inner = channels // groups
        if (found := self.at_some_sizes(inner)) is not None:
            x = self._fitted(x, [*self.shape(x)[:-1], found * groups])
            w = self._fitted(w, [*kernel, found, self.at_some_sizes(outer) or outer])
        return super().conv(x, w, window, groups)

    def shape(self, x: int) -> tuple[Dim, ...]:
        return self.type(x).shape

    def dtype(self, x: int) -> DType:
        return self.type(x).dtype

    def rank(self, x: int) -> int:
        return self.type(x).rank

    def converted(self, x: int, dtype: DType) -> int:
        """x itself where it has `dtype`, else cast to it."""
        return x if self.dtype(x) is dtype else self.cast(x, dtype)

    def full(self, value: object, shape: Sequence[Dim], dtype: DType) -> int:
        """A tensor of equal elements."""
        one = self.constant(np.asarray(value).astype(dtype.numpy).reshape((1,) * len(shape)))
        return self.expand(one, shape)

    def number(self, value: object, like: int) -> int:
        """`value` with the dtype and shape of the tensor `like`."""
        return self.full(value, self.shape(like), self.dtype(like))

    def size_of(self, dims: Iterable[Dim], like: int) -> int:
        """The product of `dims`, with the dtype and shape of the tensor `like`."""
        size = product(dims)
        if isinstance(size, int):
            return self.number(size, like)
        return self.expand(self.cast(self.extent(size), self.dtype(like)), self.shape(like))

    def expand(self, x: int, shape: Sequence[Dim]) -> int:
        """x broadcast to exactly `shape`, new axes in front."""
        missing = len(shape) - self.rank(x)
        if missing > 0:
            x = self.reshape(x, (*(1,) * missing, *self.shape(x)))
        if missing >= 0:
            x = self._fitted(x, shape, may_broadcast=True)
        return x if self.shape(x) == tuple(shape) else self.broadcast(x, shape)

    def exactly(self, x: int, shape: Sequence[Dim]) -> int:
        """x, which has this shape wherever the model runs: nothing is broadcast."""
        if not fits(self.shape(x), shape):
            raise ProgramError(f"{self.type(x)} should have the shape {list(shape)}")
        for dim, other in zip(self.shape(x), shape, strict=True):
            if dim != other:
                self.need_equal(dim, other)
        return self.expand(self._fitted(x, shape), shape)

    def along(self, x: int, axis: int, shape: Sequence[Dim]) -> int:
        """The vector x laid along `axis` of `shape`."""
        if self.rank(x) != 1 or axis >= len(shape):
            raise ProgramError(f"{self.type(x)} is not a vector along axis {axis} of {list(shape)}")
        line: list[Dim] = [1] * len(shape)
        line[axis] = self.shape(x)[0]
        return self.expand(self.reshape(x, line), shape)

    def common_shape(self, *shapes: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape that all `shapes` broadcast to by NumPy's rule, see the function."""
        return common_shape(*shapes, likely=self.likely)

    def aligned(self, *operands: int) -> list[int]:
        """The operands broadcast to their common shape."""
        shape = self.common_shape(*(self.shape(x) for x in operands))
        return [self.expand(x, shape) for x in operands]

    def apply(self, f: str, x: int, y: int) -> int:
        """The binary function f of x and y after broadcasting."""
        return self.binary(f, *self.aligned(x, y))

    def apply_number(self, f: str, x: int, value: object) -> int:
        """The binary function f of x and a number."""
        return self.binary(f, x, self.number(value, x))

    def choose(self, condition: int, x: int, y: int) -> int:
        """`select` after broadcasting."""
        return self.select(*self.aligned(condition, x, y))

    def drop(self, x: int, axes: Iterable[int]) -> int:
        """x without `axes`, which have extent 1."""
        gone = set(axes)
        return self.reshape(x, [dim for axis, dim in enumerate(self.shape(x)) if axis not in gone])

    def insert(self, x: int, axis: int) -> int:
        """x with a new axis of extent 1 at position `axis`."""
        shape = list(self.shape(x))
        return self.reshape(x, [*shape[:axis], 1, *shape[axis:]])

    def mean(self, x: int, axes: Sequence[int]) -> int:
        """The mean along `axes`, which stay with extent 1."""
        total = self.reduce("sum", x, axes)
        return self.binary(
            "div", total, self.size_of([self.shape(x)[axis] for axis in axes], total)
        )

    def padded(self, x: int, value: int, lo: Sequence[Dim], hi: Sequence[Dim]) -> int:
        """`pad` with a scalar tensor; negative paddings are slices before it."""
        cut_lo, cut_hi = (tuple(map(_cut, side)) for side in (lo, hi))
        if any(cut_lo) or any(cut_hi):
            sizes = [dim - a - b for dim, a, b in zip(self.shape(x), cut_lo, cut_hi, strict=True)]
            x = self.slice(x, cut_lo, sizes)
        keep_lo, keep_hi = (tuple(map(_at_least_zero, side)) for side in (lo, hi))
        return self.add("pad", (x, value), Padding(keep_lo, keep_hi))

    def one_axis_slice(self, x: int, axis: int, start: Dim, size: Dim, step: int = 1) -> int:
        """A slice that takes every other axis whole."""
        sizes = list(self.shape(x))
        starts: list[Dim] = [0] * len(sizes)
        steps = [1] * len(sizes)
        starts[axis], sizes[axis], steps[axis] = start, size, step
        return self.slice(x, starts, sizes, steps)


def _cut(amount: Dim) -> Dim:
    return -amount if known_at_least(-amount, 0) else 0


def _at_least_zero(amount: Dim) -> Dim:
    return 0 if known_at_least(-amount, 0) else amount
