"""Nodes on transposed tensors are saved as nodes on what these are transposes of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.defs import get_schema

import satura
from satura.rewrite.onnx.write.emitter import COMMUTING, REDUCTIONS
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import Typed, make_model, node
from tests.onnxruntime_reference import run
from tests.saved_programs import arguments_of, check, values
from tests.tiers import deep_but

SHAPE = (2, 3, 4)
PERMUTATIONS = ((0, 2, 1), (2, 0, 1), (2, 1, 0))
QUICK = ("Concat", "ReduceMax", "Softmax")
LOGICAL = {"And", "Not", "Or", "Xor"}
UNSIGNED = {"BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"}
SCALED = {"DequantizeLinear", "QuantizeLinear"}
LACKING: dict[str, dict[str, object]] = {
    "BitShift": {"direction": "LEFT"}, "Cast": {"to": TensorProto.INT64}, "Concat": {"axis": 1},
    "Mod": {"fmod": 1},
}  # fmt: skip
"""Attributes that an op cannot do without."""


def code_of(op: str) -> int:
    """The element type of the tensors that an op reads here."""
    if op in LOGICAL:
        return TensorProto.BOOL
    return TensorProto.UINT8 if op in UNSIGNED | {"DequantizeLinear"} else TensorProto.FLOAT


def variants(op: str) -> Iterator[dict[str, object]]:
    """Attributes of an op: none that it can do without, and each axis."""
    yield LACKING.get(op, {})
    if op in REDUCTIONS:
        yield {"keepdims": 0}
        yield {"keepdims": 0, "noop_with_empty_axes": 1}
    elif "axis" in get_schema(op).attributes and op not in SCALED:
        for axis in range(-3, 3):
            yield {**LACKING.get(op, {}), "axis": axis}


def models(op: str, order: tuple[int, ...]) -> Iterator[onnx.ModelProto]:
    """Models in which an op reads transposed tensors: a reduction with each choice of axes."""
    code = code_of(op)
    count = 3 if op == "Where" else max(1, get_schema(op).min_input - (op in SCALED))
    count = 2 if op in ("Concat", "Max", "Min") else count
    inputs = {f"x{at}": Typed(SHAPE, code) for at in range(count)}
    if op == "Where":
        inputs["x0"] = Typed(SHAPE, TensorProto.BOOL)
    turned = [node("Transpose", x, f"t{x}", perm=order) for x in inputs]
    read = " ".join(f"t{x}" for x in inputs)
    constants: dict[str, object] = {"s": np.float32(0.3)} if op in SCALED else {}
    for attributes in variants(op):
        given: list[list[int] | None] = [None]
        if op in REDUCTIONS:
            given += [[0], [1], [-1], [0, -1], [2, 1]]
        for axes in given:
            more = {} if axes is None else {"a": np.array(axes, np.int64)}
            names = [read, *constants, *more]
            nodes = [*turned, node(op, " ".join(names), "y", **attributes)]
            yield make_model(nodes, inputs, constants | more, 18 if op != "Gelu" else 20)


@pytest.mark.parametrize("order", deep_but(PERMUTATIONS[1:2], PERMUTATIONS))
@pytest.mark.parametrize("op", deep_but(QUICK, sorted(COMMUTING | REDUCTIONS)))
def test_what_is_saved_of_it_gives_the_same(op: str, order: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    for model in models(op, order):
        saved = to_model(satura.optimize(model, rules="none"))
        onnx.checker.check_model(saved, full_check=True)
        arguments = {}
        for info in model.graph.input:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            values = (
                random.uniform(0.1, 0.9, SHAPE)
                if dtype == np.float32
                else random.integers(0, 2, SHAPE)
            )
            arguments[info.name] = values.astype(dtype)
        (found,), (meant,) = run(saved, arguments), run(model, arguments)
        assert found.shape == meant.shape
        np.testing.assert_allclose(found, meant, rtol=1e-5, atol=1e-6)


def test_channels_stay_first_in_what_is_saved() -> None:
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("Mul", "a slope", "s"),
        node("Max", "a s", "b"), node("MaxPool", "b", "c", **pool),
        node("AveragePool", "b", "d", count_include_pad=1, **pool), node("Add", "c d", "e"),
        node("Concat", "e c", "f", axis=1), node("Slice", "f two four one", "g"),
        node("Conv", "g w", "h"), node("ReduceSum", "h one", "y"),
    ]  # fmt: skip
    constants = {
        "w": values(DType.F32, (2, 2, 3, 3), special=False), "two": [1], "four": [3], "one": [1],
        "slope": np.array([[[0.1]], [[0.2]]], np.float32),
    }  # fmt: skip
    program = satura.optimize(make_model(nodes, {"x": ("n", 2, 9, 11)}, constants))
    model = to_model(program)
    assert model.opset_import[0].version == 18  # of which AveragePool is fast in onnxruntime
    ops = {each.op_type for each in model.graph.node}
    assert {"Conv", "MaxPool", "AveragePool", "Concat"} <= ops and not ops & {"Transpose", "Pad"}
    check(program, arguments_of(program, special=False, n=2), tolerance=2e-5)


def test_what_stands_between_transposes_is_done_without_them() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3, 4, 5))
    turned = build.transpose(x, (2, 0, 3, 1))
    padded = build.pad(turned, (0, 1, 2, 0), (3, 0, 1, 0), 0.5)
    cut = build.slice(padded, (1, 0, 2, 0), (5, 3, 6, 3), (1, 1, 1, 1))
    scale = build.constant(values(DType.F32, (5, 1, 6, 1), special=False))
    scaled = build.binary("mul", cut, build.broadcast(scale, (5, 3, 6, 3)))
    joined = build.concat([scaled, cut], 2)
    total = build.reduce("sum", joined, (1, 3))
    program = build.program({"y": build.transpose(total, (1, 3, 0, 2))})
    assert "Transpose" not in {each.op_type for each in to_model(program).graph.node}
    check(program, arguments_of(program, special=False))
