"""Index maps: where a layout op reads agrees with where NumPy moved the elements."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.attributes import Attribute, Perm, Shape, Slices
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.index_map import (
    bounds,
    divide,
    is_affine,
    offset,
    pull,
    push,
    regroup,
    reshape_groups,
    row_major,
    variables,
)  # fmt: skip

EXTENTS = st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=4)


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes with equally many elements: the factors of one extent list, merged two ways."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=6))

    def merged() -> tuple[int, ...]:
        shape, current = [], 1
        for factor in factors:
            current *= factor
            if draw(st.booleans()):
                shape.append(current)
                current = 1
        return (*shape, current)

    return merged(), merged()


def positions(shape: tuple[int, ...]) -> list[tuple[dict[str, int], tuple[int, ...]]]:
    """Every element of `shape`: values of its loop variables and its index."""
    return [({f"${k}": i for k, i in enumerate(at)}, at) for at in np.ndindex(*shape)]


@given(reshapes())
def test_regroup_keeps_the_row_major_position(shapes: tuple[tuple[int, ...], ...]) -> None:
    old, new = shapes
    index, ranges = variables(old)
    moved = regroup(index, old, new, ranges)
    for sizes, at in positions(old):
        there = tuple(evaluate(dim, sizes) for dim in moved)
        assert np.ravel_multi_index(there, new) == np.ravel_multi_index(at, old)
    assert is_affine(offset(moved, row_major(new)))


@given(reshapes(), st.randoms(use_true_random=False))
def test_pull_reads_what_numpy_moves(shapes: tuple[tuple[int, ...], ...], random: object) -> None:
    old, new = shapes
    data = np.arange(np.prod(old, dtype=int)).reshape(old)
    rank = len(old)
    perm = Perm(tuple(np.random.default_rng(rank).permutation(rank).tolist()))
    cases: dict[str, tuple[Attribute, np.ndarray]] = {
        "transpose": (perm, data.transpose(perm.order)),
        "reshape": (Shape(new), data.reshape(new)),
    }
    sizes_ = tuple((n + 1) // 2 for n in old)
    slices = Slices((0,) * rank, sizes_, tuple(2 if n > 1 else 1 for n in old))
    cases["slice"] = (slices, data[slices.numpy])
    for op, (attribute, result) in cases.items():
        index, ranges = variables(result.shape)
        source = pull(op, (attribute,), index, result.shape, old, ranges)
        for sizes, at in positions(result.shape):
            assert data[tuple(evaluate(dim, sizes) for dim in source)] == result[at], op


@given(reshapes())
def test_push_is_the_inverse_of_pull(shapes: tuple[tuple[int, ...], ...]) -> None:
    old, new = shapes
    index, ranges = variables(old)
    there = push("reshape", (Shape(new),), index, new, old, ranges)
    for sizes, at in positions(old):
        moved = tuple(evaluate(dim, sizes) for dim in there)
        assert np.ravel_multi_index(moved, new) == np.ravel_multi_index(at, old)


def test_quotients_cancel_over_contiguous_tensors() -> None:
    batch, seq = symbol("batch"), symbol("seq")
    index, ranges = variables((batch * seq, 768))
    split = regroup(index, (batch * seq, 768), (batch, seq, 12, 64), ranges)
    assert not is_affine(split[0])
    at = offset(split, row_major((batch, seq, 12, 64)))
    assert at == 768 * symbol("$0") + symbol("$1")


def test_rows_that_begin_a_little_earlier_each_are_divided_by_none() -> None:
    """As those of scores by relative position are: a pad, two reshapes and a slice shift them."""
    (_, row, column), ranges = variables((4, 99, 99))
    assert divide(row * 197 + column + 99, 198, ranges) == (row, column - row + 99)
    assert divide(row * 197 + column + 297, 198, ranges) == (row + 1, column - row + 99)
    for past in (97, 100):  # one row more or less for some
        quotient, rest = divide(row * 197 + column + past, 198, ranges)
        assert not is_affine(quotient) and not is_affine(rest)


@given(
    st.lists(st.tuples(st.integers(-400, 400), st.integers(1, 5)), max_size=3),
    st.integers(-400, 400),
    st.integers(2, 200),
)
def test_quotient_and_rest_are_those_of_python(
    terms: list[tuple[int, int]], constant: int, divisor: int
) -> None:
    extents = tuple(extent for _, extent in terms)
    index, ranges = variables(extents)
    position = sum((at * factor for at, (factor, _) in zip(index, terms, strict=True)), constant)
    quotient, rest = divide(position, divisor, ranges)
    for sizes, _ in positions(extents):
        found = evaluate(quotient, sizes), evaluate(rest, sizes)
        assert found == divmod(evaluate(position, sizes), divisor)


def test_a_rest_is_less_than_its_divisor() -> None:
    whole, rest = divide(symbol("$0") + 1, 3, {"$0": 3})
    for at in range(3):
        sizes = {"$0": at}
        assert (evaluate(whole, sizes), evaluate(rest, sizes)) == divmod(at + 1, 3)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9), st.integers(-3, 3))
def test_bounds_of_quotients_are_those_of_their_values(
    extent: int, divisor: int, start: int, factor: int
) -> None:
    position = (symbol("$0") * 2 + start) // divisor * factor + 5
    bottom, top = bounds(position, {"$0": extent})
    values = [(2 * at + start) // divisor * factor + 5 for at in range(extent)]
    assert (top, bottom) == (max(values), min(values))
    assert divide((symbol("$0") // 3) + symbol("$1") * 4, 4, {"$0": 12, "$1": 2})[1] == (
        symbol("$0") // 3
    )


def test_groups_are_minimal() -> None:
    assert reshape_groups((2, 3, 4), (6, 4)) == [((0, 1), (0,)), ((2,), (1,))]
    assert reshape_groups((6, 4), (4, 6)) == [((0, 1), (0, 1))]
