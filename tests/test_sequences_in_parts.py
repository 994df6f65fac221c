"""Sequences and optionals in models that run in parts: their tensors are passed between these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import satura
from satura.errors import UnsupportedError
from satura.rewrite.types.tensor_type import Array

pytestmark = pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
COUNT = "i = ArgMax<keepdims=0>(x) "
IS_LARGE = "s = ReduceSum<keepdims=0>(x) h = Constant<value_float=4.0>() c = Greater(s, h) "
APPENDED = """r = Loop(i, , x) <body = b (int64 j, bool go, float[w] a) => (bool on, float[v] t)
    {{ on = Identity(go) {e} t = Concat<axis=0>(a, e) }}>"""


def model_of(text: str) -> ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g {text.replace("{", "{" + CONSTANTS, 1)}"""
    )


CONSTANTS = "zero = Constant<value_int=0>() last = Constant<value_int=-1>() "


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("(int64[1,k] r) { a = OptionalGetElement(o) r = NonZero(a) }", (1, 4), [[0, 1]]),
        ("(float[k] r) { a = OptionalGetElement(o) r = Unique(a) }", (0, 7, 0), [0, 7]),
        ("(float[p] r) { x = OptionalGetElement(o) " + COUNT
         + APPENDED.format(e="e = Neg(x)") + "}", (1, 4), [1, 4, -1, -4]),
        ("(bool h, int64[1,k] r) { h = OptionalHasElement(o) r = NonZero(y) }", None, False),
        ("(bool h, int64[1,k] r) { r = NonZero(y) h = OptionalHasElement(o) }", (1,), True),
        ("(float[j] n, int64[1,k] r) { a = OptionalGetElement(o) n = Neg(a) r = NonZero(y) }",
         (1, 4), [-1, -4]),
    ],
)  # fmt: skip
def test_an_optional_is_its_element_in_each_part(
    text: str, given: Sequence[float] | None, expected: object
) -> None:
    compiled = satura.compile(model_of(f"(optional(float[j]) o, float[w] y) => {text}"), threads=1)
    element = None if given is None else floats(*given)
    found = compiled.run({"o": element, "y": floats(0, 1)})
    np.testing.assert_array_equal(next(iter(found.values())), expected)


@pytest.mark.parametrize(
    "text",
    [
        "(int64[1,k] r) { t = ConcatFromSequence<axis=0>(q) r = NonZero(t) }",
        "(float[k] r, int64 n) { t = SequenceAt(q, last) r = Unique(t) n = SequenceLength(q) }",
    ],
)
def test_a_sequence_may_have_other_tensors_in_each_call(text: str) -> None:
    compiled = satura.compile(model_of(f"(seq(float[j]) q) => {text}"), threads=1)
    for tensors in ([floats(1, 4)], [floats(3), floats(2, 0)], [floats(0)] * 3):
        found = compiled.run({"q": tensors})
        if "n" in found:
            np.testing.assert_array_equal(found["r"], np.unique(tensors[-1]))
            assert found["n"] == len(tensors)
        else:
            np.testing.assert_array_equal(found["r"], np.nonzero(np.concatenate(tensors)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[p] r) { " + IS_LARGE + """q = SequenceConstruct(x, x) r = If(c) <
            then_branch = t () => (float[v] a) { a = ConcatFromSequence<axis=0>(q) },
            else_branch = e () => (float[n] w) { w = Neg(x) }> }""", [1, 4, 0, 1, 4, 0]),
        ("(float[p] r) { " + COUNT + "q = SplitToSequence<axis=0>(x) "
         + APPENDED.format(e="z = Constant<value_int=0>() e = SequenceAt(q, z)") + " }",
         [1, 4, 0, 1]),
        ("(float[1] y, float[k] r) { q = SplitToSequence<axis=0>(x) a = SequenceAt(q, last)"
         " r = Unique(a) y = SequenceAt(q, zero) }", [1]),
        ("(float[p] y) { " + IS_LARGE + """q = If(c) <
            then_branch = t () => (seq(float[n]) a) { m = Neg(x) a = SequenceConstruct(x, m) },
            else_branch = e () => (seq(float[n]) b) { b = SequenceConstruct(x, x) }>
            y = ConcatFromSequence<axis=0>(q) }""", [1, 4, 0, -1, -4, 0]),
        ("(float[n] y) { " + COUNT + "m = Neg(x) q = SequenceConstruct(x, m)"
         " y = SequenceAt(q, i) }", [-1, -4, 0]),
    ],
)  # fmt: skip
def test_sequences_are_read_by_the_node_and_behind_it(text: str, expected: list[float]) -> None:
    compiled = satura.compile(model_of(f"(float[n] x) => {text}"), threads=1)
    found = compiled.run({"x": floats(1, 4, 0)})
    np.testing.assert_array_equal(next(iter(found.values())), expected)


def test_a_sequence_may_be_a_result_beside_what_data_decide() -> None:
    text = "(float[n] x) => (seq(float[1]) q, int64[1,k] r)"
    compiled = satura.compile(
        model_of(text + "{ r = NonZero(x) q = SplitToSequence<axis=0>(x) }"), threads=1
    )
    for values in ((1, 4, 0), (2,), (0, 3)):
        found = compiled.run({"x": floats(*values)})
        assert [*found] == [*(f"q[{at}]" for at in range(len(values))), "r"]
        assert [found[f"q[{at}]"].tolist() for at in range(len(values))] == [[x] for x in values]


def test_a_loop_does_not_pass_on_a_sequence_where_data_say_how_often() -> None:
    text = f"""(float[n] x) => (float[p] y) {{ {COUNT} e = SequenceConstruct(x)
        q = Loop(i, , e) <body = b (int64 j, bool go, seq(float[w]) a)
            => (bool on, seq(float[w]) t) {{ on = Identity(go) t = SequenceInsert(a, x) }}>
        y = ConcatFromSequence<axis=0>(q) }}"""
    with pytest.raises(UnsupportedError, match="its number of steps is not known"):
        satura.compile(model_of(text), threads=1)
