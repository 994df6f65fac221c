"""Scatters and the places of the first: kernels, the interpreter and saved models agree."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.errors import CallError
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType
from tests.guarded_memory import check
from tests.onnx_models import Shape, Typed, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but, seeds

KINDS = ("last", "sum", "prod", "max", "min")


def elements(random: np.random.Generator, dtype: DType, *shape: int) -> Array:
    """Few different ones, so that many are equal; special floats among them."""
    found = random.integers(0, 2 if dtype is DType.BOOL else 5, shape).astype(dtype.numpy)
    if dtype.is_float and found.size:
        specials = [np.nan, np.inf, -np.inf, -0.0]
        places = random.integers(0, found.size, found.size // 4)
        found.reshape(-1)[places] = random.choice(specials, len(places)).astype(dtype.numpy)
    return found


def random_scatter(seed: int) -> tuple[Program, dict[str, Array]]:
    """A scatter, and the first elements of rows, with sizes that are open or not."""
    random = np.random.default_rng(seed)
    dtype = COMPUTED[int(random.integers(len(COMPUTED)))]
    places, width = int(random.choice([1, 2, 9])), int(random.choice([0, 1, 3, 40]))
    count, is_open = int(random.choice([0, 1, 30])), bool(random.integers(2))
    kind = str(random.choice(KINDS))
    if dtype is DType.BOOL or dtype.compute is not dtype:
        kind = "last"
    p, c, w = (
        symbol(n) if is_open else size
        for n, size in zip("pcw", (places, count, width), strict=True)
    )
    build = Builder()
    x, updates = build.input("x", dtype, (p, w)), build.input("updates", dtype, (c, w))
    indices = build.input("indices", DType.I64, (c,))
    given = {
        "x": elements(random, dtype, places, width),
        "updates": elements(random, dtype, count, width),
        "indices": random.integers(0, places, count),
    }
    rows = build.input("rows", dtype, (p, w))
    given["rows"] = elements(random, dtype, places, width)
    kept = int(random.integers(0, width + 1))
    first = build.first_places(rows, kept, bool(random.integers(2)))
    y = build.scatter(x, indices, updates, kind)
    return build.program({"y": y, "first": first}), given


@pytest.mark.parametrize("seed", deep_but([3, 11], seeds(80), range(24)))
def test_kernels_compute_what_the_interpreter_does(seed: int) -> None:
    program, given = random_scatter(seed)
    expected = interpret(program, given)
    for threads in (1, 2):
        for name, got in satura.compile(program, threads=threads).run(given).items():
            np.testing.assert_array_equal(got, expected[name])


@pytest.mark.deep
@pytest.mark.parametrize("seed", seeds(16))
def test_kernels_stay_inside_their_operands(seed: int) -> None:
    program, given = random_scatter(seed)
    check(program, given, {"y": True, "first": True})


@pytest.mark.parametrize("kind", KINDS)
def test_saved_scatters_agree_with_onnxruntime(kind: str) -> None:
    build = Builder()
    x, updates = build.input("x", DType.F32, (4, 3)), build.input("updates", DType.F32, (6, 3))
    indices = build.input("indices", DType.I64, (6,))
    y = build.scatter(x, indices, updates, kind)
    program = build.program({"y": y, "first": build.first_places(y, 2, False)})
    given = {
        "x": random_input(4, 3), "updates": random_input(6, 3, seed=1),
        "indices": np.array([3, 1, 1, 0, 3, 2]),
    }  # fmt: skip
    expected = interpret(program, given)
    for wanted, got in zip(expected.values(), run(to_model(program), given), strict=True):
        assert_close(got, wanted, 1e-6)


def test_an_index_outside_is_an_error_of_the_call() -> None:
    inputs: dict[str, Shape | Typed] = {"x": (4, 3), "i": Typed((2, 2)), "u": (2,)}
    compiled = satura.compile(make_model([node("ScatterND", "x i u")], inputs, opset=18), threads=1)
    given = {"x": random_input(4, 3), "u": random_input(2)}
    compiled.run({**given, "i": np.array([[3, -3], [-4, 2]])})
    for wrong in ([0, 3], [4, 0], [-5, 0], [1, -4]):
        indices = {"i": np.array([[0, 0], wrong])}
        with pytest.raises(CallError, match=r"outside \["):
            compiled.run({**given, **indices})
        with pytest.raises(CallError, match=r"outside \["):
            interpret(compiled.source, {**given, **indices})


def test_of_equal_elements_the_first_comes_first() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 9))
    program = build.program({"y": build.first_places(x, 9), "z": build.first_places(x, 6, False)})
    nan, inf = np.nan, np.inf
    given = {"x": np.array([[0.0, nan, -0.0, 2, -inf, nan, 2, inf, 0]], np.float32)}
    found = satura.compile(program, threads=1).run(given)
    assert found["y"].tolist() == [[1, 5, 7, 3, 6, 0, 2, 8, 4]]
    assert found["z"].tolist() == [[4, 0, 2, 8, 3, 6]]
