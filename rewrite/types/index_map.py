"""Index maps: where a layout op reads, as polynomials in loop variables.

A tensor index is a tuple with one polynomial per axis. `pull` takes an index of a layout op's
result to the index of its operand that the element comes from; `push` goes the other way, for ops
that lose nothing (transpose, reshape). Loop variables are symbols `$0`, `$1`, …, so that the
arithmetic of `dims.py` serves for indices as it does for dims, and a quotient that meets its
remainder again cancels: over a contiguous tensor every reshape is a plain offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satura.rewrite.types.attributes import Attribute, Perm, Shape, Slices
from satura.rewrite.types.dims import (
    Atom,
    Dim,
    Quotient,
    SymbolicDim,
    exact_quotient,
    expression,
    is_one,
    is_same,
    known_at_least,
    monomial_quotient,
    monomials_of,
    of_atom,
    polynomial,
    product,
    symbol,
)  # fmt: skip

VARIABLE = "$"
"""What the names of all loop variables begin with."""

Index = tuple[Dim, ...]
Ranges = Mapping[str, Dim]


def variable_name(number: int) -> str:
    """What loop variable number `number` is called."""
    return f"{VARIABLE}{number}"


def variable(number: int) -> SymbolicDim:
    """Loop variable number `number`."""
    return symbol(variable_name(number))


def is_variable(atom: Atom) -> bool:
    """Whether an atom is a loop variable."""
    return isinstance(atom, str) and atom.startswith(VARIABLE)


def variables(shape: Sequence[Dim], first: int = 0) -> tuple[Index, dict[str, Dim]]:
    """A fresh index over `shape` and the extents of its variables; axes of extent 1 are at 0."""
    index: list[Dim] = []
    ranges: dict[str, Dim] = {}
    for axis, extent in enumerate(shape):
        if is_one(extent):
            index.append(0)
        else:
            index.append(variable(first + axis))
            ranges[variable_name(first + axis)] = extent
    return tuple(index), ranges


def row_major(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Strides, in elements, of a contiguous tensor."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


def offset(index: Sequence[Dim], strides: Sequence[Dim]) -> Dim:
    """Where the element at `index` lies, in elements."""
    total: Dim = 0
    for at, stride in zip(index, strides, strict=True):
        total = total + at * stride
    return total


def is_affine(position: Dim) -> bool:
    """Whether `position` is a sum of loop variables times sizes: none divided or multiplied."""
    if isinstance(position, int):
        return True
    for monomial, _ in position.terms:
        loop_variables = 0
        for atom in monomial:
            if isinstance(atom, Quotient):
                if any(map(is_variable, of_atom(atom).symbols)):
                    return False
            elif is_variable(atom):
                loop_variables += 1
        if loop_variables > 1:
            return False
    return True


def coefficient(position: Dim, name: str) -> Dim:
    """What an affine `position` grows by when loop variable `name` grows by 1."""
    if isinstance(position, int):
        return 0
    total: Dim = 0
    for monomial, factor in position.terms:
        rest = monomial_quotient(monomial, (name,))
        if rest is not None:
            total = total + polynomial([(rest, factor)])
    return total


def pull(op: str, attributes: tuple[Attribute, ...], index: Index, shape: Sequence[Dim],
         source: Sequence[Dim], ranges: Ranges) -> Index:  # fmt: skip
    """Index into the operand (of shape `source`) that element `index` of the result comes from.

    `shape` is the result's. For transpose, reshape, broadcast and slice.
    """
    attribute = attributes[0]
    if op == "transpose":
        assert isinstance(attribute, Perm)
        return attribute.inverse.apply(index)
    if op == "broadcast":
        return tuple(0 if is_one(n) else at for n, at in zip(source, index, strict=True))
    if op == "slice":
        assert isinstance(attribute, Slices)
        moved = zip(attribute.starts, index, attribute.steps, strict=True)
        return tuple(start + at * step for start, at, step in moved)
    if op == "reshape":
        assert isinstance(attribute, Shape)
        return regroup(index, shape, source, ranges)
    raise ValueError(f"{op} has no single index map")


def push(op: str, attributes: tuple[Attribute, ...], index: Index, shape: Sequence[Dim],
         source: Sequence[Dim], ranges: Ranges) -> Index:  # fmt: skip
    """Index into the result (of shape `shape`) where element `index` of the operand arrives."""
    attribute = attributes[0]
    if op == "transpose":
        assert isinstance(attribute, Perm)
        return attribute.apply(index)
    if op == "reshape":
        return regroup(index, source, shape, ranges)
    raise ValueError(f"{op} does not keep every element")


def regroup(index: Index, old: Sequence[Dim], new: Sequence[Dim], ranges: Ranges) -> Index:
    """The index in a tensor of shape `new` with the row-major position of `index` in `old`."""
    if 0 in old:
        return (0,) * len(new)
    result: list[Dim] = []
    for old_axes, new_axes in reshape_groups(old, new):
        extents = [new[axis] for axis in new_axes]
        strides = row_major([old[axis] for axis in old_axes])
        position = offset([index[axis] for axis in old_axes], strides)
        inner: list[Dim] = []
        while len(extents) > 1:
            extent = extents.pop()
            position, rest = divide(position, extent, ranges)
            inner.append(rest)
        if extents:
            inner.append(position)
        result.extend(reversed(inner))
    return tuple(result)


def reshape_groups(
    old: Sequence[Dim], new: Sequence[Dim]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Smallest runs of old and new axes that hold the same elements, in order."""
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        first_i, first_j = i, j
        left: Dim = old[i] if i < len(old) else 1
        right: Dim = new[j] if j < len(new) else 1
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while not is_same(left, right):
            if j < len(new) and (i == len(old) or _reaches(left, right)):
                right, j = right * new[j], j + 1
            elif i < len(old):
                left, i = left * old[i], i + 1
            else:
                break
        groups.append((tuple(range(first_i, i)), tuple(range(first_j, j))))
    return groups


