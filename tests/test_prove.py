"""Movement laws of the book are proved for all sizes; a wrong law never is."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, cast

import pytest

from satura.rewrite.check.report import RuleReport
from satura.rewrite.check.testing import add_proof
from satura.rewrite.language import terms
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    concat,
    pad,
    reduce,
    reshape,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.prove import NOT_INSTALLED, prove
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    UnaryFn,
)
from satura.rewrite.types.dims import SymbolicDim, exact_quotient, known_at_least
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules import DEFAULT
from satura.rules.axis_groups import replace_axis
from satura.rules.pad import slices_inside
from satura.rules.transpose import moves_only_units
from tests.museum import MUSEUM
from tests.rule_mutants import mutants
from tests.test_rule_mutants import EQUIVALENT, PROVED
from tests.tiers import deep_but

ROUNDS = "it holds up to rounding"
VALUES = "it computes element values"
MEANS = "it rests on what its functions compute"

# The exact laws that are not proved, and why.
OPEN = {
    "pad_out_of_unary": VALUES,
    "pad_out_of_cast": VALUES,
    "pad_into_cast": VALUES,
    "pad_out_of_binary": VALUES,
    "pad_out_of_scalar_binary": VALUES,
    "pad_out_of_select": VALUES,
    "fold_unary": VALUES,
    "fold_binary": VALUES,
    "fold_select": VALUES,
    "fold_cast": VALUES,
    "constant_of_one_element": VALUES,
    "drop_unit": "it compares element values",
    "divide_by_power_of_two": VALUES,
    "cancel_negations": MEANS,
    "apply_idempotent_once": MEANS,
    "constant_to_the_right": MEANS,
    "subtract_as_add": MEANS,
    "merge_casts": MEANS,
    "drop_identity_cast": MEANS,
    "drop_function_that_leaves_integers": VALUES,
    "max_pool_of_dequantised": VALUES,
    "round_what_is_scaled_back": VALUES,
    "add_zero_point_back": VALUES,
    "zero_point_out_of_matmul": "2: the prover cannot rule out that an element differs",
    "zero_point_out_of_conv": "2: the prover cannot rule out that an element differs",
    "shift_weights_of_conv": VALUES,
    "shift_weights_of_matmul": VALUES,
    "gather_of_even_steps": "gather is not an op that the prover knows",
    "first_place_of_largest": "first_places is not an op that the prover knows",
}


NAMES = [entry.name for entry in DEFAULT]  # at ranks 0 and 1 tests/test_verdicts.py proves all

# Laws whose proof at rank 3 fails or takes too long.
UP_TO_TWO = (
    "reshape_into_concat",
    "reshape_past_slice",
    "reshape_out_of_pad",
    "reshape_out_of_concat",
)


# They say nothing of fewer than three axes.
FROM_THREE_AXES = (
    "transpose_past_reshape", "units_out_of_transpose", "reshape_out_of_transpose",
    "reshape_out_of_matmul",
)  # fmt: skip

FROM_FOUR_AXES = ("reshape_out_of_transpose", "reshape_out_of_matmul")

DEAR = ("slice_inside_pad", "reshape_into_concat")  # a minute and more of proofs
USUAL = [name for name in NAMES if name not in DEAR]


@pytest.mark.parametrize("name", deep_but(USUAL[::32], NAMES, USUAL))
def test_rule_of_the_book(name: str) -> None:
    proof = prove(DEFAULT[name], ranks=range(3))
    if not DEFAULT[name].exact:
        assert proof.status == "open" and proof.reason == ROUNDS
    elif name in OPEN:
        assert proof.status == "open" and OPEN[name] in proof.reason
    elif name in FROM_THREE_AXES:
        assert proof.status == "open" and "the prover found no sizes at which" in proof.reason
    else:
        assert proof.is_proved, str(proof)
        assert (proof.ranks, proof.reason) == ((0, 1, 2), "for all sizes at ranks 0 to 2")


@pytest.mark.parametrize(
    "name", deep_but(["concat_into_unary"], ["transpose_past_pad", "concat_into_unary"])
)
def test_higher_ranks(name: str) -> None:
    assert prove(DEFAULT[name]).ranks == (0, 1, 2, 3, 4)


@pytest.mark.long  # what is recorded, at rank three and four too, is proved in test_verdicts.py
@pytest.mark.parametrize("name", [entry.name for entry in DEFAULT.exact])
def test_rule_of_the_book_at_rank_three(name: str) -> None:
    proof = prove(DEFAULT[name], ranks=range(4), steps=600_000)
    if name in UP_TO_TWO:
        assert proof.ranks[:3] == (0, 1, 2)
    elif name in FROM_FOUR_AXES:
        assert proof.status == "open" and "the prover found no sizes at which" in proof.reason
    else:
        assert proof.is_proved or name in OPEN, str(proof)


def test_open_laws_are_of_the_book() -> None:
    assert set(OPEN) <= {entry.name for entry in DEFAULT.exact}


# Wrong laws


@pytest.mark.parametrize(
    "name", deep_but([entry.name for entry in MUSEUM][::4], [entry.name for entry in MUSEUM])
)
def test_museum_piece_is_not_proved(name: str) -> None:
    assert not prove(MUSEUM[name], ranks=range(4), steps=20_000).is_proved


@pytest.mark.parametrize(
    "name",
    ["join_any_slices", "reshape_across_transpose", "transpose_of_a_unit", "sum_over_broadcast"],
)
def test_museum_piece_is_refuted_with_sizes(name: str) -> None:
    proof = prove(MUSEUM[name], ranks=range(4))
    assert proof.status == "refuted"
    assert "for x = " in proof.reason


def wrongly_proved(entry: Rule, ranks: range) -> list[str]:
    return [
        what
        for what, mutant in mutants(entry)
        if not any(part in what for part in (*EQUIVALENT, *PROVED))
        and prove(mutant, ranks, steps=20_000).is_proved
    ]


MUTATED = (
    "transpose_of_units", "broadcast_out_of_slice", "join_slices", "reshape_past_unary",
    "slice_of_second_part", "slice_inside_pad", "transpose_past_slice", "pad_out_of_concat",
)  # fmt: skip


@pytest.mark.parametrize("name", deep_but(MUTATED[:4], MUTATED))
def test_no_mutant_is_proved(name: str) -> None:
    assert wrongly_proved(DEFAULT[name], range(4)) == []


@pytest.mark.parametrize("message", [b"canceled", b"smt tactic failed: canceled"])
def test_nothing_is_proved_where_z3_raises_at_its_limit(
    message: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On some paths of z3 its limit is an exception, and not the answer that it does not know."""
    z3 = pytest.importorskip("z3")

    def check(*_: object) -> NoReturn:
        raise z3.Z3Exception(message)

    monkeypatch.setattr(z3.Solver, "check", check)
    proof = prove(DEFAULT["reshape_out_of_pad"], range(4))
    assert proof.status == "open", str(proof)


