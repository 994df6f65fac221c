"""Slices of one element of an open axis, which broadcast: they are no whole axes."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import satura
from satura.rewrite.errors import EqualSizesWarning
from satura.rewrite.onnx.lower.broadcasting import is_single
from satura.rewrite.program.equal_sizes import in_words
from satura.rewrite.types.dims import symbol
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but

SLICES = [(-1, 2**63 - 1), (-1, 2**31 - 1), (-1, 1000), (0, 1), (-2, -1), (3, 4), (100, 101)]
SIZES = (0, 1, 2, 3, 4, 5, 8, 130)


def model_of(slice_: tuple[int, int], node: str, shape: str, axis: int = 1) -> ModelProto:
    """A model with x, `one` element of an axis of it, and y of both."""
    start, end = slice_
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 16]> g (float[{shape}] x) => (float y) {{
            s = Constant<value_ints=[{start}]>() e = Constant<value_ints=[{end}]>()
            a = Constant<value_ints=[{axis}]>() one = Slice(x, s, e, a)
            {node} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def check(model: ModelProto, folder: Path, shapes: Sequence[tuple[int, ...]]) -> None:
    """Compare what is written and compiled with the model, wherever that runs: mostly."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", EqualSizesWarning)
        satura.save(satura.optimize(model), folder / "optimized.onnx")
        satura.save(satura.load(model), folder / "loaded.onnx")
    compiled = satura.compile(model, threads=1)
    optimized, loaded = (onnx.load(folder / f"{name}.onnx") for name in ("optimized", "loaded"))
    count = 0
    for shape in shapes:
        given = {"x": np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)}
        try:
            (wanted,) = run(model, given)
        except Exception:
            continue  # no runtime runs it
        count += wanted.size > 1
        assert_close(compiled.run(given)["y"], wanted, 1e-5)
        for written in (optimized, loaded) if wanted.size else ():
            assert_close(run(written, given)[0], wanted, 1e-5)
    assert count


@pytest.mark.parametrize("slice_", deep_but([SLICES[0], SLICES[3]], SLICES))
def test_an_element_of_an_axis_is_not_the_axis(slice_: tuple[int, int], tmp_path: Path) -> None:
    check(model_of(slice_, "y = Div(x, one)", "b, w"), tmp_path, [(2, n) for n in SIZES])


NODES = {
    "Where": "l = Less(x, one) y = Where(l, x, one)",
    "the other way": "y = Sub(one, x)",
    "Max": "y = Max(one, x, one)",
    "PRelu": "n = Neg(x) y = PRelu(n, one)",
    "Expand": "s0 = Shape(x) y = Expand(one, s0)",
    "Expand to fewer": "s0 = Shape(one) y = Expand(x, s0)",
    "of a pool": """p = Unsqueeze(x, a) q = MaxPool<kernel_shape=[3], strides=[2], pads=[1, 1]>(p)
        two = Constant<value_ints=[2]>() o = Slice(q, s, e, two) y = Div(q, o)""",
    "of two": "z = Neg(x) o = Slice(z, s, e, a) p = Mul(one, o) y = Add(p, x)",
    "a Clip's mean": "m = ReduceMean<axes=[1]>(one) y = Sub(x, m)",
}


@pytest.mark.parametrize("name", deep_but(["the other way", "Expand", "of a pool"], NODES))
def test_nodes_broadcast_an_element_of_an_axis(name: str, tmp_path: Path) -> None:
    end = (-1, 2**63 - 1)
    check(model_of(end, NODES[name], "b, w"), tmp_path, [(3, n) for n in SIZES])


STACKED = {
    "MatMul": "t = Transpose<perm=[0, 2, 1]>(one) y = MatMul(x, t)",
    "MatMul, the other way": "t = Transpose<perm=[0, 2, 1]>(x) y = MatMul(one, t)",
    "Einsum": 'y = Einsum<equation="bij,bkj->bik">(x, one)',
    "Einsum, the other way": 'y = Einsum<equation="bij,bkj->bik">(one, x)',
    "Gemm": """f = Flatten<axis=1>(one) g = Flatten<axis=1>(x) t = Transpose(g) u = MatMul(f, t)
        y = Gemm(g, t, u)""",
}


@pytest.mark.parametrize("name", deep_but(["MatMul", "Gemm"], STACKED))
def test_products_broadcast_a_single_matrix(name: str, tmp_path: Path) -> None:
    model = model_of((-1, 2**63 - 1), STACKED[name], "w, n, 4", axis=0)
    check(model, tmp_path, [(w, n, 4) for w in (1, 2, 3, 8) for n in (1, 2, 5)])


def test_sizes_that_are_equal_where_a_table_is_long_enough_are_no_reason_to_warn(
    tmp_path: Path,
) -> None:
    """A causal mask that is cut to the length of the axis, as by GPTs with a cache."""
    node = """n = Shape(x) one_ = Constant<value_ints=[1]>() w = Gather(n, one_)
        z = Constant<value_ints=[0]>() table = ConstantOfShape(long) m = Slice(table, z, w, z)
        y = Add(x, m)"""
    model = model_of((-1, 2**63 - 1), node, "b, w")
    model.graph.initializer.append(numpy_helper.from_array(np.array([1024]), "long"))
    check(model, tmp_path, [(2, n) for n in SIZES])


def test_what_counts_as_one_is_so_at_typical_sizes() -> None:
    n, m = symbol("n"), symbol("m")
    last = 1 - 3 // (n + 2) + n * (3 // (n + 2))  # of x[:, -1:], 0 where n is
    assert is_single(last, n, {}) and not is_single(n, last, {})
    assert is_single(last, m, {}) and not is_single(n, m, {}) and not is_single(2 * n, m, {})
    assert not is_single(n - n // 1024, n, {})
    assert is_single((n + 999) // 1000, n, {"n": 300})


def test_sizes_are_shown_in_words() -> None:
    n, m = symbol("n"), symbol("m")
    assert in_words(2 * n + 1) == "2*n+1"
    long = 1 - 3 // (n + 2) + (n + m) * (3 // (n + 2)) + n * n * m * m
    assert in_words(long) == "computed from m and n (16777217 where m = 64, n = 64)"
