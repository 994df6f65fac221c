"""No proof rests on what a function says of a stand-in and would not say of a number."""

from __future__ import annotations

import collections.abc
import dataclasses
import subprocess
import sys
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import z3

import satura.rewrite.prove.size
from satura.rewrite.check.testing import check
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import pad, pool, slice_, unary
from satura.rewrite.prove import paths, prove
from satura.rewrite.prove.allowed_code import objection
from satura.rewrite.prove.size import Size
from satura.rewrite.prove.user_ops import name_of
from satura.rewrite.types.attributes import Padding, Refuse, Slices, UnaryFn, Window, refuse_unless
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import TensorType
from satura.rules import DEFAULT
from tests.peeking_functions import (
    WRONG,
    Changed,
    by_a_helper,
    by_default,
    by_map,
    in_a_table,
    of_type,
)
from tests.tiers import deep_but


def with_steps(changed: Changed) -> Rule:
    """The law that slices may have changed steps."""

    @attribute_function
    def other(s: Slices) -> Slices:
        return Slices(s.starts, s.sizes, tuple(changed(n) for n in s.steps))

    @rule
    def steps_changed(x: Tensor, s: Slices) -> Law:
        """slice(x, s) = slice(x, s with other steps)"""
        return rewrites(slice_(x, s), slice_(x, other(s)))

    return steps_changed


@pytest.mark.parametrize("changed", deep_but(WRONG[::2], WRONG), ids=lambda each: each.__name__)
def test_a_function_that_looks_behind_a_size_proves_nothing(changed: Changed) -> None:
    assert changed(3) == 2
    assert not prove(with_steps(changed), range(3)).is_proved


@pytest.mark.parametrize("changed", [of_type, in_a_table, by_a_helper, by_default, by_map])
def test_what_is_to_be_used_instead_of_type_is_said(changed: Changed) -> None:
    assert objection(with_steps(changed)).endswith(("; use isinstance", "; use == or isinstance"))


SEEN: list[object] = []


def of_a_protocol(n: Any) -> Any:
    return 2 if not isinstance(n, typing.SupportsIndex) else n


def of_a_dataclass(n: Any) -> Any:
    return 2 if dataclasses.is_dataclass(n) else n


def of_an_abstract_class(n: Any) -> Any:
    return 2 if not isinstance(n, collections.abc.Callable) and n == 3 else n  # type: ignore[arg-type]


def of_the_stand_in(n: Any) -> Any:
    return n if isinstance(n, satura.rewrite.prove.size.Size) else 2


def by_and_by(n: Any) -> Any:
    SEEN.append(n)
    return n if len(SEEN) < 3000 else 2


def with_a_count(n: Any) -> Any:
    of_a_protocol.count = 1  # type: ignore[attr-defined]
    return n


@pytest.mark.parametrize(
    "changed",
    [of_a_protocol, of_a_dataclass, of_an_abstract_class, of_the_stand_in, by_and_by, with_a_count],
)
def test_what_asks_for_classes_or_remembers_is_not_allowed(changed: Changed) -> None:
    assert objection(with_steps(changed)).startswith("its function")


def test_attributes_of_unknown_sizes_have_different_names() -> None:
    path = paths.Path(z3.Solver(), paths.Budget(0))
    first, second = (Size(path, symbol(name)) for name in ("n", "m"))
    assert f"{first}" == f"{second!r}" == "?"
    names = [name_of(Padding((size,), (0,))) for size in (first, second)]  # type: ignore[arg-type]
    assert names == ["Padding((n), (0))", "Padding((m), (0))"]


def test_an_absolute_value_is_understood() -> None:
    def turned(n: Any) -> Any:
        return n if abs(n) >= 3 and n < 0 else abs(n) * (1 if n > 0 else -1)

    assert prove(with_steps(turned), range(3)).is_proved


@attribute_function
def short_padding(b: Padding) -> Padding:
    """pads beyond 2 become 2: wrong"""
    return Padding(tuple(min(2, n) if type(n) is int else n for n in b.lo), b.hi)


