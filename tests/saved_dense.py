"""A dense layer as a program, and a file in which it is saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import satura
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType


def dense(rows: object = 3) -> Program:
    """tanh(x · w + b), with a constant, an input and a result that has two names for outputs."""
    draw = np.random.default_rng(5).standard_normal
    build = Builder()
    extent = symbol(rows) if isinstance(rows, str) else 3
    x = build.input("x", DType.F32, (extent, 70))
    w = build.constant(draw((70, 24)).astype(np.float32), DType.F32)
    bias = build.constant(draw((1, 24)).astype(np.float32), DType.F32)
    shaped = build.broadcast(bias, (extent, 24))
    y = build.unary("tanh", build.binary("add", build.matmul(x, w), shaped))
    return build.program({"y": y, "again": y, "bias": bias, "x again": x})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "dense.satura"
    satura.compile(dense(), threads=1, rules="none").save(path)
    return path
