"""Files that commands are tried on: a model and its argument, and rules of which one is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import make_model, node


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """T -> relu -> T back -> + 1, on [rows, 3]: without rules two transposes stay."""
    nodes = [
        node("Transpose", "x", "t"), node("Relu", "t", "r"), node("Transpose", "r", "b"),
        node("Add", "b one"),
    ]  # fmt: skip
    found = make_model(nodes, {"x": ("rows", 3)}, {"one": np.ones(1, np.float32)})
    path = tmp_path / "model.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(found), path)
    return path


@pytest.fixture
def settles_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed waits for nobody's threads."""
    monkeypatch.setattr("satura.commands.timing.SETTLING", 0.0)


@pytest.fixture
def value() -> Array:
    return np.array([[1, -2, 3], [-4, 5, np.nan]], np.float32)


RULES = """
from satura.rewrite.types.attributes import Perm, UnaryFn
from satura.rewrite.language.dsl import Law, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import transpose, unary


@rule
def drop_relu(x: Tensor) -> Law:
    \"\"\"relu(x) = x, which is wrong\"\"\"
    return rewrites(unary("relu", x), x)


@attribute_function
def broken(p: Perm) -> Perm:
    \"\"\"prints, and raises\"\"\"
    print("{")
    raise ValueError("no such permutation")


@rule
def break_transpose(x: Tensor, p: Perm) -> Law:
    \"\"\"a computation that fails\"\"\"
    return rewrites(transpose(x, p), transpose(x, broken(p)))
"""