@pytest.mark.deep
@pytest.mark.parametrize("name", [entry.name for entry in DEFAULT.exact])
def test_no_mutant_of_any_rule_is_proved(name: str) -> None:
    assert wrongly_proved(DEFAULT[name], range(4)) == []


@attribute_function
def one_further(type_: TensorType, padding: Padding, slices: Slices) -> Slices:
    """Where slices of a padded tensor lie in the tensor, with the upper bound off by one."""
    for lo, dim, start, size, step in zip(
        padding.lo, type_.shape, slices.starts, slices.sizes, slices.steps, strict=True
    ):
        last = start + (size - 1) * step
        first, end = (start, last) if step > 0 else (last, start)
        if not (known_at_least(first - lo, 0) and known_at_least(lo + dim - end, 0)):
            return slices_inside(type_, padding, slices)
    starts = zip(slices.starts, padding.lo, strict=True)
    return Slices(tuple(start - lo for start, lo in starts), slices.sizes, slices.steps)


@rule
def bound_off_by_one(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = slice(x, s shifted by b), also one element into the border"""
    return rewrites(slice_(pad(x, v, b), s), slice_(x, one_further(x.type, b, s)))


@attribute_function
def is_never_empty(wide: Shape, axes: Axes) -> bool:
    """Whether no reduced axis is empty: right for plain ints only."""
    return all(wide.dims[axis] != 0 for axis in axes.indices)


@attribute_function
def without(shape: Shape, axes: Axes) -> Shape:
    """`shape` with 1 at `axes`."""
    return Shape(replace_axis(shape.dims, axes.indices, [1] * len(axes.indices)))


@rule
def wrong_for_symbolic_sizes(x: Tensor, s: Shape, axes: Axes) -> Law:
    """max(broadcast(x, s), a) = broadcast(max(x, a), s with 1 at a), when s is not 0 at a"""
    return rewrites(
        reduce("max", broadcast(x, s), axes),
        broadcast(reduce("max", x, axes), without(s, axes)),
        is_never_empty(s, axes),
    )


@rule
def reordered_sum(f: ReduceFn, x: Tensor, p: Perm) -> Law:
    """the sum of a transposed tensor = the sum of the tensor, in another order"""
    axes = Axes((0, 1))
    return rewrites(
        reduce(f, transpose(x, p), axes), transpose(reduce(f, x, axes), p), p.order == (1, 0)
    )


@rule
def other_function(x: Tensor, p: Perm) -> Law:
    """relu(transpose(x, p)) = transpose(abs(x), p)"""
    return rewrites(unary("relu", transpose(x, p)), transpose(unary("abs", x), p))


@rule
def operands_swapped(f: BinaryFn, x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(f(x, y), s) = f(slice(y, s), slice(x, s))"""
    return rewrites(slice_(binary(f, x, y), s), binary(f, slice_(y, s), slice_(x, s)))


@attribute_function
def looks_flat(type_: TensorType) -> bool:
    """Whether a size can be counted with, which no unknown size can."""
    return sum(1 for dim in type_.shape for _ in range(cast(int, dim))) < 100


@attribute_function
def is_in_a_set(type_: TensorType) -> bool:
    """Whether two sizes are equal, by their hashes."""
    return len(set(type_.shape)) < len(type_.shape)


@attribute_function
def is_in_order(type_: TensorType) -> bool:
    """Whether sizes are in order, which symbolic ones are not."""
    return sorted(type_.shape, key=lambda dim: cast(int, dim)) == list(type_.shape)


@attribute_function
def spells_the_same(type_: TensorType, shape: Shape) -> bool:
    """Whether two shapes look the same, as symbolic dims of other meaning may."""
    return [isinstance(dim, SymbolicDim) for dim in type_.shape] == [
        isinstance(dim, SymbolicDim) for dim in shape.dims
    ]


def with_condition(condition: Callable[[TensorType], bool]) -> Rule:
    @rule
    def conditional(f: UnaryFn, x: Tensor, p: Perm) -> Law:
        """f(transpose(x, p)) = f(x), under a condition"""
        return rewrites(unary(f, transpose(x, p)), unary(f, x), condition(x.type))

    return conditional


@pytest.mark.parametrize(
    "wrong",
    [bound_off_by_one, wrong_for_symbolic_sizes, reordered_sum, other_function, operands_swapped],
)
def test_wrong_law_is_not_proved(wrong: Rule) -> None:
    assert not prove(wrong, ranks=range(4), steps=20_000).is_proved


def test_off_by_one_is_refuted_with_sizes() -> None:
    proof = prove(bound_off_by_one, ranks=range(3))
    assert proof.status == "refuted" and proof.ranks == (0,)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (looks_flat, "counts with an unknown size"),
        (is_in_a_set, "hashes an unknown size"),
        (is_in_order, "puts symbolic sizes in an order"),
    ],
)
def test_numbers_are_not_made_up(condition: Callable[[TensorType], bool], reason: str) -> None:
    proof = prove(with_condition(condition), ranks=range(3))
    assert proof.status == "open"
    assert reason in proof.reason