def _reaches(left: Dim, right: Dim) -> bool:
    """Whether `right` has to grow to meet `left`."""
    left, right = expression(left), expression(right)
    if isinstance(left, int) and isinstance(right, int):
        return right < left
    return exact_quotient(left, right) is not None


def divide(position: Dim, divisor: Dim, ranges: Ranges) -> tuple[Dim, Dim]:
    """Quotient and remainder of `position` by `divisor`, without a division where ranges allow."""
    if is_one(divisor):
        return position, 0
    whole: Dim = 0
    rest: Dim = 0
    for term in monomials_of(position):
        value = polynomial([term])
        share = exact_quotient(value, divisor)
        if share is None:
            rest = rest + value
        else:
            whole = whole + share
    bottom, top = bounds(rest, ranges)
    fits = (
        bottom is not None
        and top is not None
        and known_at_least(bottom, 0)
        and known_at_least(divisor - 1 - top, 0)
    )
    if fits:
        return whole, rest
    if isinstance(divisor, int):
        steps = polynomial(
            [(of, _nearest(factor, divisor)) for of, factor in monomials_of(rest) if of]
        )
        near = rest - steps * divisor
        bottom, top = bounds(near, ranges)
        if isinstance(bottom, int) and isinstance(top, int) and bottom // divisor == top // divisor:
            more = bottom // divisor
            return whole + steps + more, near - more * divisor
    quotient = rest // divisor
    return whole + quotient, rest - quotient * divisor


def _nearest(number: int, divisor: int) -> int:
    """The quotient that leaves the least remainder, of either sign: rows of 197 among those of 198
    begin one element earlier each."""
    return (2 * number + divisor) // (2 * divisor)


def bounds(position: Dim, ranges: Ranges) -> tuple[Dim | None, Dim | None]:
    """Smallest and largest value of `position`: of an affine one, or of a sum of such and of
    quotients of such by numbers; None where that is not known."""
    if isinstance(position, int):
        return position, position
    if not is_affine(position):
        return _bounds_with_quotients(position, ranges)
    bottom: Dim = 0
    top: Dim = 0
    for monomial, factor in position.terms:
        name = next((atom for atom in monomial if is_variable(atom)), None)
        if name is None:
            size = polynomial([(monomial, factor)])
            bottom, top = bottom + size, top + size
            continue
        rest = monomial_quotient(monomial, (name,))
        assert isinstance(name, str) and rest is not None
        reach = polynomial([(rest, factor)]) * (ranges[name] - 1)
        if factor > 0:
            top = top + reach
        else:
            bottom = bottom + reach
    return bottom, top


def _bounds_with_quotients(position: SymbolicDim, ranges: Ranges) -> tuple[Dim | None, Dim | None]:
    bottom: Dim = 0
    top: Dim = 0
    for monomial, factor in position.terms:
        term = polynomial([(monomial, factor)])
        if is_affine(term):
            least, most = bounds(term, ranges)
        else:
            (atom, *others) = monomial
            if others or isinstance(atom, str) or not isinstance(atom.denominator, int):
                return None, None
            least, most = bounds(atom.numerator, ranges)
            if not isinstance(most, int) or not isinstance(least, int):
                return None, None
            ends = least // atom.denominator * factor, most // atom.denominator * factor
            least, most = ends if factor > 0 else ends[::-1]
        if least is None or most is None:
            return None, None
        bottom, top = bottom + least, top + most
    return bottom, top
