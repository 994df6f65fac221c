"""Quotients of whole numbers that are rounded, as of places by strides, are the interpreter's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import satura
from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from tests.onnx_models import Typed, make_model, node

DIVISORS = (3.0, 7.0, 41.0, 47.0, 49.0, 55.0, 61.0, 1.5, 2.5, 255.0, 0.1, 0.3, 0.06, 1e-3)


@pytest.mark.parametrize(("rounding", "factor"), [("Floor", 1), ("Ceil", 1), ("Floor", 2)])
def test_places_divided_by_strides_are_rounded_as_they_stand(rounding: str, factor: int) -> None:
    """With reciprocals 82 / 41 would be a little less than 2, and 7 / 7 a little more than 1."""
    scaled = [node("Mul", "whole two", "x")] if factor == 2 else []
    nodes, names = [node("Cast", "i", "whole" if scaled else "x", to=1), *scaled], []
    for at, _ in enumerate(DIVISORS):
        names.append(f"y{at}")
        nodes += [node("Div", f"x d{at}", f"q{at}"), node(rounding, f"q{at}", f"y{at}")]
    constants = {f"d{at}": np.float32(divisor) for at, divisor in enumerate(DIVISORS)}
    constants |= {"two": np.float32(2)} if scaled else {}
    model = make_model(nodes, {"i": Typed(("n",))}, constants, outputs=tuple(names))
    places = {"i": np.arange(3000)}
    expected, found = interpret(load(model), places), satura.compile(model, 1).run(places)
    for name, divisor in zip(names, DIVISORS, strict=True):
        np.testing.assert_array_equal(found[name], expected[name], str(divisor))


@pytest.mark.parametrize("kind", ["known", "given", "with a little"])
def test_places_divided_by_many_strides_are_rounded_as_they_stand(kind: str) -> None:
    """Known strides, those that a call gives, and those with 1e-6 against a division by 0."""
    strides = np.array(DIVISORS, np.float32)
    inputs, constants = {"x": Typed((300_000, 1), TensorProto.FLOAT)}, {"d": strides}
    nodes = [node("Div", "x e", "q"), node("Floor", "q", "y")]
    arguments = {"x": (np.arange(300_000) % 3000).astype(np.float32)[:, None]}
    if kind == "known":
        nodes[0].input[1] = "d"
    else:
        inputs["d"] = Typed((len(DIVISORS),), TensorProto.FLOAT)
        constants = {"little": np.array(1e-6 if kind == "with a little" else 0, np.float32)}
        nodes.insert(0, node("Add", "d little", "e"))
        arguments["d"] = strides
    model = make_model(nodes, inputs, constants, outputs=("y",))
    found = satura.compile(model, 1).run(arguments)["y"]
    np.testing.assert_array_equal(found, interpret(load(model), arguments)["y"])


@pytest.mark.parametrize("rounding", ["ceil", "round_prefer_floor"])
def test_the_nearest_element_is_the_same_whether_sizes_are_open_or_not(rounding: str) -> None:
    nodes = [
        node("Shape", "z", "s"),
        node("Resize", "x   s", "y", mode="nearest", nearest_mode=rounding),
    ]
    nodes[1].input[:] = ["x", "", "", "s"]
    model = make_model(nodes, {"x": (1, 1, 3, 4), "z": (1, 1, "n", 4)}, {}, opset=18)
    compiled, program = satura.compile(model, 1), load(model)
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    for size in range(1, 12):
        values = {"x": x, "z": np.zeros((1, 1, size, 4), np.float32)}
        np.testing.assert_array_equal(compiled.run(values)["y"], interpret(program, values)["y"])
