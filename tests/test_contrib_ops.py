"""Ops of onnxruntime, which are defined as functions of ONNX's, against onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper, parser
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

import satura
from satura.errors import ModelError, UnsupportedError
from satura.ops import Scalar, TensorType, local_ops, op
from satura.rewrite.onnx.contrib import definition
from satura.rewrite.onnx.contrib.definition import DOMAIN
from satura.rewrite.onnx.contrib.table import DEFINITIONS
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.interpreter import interpret
from tests.contrib_attention_cases import attended
from tests.contrib_cases import Array, Case, f32s, fused, moved, normalised
from tests.contrib_quantised_cases import quantised
from tests.onnx_models import make_model, node
from tests.onnxruntime_reference import run

CASES = [*chain(quantised(), fused(), normalised(), moved(), attended())]
NAMES = sorted(name for _, name in DEFINITIONS)
MOST_TIES = 0.02  # of the elements of a quantised result


def expected(case: Case) -> dict[str, Array]:
    """What onnxruntime computes, or NumPy where that has no kernel for CPUs."""
    names = [name for name in case.outputs if name]
    if case.oracle is not None:
        return {names[0]: case.oracle(*case.inputs)}
    return dict(zip(names, run(case.model, case.arguments), strict=True))


def assert_is(case: Case, found: dict[str, Array], wanted: dict[str, Array]) -> None:
    """Integers differ by one step at most, and at ties; floats by rounding."""
    for name in case.compared or wanted:
        x, y = found[name], wanted[name]
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if x.dtype.kind in "iu":
            apart = np.abs(x.astype(np.int64) - y)
            assert apart.max(initial=0) <= 1 and np.mean(apart) <= MOST_TIES
        else:
            np.testing.assert_allclose(x, y, rtol=case.tolerance, atol=case.tolerance)


def of(name: str) -> list[Case]:
    return [case for case in CASES if case.op_type == name]


@pytest.mark.parametrize("name", NAMES)
def test_an_op_is_that_of_onnxruntime(name: str) -> None:
    assert len(of(name)) > 0
    for case in of(name):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no op runs on the host
            program = load(case.model)
        assert_is(case, interpret(program, case.arguments), expected(case))


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_has_standard_ops_alone(name: str) -> None:
    case = of(name)[0]
    saved = to_model(load(case.model))
    onnx.checker.check_model(saved, full_check=True)
    assert {each.domain for each in saved.graph.node} == {""}
    found = dict(zip([o.name for o in saved.graph.output], run(saved, case.arguments), strict=True))
    assert_is(case, found, expected(case))


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_model_has_their_numbers(name: str, tmp_path: Path) -> None:
    for case in of(name)[::3]:
        compiled = satura.compile(case.model, threads=1)
        assert compiled.statistics["host-count"] == 0
        assert_is(case, compiled.run(case.arguments), expected(case))
        satura.save(satura.optimize(case.model), tmp_path / "saved.onnx")
        saved = onnx.load(tmp_path / "saved.onnx")
        onnx.checker.check_model(saved)
        names = [output.name for output in saved.graph.output]
        assert_is(case, dict(zip(names, run(saved, case.arguments), strict=True)), expected(case))