@rule
def pad_short(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = pad(x, v, b up to 2)"""
    return rewrites(pad(x, v, b), pad(x, v, short_padding(b)))


@attribute_function
def short_strides(w: Window) -> Window:
    """strides up to 2, where they are plain: wrong"""
    return replace(w, strides=tuple(min(2, n) if type(n) is int else n for n in w.strides))


@rule
def pool_short(x: Tensor, w: Window) -> Law:
    """pool(max, x, w) = pool(max, x, w with strides up to 2)"""
    return rewrites(pool("max", x, w), pool("max", x, short_strides(w)))


@attribute_function
def short_sizes(s: Slices) -> Slices:
    """at most 20 elements: wrong"""
    for n in s.sizes:
        if type(n) is not int:
            raise Refuse("symbolic")
    return Slices(s.starts, tuple(min(n, 20) for n in s.sizes if isinstance(n, int)), s.steps)


@rule
def slice_short(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = the first 20 of it"""
    return rewrites(slice_(x, s), slice_(x, short_sizes(s)))


@attribute_function
def takes_all(x: TensorType, s: Slices) -> bool:
    """Whether s takes everything, where sizes are known."""
    try:
        starts = [int(str(start)) for start in s.starts]
    except ValueError:
        raise Refuse("a symbolic size") from None
    return not any(starts) and s.sizes == x.shape and set(map(str, s.steps)) <= {"1"}


@rule
def drop_slice(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s takes everything: right, but it takes numbers to see it"""
    return rewrites(slice_(x, s), x, takes_all(x.type, s))


@attribute_function
def is_named_relu(f: UnaryFn) -> bool:
    """Whether it is not relu, by what it looks like."""
    return f"{f}" != "relu" and repr(f) != "UnaryFn(name='relu')"


@rule
def doubled(f: UnaryFn, x: Tensor) -> Law:
    """f(f(x)) = f(f(f(x))), when f is not relu: wrong"""
    once = unary(f, unary(f, x))
    return rewrites(once, unary("relu", once), is_named_relu(f))


@pytest.mark.parametrize(
    "entry",
    [pad_short, pool_short, slice_short, drop_slice, doubled],
    ids=lambda each: each.name,
)
def test_a_law_that_takes_numbers_is_not_proved(entry: Rule) -> None:
    proof = prove(entry, range(3))
    assert not proof.is_proved and proof.reason


def test_what_decides_by_a_text_is_not_proved() -> None:
    @attribute_function
    def same(f: UnaryFn) -> bool:
        return str(f) != "relu" or f"{f!r}" == "UnaryFn(name='relu')"

    @rule
    def relu_alone(f: UnaryFn, x: Tensor, s: Slices) -> Law:
        """f(slice(x, s)) = slice(f(x), s), under a condition that always holds"""
        return rewrites(unary(f, slice_(x, s)), slice_(unary(f, x), s), same(f))

    proof = prove(relu_alone, range(2))
    assert (proof.status, proof.reason) == ("open", "its function same turns values into text")


def test_messages_of_refusals_may_spell_sizes_out() -> None:
    @attribute_function
    def checked(x: TensorType, s: Slices) -> Slices:
        for start, step in zip(s.starts, s.steps, strict=True):
            refuse_unless(step > 0, f"the step {step:>3} of {s} in {x} goes back")
            refuse_unless(step < 100, reason=f"{len(s.steps)} steps, {step!r} in 100%")
            if start != 0:
                raise Refuse(f"it begins at {start}, in axes {s.starts!r}")
        return s

    @rule
    def forward(f: UnaryFn, x: Tensor, s: Slices) -> Law:
        """f(slice(x, s)) = slice(f(x), s), forwards"""
        return rewrites(unary(f, slice_(x, s)), slice_(unary(f, x), checked(x.type, s)))

    assert prove(forward, range(2)).is_proved


def test_what_catches_refusals_is_not_proved() -> None:
    @attribute_function
    def checked(s: Slices) -> Slices:
        try:
            refuse_unless(all(step > 0 for step in s.steps), "backwards")
        except Refuse:
            return s
        return Slices(s.starts, s.sizes, s.steps)

    @rule
    def either_way(f: UnaryFn, x: Tensor, s: Slices) -> Law:
        """f(slice(x, s)) = slice(f(x), s), whatever the steps"""
        return rewrites(unary(f, slice_(x, s)), slice_(unary(f, x), checked(s)))

    proof = prove(either_way, range(2))
    assert proof.status == "open" and "its function checked catches errors" in proof.reason


@pytest.mark.deep
def test_no_proof_of_the_book_rests_on_such_a_function() -> None:
    found = {entry.name for entry in DEFAULT if objection(entry)}
    assert all(not prove(DEFAULT[name], (0, 1)).ranks for name in found)


def test_a_law_that_fires_only_without_axes_is_not_proved() -> None:
    @attribute_function
    def small(x: TensorType) -> bool:
        return not x.shape

    @rule
    def only_scalars(f: UnaryFn, x: Tensor, s: Slices) -> Law:
        """slice(f(x), s) = f(x), of one element"""
        return rewrites(slice_(unary(f, x), s), unary(f, x), small(x.type))

    proof = prove(only_scalars, range(3))
    assert (proof.status, proof.ranks) == ("open", (0,))
    assert "at rank 1: the prover found no sizes at which" in proof.reason


@attribute_function
def up_to_a_hundred(b: Padding) -> Padding:
    """pads beyond 100 become 100: no instance that is drawn has such"""
    return Padding(tuple(min(100, n) if isinstance(n, int) else n for n in b.lo), b.hi)


@rule
def wide_pads(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = pad(x, v, b up to 100): wrong"""
    return rewrites(pad(x, v, b), pad(x, v, up_to_a_hundred(b)))


@pytest.mark.deep
def test_what_a_proof_refutes_is_shown_by_a_program(tmp_path: Path) -> None:
    assert check(wide_pads, attempts=200).verdict == "tested"
    report = check(wide_pads, attempts=200, proof_steps=40_000)
    found = report.counterexample
    assert report.verdict == "refuted" and found is not None
    assert report.proof.startswith("at rank 1, for x = ") and report.reason == found.reason
    script = tmp_path / "pasted.py"
    script.write_text(found.program)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    left, right = run.stdout.splitlines()
    assert left.split()[0] == "left" and right.split()[0] == "right"
    assert left.split()[1:] != right.split()[1:]
