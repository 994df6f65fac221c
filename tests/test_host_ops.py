"""What runs on the host, and what did, against onnxruntime: the onnx package's own reference
implementations are no oracle beyond the cases that come with it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from tests.host_models import host_models
from tests.onnxruntime_reference import assert_close, run

MODELS = {f"{number} {model.name}": model for number, model in enumerate(host_models())}


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnxruntime(name: str) -> None:
    model = MODELS[name]
    expected = run(onnx.shape_inference.infer_shapes(model.model), model.arguments)
    program = load(model.model)
    results = interpret(program, model.arguments)
    for (output, _), wanted in zip(program.outputs, expected, strict=True):
        got = results[output]
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got, np.asarray(wanted), 1e-4)
