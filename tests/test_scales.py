"""Scales that meet: a quantised residual block multiplies every addend once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import satura
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.attributes import BinaryFn
from satura.rules import DEFAULT
from tests.onnx_models import make_model, node

SHAPE = (1, 16, 9, 11)


def block(zero_point: int) -> onnx.ModelProto:
    """A convolution with a bias whose result is quantised, added to its quantised operand, and
    quantised again."""
    random = np.random.default_rng(3)
    constants: dict[str, object] = {
        "s": np.float32(0.03), "z": np.uint8(zero_point), "t": np.float32(0.07),
        "w": random.integers(-127, 128, (16, 16, 3, 3)).astype(np.int8),
        "u": np.linspace(0.0004, 0.0009, 16, dtype=np.float32), "v": np.zeros(16, np.int8),
        "b": random.normal(size=16).astype(np.float32),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "a"), node("DequantizeLinear", "a s z", "c"),
        node("DequantizeLinear", "w u v", "f", axis=0),
        node("Conv", "c f b", "d", pads=[1] * 4),
        node("QuantizeLinear", "d t z", "e"), node("DequantizeLinear", "e t z", "g"),
        node("Add", "c g", "h"), node("QuantizeLinear", "h t z", "y"),
    ]  # fmt: skip
    return make_model(nodes, {"x": SHAPE}, constants, 13)


def multiplications(schedule: Schedule) -> int:
    """How many products of tensors and numbers the dispatches compute."""
    nodes = schedule.program.nodes
    inside = {index for dispatch in schedule.dispatches for index in dispatch.nodes}
    scaled = (index for index in inside if nodes[index].attributes == (BinaryFn("mul"),))
    return sum(not is_known(schedule, index) for index in scaled)


def is_known(schedule: Schedule, index: int) -> bool:
    """Whether a node is computed of constants."""
    node = schedule.program.nodes[index]
    if not node.operands:
        return node.op.name != "input"
    return all(is_known(schedule, operand) for operand in node.operands)


@pytest.mark.parametrize("zero_point", [0, 131])
def test_every_addend_is_multiplied_once(zero_point: int) -> None:
    """The first dispatch divides what it quantises; the other has sums, steps and its operand."""
    model = block(zero_point)
    compiled = satura.compile(model, threads=1)
    assert multiplications(compiled.rewritten.schedule) == 3
    x = np.random.default_rng(1).normal(0, 2, SHAPE).astype(np.float32)
    found, meant = compiled.run({"x": x})["y"], interpret(satura.load(model), {"x": x})["y"]
    differences = np.abs(found.astype(int) - meant.astype(int))
    assert differences.max() <= 1 and np.mean(differences > 0) <= 0.01  # at ties


@pytest.mark.parametrize("name", ["scale_into_biased", "scale_into_sum"])
def test_without_a_law_there_is_one_more(name: str) -> None:
    others = RuleSet(*(rule for rule in DEFAULT if rule.name != name))
    compiled = satura.compile(block(131), threads=1, rules=others)
    assert multiplications(compiled.rewritten.schedule) == 4