def test_static_and_symbolic_shapes_are_told_apart() -> None:
    @rule
    def same_kinds(x: Tensor, s: Shape) -> Law:
        """reshape(x, s) = x, where the same axes are symbolic"""
        return rewrites(reshape(x, s), x, spells_the_same(x.type, s))

    assert not prove(same_kinds, ranks=range(3)).is_proved


@attribute_function
def stays_or_is_odd(type_: TensorType, perm: Perm) -> bool:
    """Whether no axis moves, or the number of elements is odd."""
    return perm.is_identity or exact_quotient(type_.size, 2) is None


def test_a_division_may_come_out_uneven() -> None:
    @rule
    def drop_odd_transpose(x: Tensor, p: Perm) -> Law:
        """transpose(x, p) = x, where no axis moves or the number of elements is odd"""
        return rewrites(transpose(x, p), x, stays_or_is_odd(x.type, p))

    assert not prove(drop_odd_transpose, ranks=range(3)).is_proved


# What is asked of a proof


def test_a_condition_on_units_is_understood() -> None:
    @rule
    def units_only(x: Tensor, p: Perm) -> Law:
        """transpose(x, p) = reshape(x, shape of it), when p moves only axes of extent 1"""
        moved = transpose(x, p)
        return rewrites(moved, reshape(x, Shape(moved.type.shape)), moves_only_units(x.type, p))

    assert prove(units_only, ranks=range(4)).is_proved


