"""The onnx package's own node tests: each loads, and the interpreter gives the shipped outputs.

Inputs that decide a shape become constants, as they are in models. What has no lowering must be
listed here, by op; what is refused must be refused for a listed reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from satura.rewrite.errors import SaturaError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.tensor_type import Array

HOST_OPS = {
    "ArrayFeatureExtractor", "Adagrad", "Adam", "BatchNormalization", "Binarizer", "BitCast",
    "Col2Im", "CumProd", "CumSum", "DFT", "DeformConv", "Det", "Dropout", "FlexAttention", "GRU",
    "Einsum", "LSTM", "LinearAttention", "MaxUnpool",
    "MelWeightMatrix", "Momentum",
    "OptionalGetElement", "OptionalHasElement", "RNN", "RandomUniformLike", "ReverseSequence",
    "RoiAlign", "ScatterElements", "ScatterND", "TensorScatter", "TfIdfVectorizer", "TopK",
    "TreeEnsemble",
}  # fmt: skip
REFUSED = (
    "element type", "only tensors are supported", "control flow", "depends on data",
    "is not known", "opset 1 is not supported", "no reference implementation", "domain",
)  # fmt: skip
RANDOM = ("Bernoulli", "RandomUniformLike")
# onnx infers a two-sided spectrum for these one-sided ones.
WRONGLY_INFERRED = {"test_stft", "test_stft_with_window"}


@dataclass(frozen=True)
class Outcome:
    """What became of one case: the ops it runs on the host, or why it was refused or is wrong."""

    name: str
    host: tuple[str, ...] = ()
    refused: str = ""
    wrong: str = ""


@cache
def outcomes() -> tuple[Outcome, ...]:
    """All cases, run once."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tuple(_outcome(case) for case in collect_testcases(None) if case.model is not None)


def _outcome(case: TestCase) -> Outcome:
    try:
        try:
            return _run(case, _model(case), {})
        except UnsupportedError:
            model, constants = _with_constants(case)
            return _run(case, model, constants)
    except UnsupportedError as error:
        return Outcome(case.name, refused=str(error))
    except SaturaError as error:
        return Outcome(case.name, wrong=str(error))


def _model(case: TestCase) -> ModelProto:
    assert case.model is not None
    return case.model


def _with_constants(case: TestCase) -> tuple[ModelProto, dict[str, Array]]:
    """The case's model with every tensor input but the first float one as an initializer."""
    model = ModelProto()
    model.CopyFrom(_model(case))
    constants = {}
    for position, (info, value) in enumerate(_inputs(case, model)):
        decides = position > 0 or value.dtype.kind == "i" or value.ndim == 0
        if decides and value.dtype.kind in "iufb":
            model.graph.initializer.append(numpy_helper.from_array(value, info))
            constants[info] = value
    return model, constants


def _inputs(case: TestCase, model: ModelProto) -> list[tuple[str, Array]]:
    values = (case.data_sets or [])[0][0]
    pairs = zip(model.graph.input, values, strict=False)
    return [(info.name, _array(value)) for info, value in pairs if not isinstance(value, list)]


def _array(value: object) -> Array:
    if isinstance(value, TensorProto):
        return np.asarray(numpy_helper.to_array(value))
    return np.asarray(value)


def _run(case: TestCase, model: ModelProto, constants: dict[str, Array]) -> Outcome:
    program = load(model)
    host = tuple(sorted({call.op_type for call in _host_calls(program)}))
    for inputs, outputs in case.data_sets or []:
        names = [info.name for info in model.graph.input]
        feeds = {name: _array(value) for name, value in zip(names, inputs, strict=False)}
        known = {name: value for name, value in feeds.items() if name not in constants}
        results = interpret(program, known)
        if not any(op in RANDOM for op in host):
            wrong = _difference(case, [results[o.name] for o in model.graph.output], outputs)
            if wrong:
                return Outcome(case.name, host, wrong=wrong)
    return Outcome(case.name, host)


def _host_calls(program: Program) -> list[HostCall]:
    attributes = [node.attributes[0] for node in program.nodes if node.attributes]
    return [call for call in attributes if isinstance(call, HostCall)]


def _difference(case: TestCase, results: list[Array], outputs: Sequence[object]) -> str:
    for result, output in zip(results, outputs, strict=True):
        expected = _array(output)
        if (result.dtype, result.shape) != (expected.dtype, expected.shape):
            return f"{result.dtype}{result.shape}, expected {expected.dtype}{expected.shape}"
        narrow = expected.dtype.itemsize <= 2 and expected.dtype.kind not in "iub"
        relative, absolute = (1e-2, 1e-2) if narrow else (max(case.rtol, 1e-3), 1e-6)
        a, b = result.astype(np.float64), expected.astype(np.float64)
        if not np.allclose(a, b, relative, absolute, equal_nan=True):
            return f"largest difference {np.nanmax(np.abs(a - b))}"
    return ""


def test_results_equal_the_shipped_ones() -> None:
    wrong = {
        outcome.name: outcome.wrong
        for outcome in outcomes()
        if outcome.wrong and outcome.name not in WRONGLY_INFERRED
    }
    assert not wrong


def test_most_cases_run_without_the_host() -> None:
    native = [o for o in outcomes() if not o.host and not o.refused and not o.wrong]
    assert len(native) > 0.74 * len(outcomes())


def test_only_listed_ops_run_on_the_host() -> None:
    found = {op for outcome in outcomes() for op in outcome.host}
    assert found == HOST_OPS


def test_refusals_have_a_reason() -> None:
    unclear = [o for o in outcomes() if o.refused and not any(r in o.refused for r in REFUSED)]
    assert not unclear
