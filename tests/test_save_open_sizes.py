"""Saved programs of open sizes follow the shapes of their inputs, and keep declared names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import satura
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import Inputs, make_model, node
from tests.onnxruntime_reference import run
from tests.saved_programs import arguments_of, check, values


def test_symbolic_dims_follow_the_inputs_shapes() -> None:
    n, m = symbol("n"), symbol("m")
    build = Builder()
    x = build.input("x", DType.F32, (n, 2 * m, 3))
    y = build.input("y", DType.F32, (m, n))
    row = build.reshape(x, (n, 2, m, 3))
    program = build.program(
        {
            "split": build.transpose(row, (1, 0, 2, 3)),
            "flat": build.reshape(x, (6 * n * m,)),
            "pairs": build.broadcast(build.reshape(y, (m, n, 1)), (m, n, n + m)),
            "padded": build.pad(y, (n, 1), (1, m // 2), 7),
            "middle": build.slice(x, (0, m - 1, 0), (n, m, 3)),
            "back": build.slice(y, (m - 1, n - 1), (m, n), (-1, -1)),
            "halves": build.slice(y, (0, 0), (m, (n + 1) // 2), (1, 2)),
            "count": build.extent(n * m - 3),
            "floor": build.extent((n - 5) // 2),
            "ramp": build.iota((n, m), 0, DType.F32),
            "total": build.reduce("sum", x, (0, 1)),
            "largest": build.reduce("max", y, (1,)),
            "first": build.arg_reduce("max", y, 0),
            "product": build.matmul(y, build.reshape(x, (n, 6 * m))),
            "pool": build.pool("max", x, build.window(DType.F32, (1, 2, 1), (1, 2, 1))),
            "integers": build.reduce("sum", build.cast(y, DType.I64), (0,)),
            "factors": build.reduce("prod", build.cast(y, DType.I32), (0,)),
        }
    )
    model = to_model(program)
    shapes = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in model.graph.input
    ]
    assert shapes == [["n", "2*m", 3], ["m", "n"]]
    sizes = ({"n": 4, "m": 3}, {"n": 1, "m": 1}, {"n": 5, "m": 2})
    check(
        program, *(arguments_of(program, special=False, **size) for size in sizes), tolerance=1e-5
    )


def test_symbolic_convolution() -> None:
    n, h = symbol("n"), symbol("h")
    build = Builder()
    x = build.input("x", DType.F32, (n, h, 5, 2))
    weight = build.constant(values(DType.F32, (3, 3, 2, 4), special=False))
    window = build.window(DType.F32, (3, 3), (2, 1), lo=(1, 1), hi=(1, 1))
    wide = build.constant(values(DType.F64, (3, 3, 2, 4), special=False))
    fine = build.window(DType.F64, (3, 3), (2, 1), lo=(1, 1), hi=(1, 1))
    program = build.program(
        {
            "narrow": build.conv(x, weight, window),
            "wide": build.conv(build.cast(x, DType.F64), wide, fine),
        }
    )
    sizes = ({"n": 2, "h": 6}, {"n": 1, "h": 1}, {"n": 0, "h": 3})
    check(
        program, *(arguments_of(program, special=False, **size) for size in sizes), tolerance=1e-5
    )


@pytest.mark.parametrize("dtype", [DType.F32, DType.BOOL])
def test_extrema_along_an_axis_that_is_empty_at_some_sizes(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (symbol("n"), 3))
    program = build.program({name: build.reduce(name, x, (0,)) for name in ("max", "min")})
    check(program, *(arguments_of(program, n=n) for n in (0, 1, 4)))


def test_open_extents_of_reshapes_need_no_nodes() -> None:
    build = Builder()
    n, m = symbol("n"), symbol("m")
    x = build.input("x", DType.F32, (n, m, 6))
    turned = build.transpose(build.input("z", DType.F32, (1, n, 4)), (1, 0, 2))
    results = {
        "a": build.reshape(x, (n, m, 2, 3)), "b": build.reshape(turned, (1, n, 2, 2)),
        "c": build.reshape(turned, (n * 4,)), "d": build.reshape(x, (m, n, 6)),
    }  # fmt: skip
    program = build.program(results)
    model = to_model(program)
    shapes = [each.op_type for each in model.graph.node if each.op_type == "Shape"]
    assert len(shapes) == 2  # for d
    check(program, *(arguments_of(program, n=n, m=m) for n in (0, 1, 3) for m in (0, 2)))


@pytest.mark.parametrize(
    ("start", "end", "shape"),
    [(1, 100, (0, 1, 4)), (0, 5, (0, 2, 2)), (-4, 2**62, (0, 4, 1)), (3, -3, (0, 4, 1))],
)
def test_slices_are_clamped_at_every_size(start: int, end: int, shape: tuple[int, ...]) -> None:
    nodes = [node("Slice", "x s e", "a"), node("Reshape", "a shape")]
    constants = {"s": [start], "e": [end], "shape": shape}
    model = make_model(nodes, {"x": ("n", 4)}, constants)
    saved = to_model(satura.optimize(model))
    for n in (0, 1, 3, 4, 5, 6, 7, 99, 100, 101):
        x = np.arange(n * 4, dtype=np.float32).reshape(n, 4)
        wanted = x[start:end]
        (found,) = run(saved, {"x": x})
        np.testing.assert_array_equal(found, wanted.reshape(len(wanted), *shape[1:]))


def test_declared_names_of_extents_are_kept(tmp_path: Path) -> None:
    """Where a name is that of one extent, which is computed from sizes."""
    nodes = [
        node("Concat", "past x", "joined", axis=1), node("Relu", "joined", "frames"),
        node("Concat", "x x x x", "fourth", axis=1),
        node("Concat", "x x", "twice", axis=1), node("Concat", "x x x", "thrice", axis=1),
    ]  # fmt: skip
    inputs: Inputs = {"past": ["b", "old", 8], "x": ["b", "new", 8]}
    declared: dict[str, list[str | int | None]] = {
        "joined": ["b", "old + new", 8], "frames": ["b", "length", 8],
        "twice": ["b", "doubled", 8], "thrice": ["b", "length", 8], "fourth": ["b", "new", 8],
    }  # fmt: skip
    model = make_model(nodes, inputs, outputs=tuple(declared))
    for output, dims in zip(model.graph.output, declared.values(), strict=True):
        output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, dims))
    programs = (
        satura.load(model),
        satura.optimize(model),
        satura.compile(model, threads=1).program,
    )
    for program in programs:
        satura.save(program, tmp_path / "out.onnx")
        graph = onnx.load(tmp_path / "out.onnx").graph
        found = {x.name: _dims(x) for x in graph.output}
        assert found["joined"] == ["b", "old + new", 8] and found["frames"][1] == "old + new"
        assert found["twice"][1] == "doubled", "a name of its own"
        assert found["thrice"][1] == "3*new", "a name of two"
        assert found["fourth"][1] == "4*new", "the name of a size"
        assert [_dims(x) for x in graph.input] == [["b", "old", 8], ["b", "new", 8]]


def _dims(value: onnx.ValueInfoProto) -> list[str | int]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