def test_an_unknown_op_is_named() -> None:
    from satura.rewrite.language.terms import gather

    @rule
    def gather_late(f: UnaryFn, x: Tensor, i: Tensor, a: Axis) -> Law:
        """gather(f(x), i) = f(gather(x, i)), which moves elements by data"""
        return rewrites(gather(unary(f, x), i, a), unary(f, gather(x, i, a)))

    proof = prove(gather_late, ranks=range(2))
    assert proof.status == "open" and "gather is not an op that the prover knows" in proof.reason


def test_a_dtype_that_no_op_computes_with_is_named() -> None:
    @rule
    def four_low_bits(x: Tensor) -> Law:
        """i32(u4(x)) = i32(x) & 15, for integers"""
        low = binary("and", terms.cast(x, DType.I32), 15)
        return rewrites(terms.cast(terms.cast(x, DType("u4")), DType.I32), low)

    proof = prove(four_low_bits, ranks=range(2))
    assert proof.status == "open" and "U4 is not a dtype that ops compute with" in proof.reason


def test_too_few_steps() -> None:
    proof = prove(DEFAULT["compose_slices"], steps=20)
    assert (proof.status, proof.reason) == ("open", "undecided at rank 2 within 20 steps")


def test_without_z3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    proof = prove(DEFAULT["compose_slices"])
    assert (proof.status, proof.reason) == ("open", NOT_INSTALLED)


def test_a_z3_that_does_not_import_leaves_laws_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = "print('seeking')\nclass Z3Exception(Exception):\n    pass\n"
    (tmp_path / "z3.py").write_text(f"{broken}raise Z3Exception('libz3.so not found')\n")
    monkeypatch.delitem(sys.modules, "z3", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    law = DEFAULT["compose_slices"]
    report = add_proof(law, RuleReport(law.name, law.place, "tested"), steps=20)
    assert report.verdict == "tested" and capsys.readouterr().out == ""
    assert "importing it fails (Z3Exception: 'libz3.so not found'): pip install" in report.proof


def test_concat_is_not_symmetric() -> None:
    @rule
    def swapped(x: Tensor, y: Tensor, a: Axis) -> Law:
        """concat(x, y) = concat(y, x)"""
        return rewrites(concat(x, y, a), concat(y, x, a))

    assert prove(swapped, ranks=range(3)).status == "refuted"
