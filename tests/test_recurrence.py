"""Recurrences: kernels, the interpreter and saved models agree, however many steps there are."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import satura
from satura.backend.plan.records import kernel_records
from satura.errors import ModelError, UnsupportedError
from satura.pipeline.api import rewritten
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.ops.cells import Cell
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType
from tests.guarded_memory import check
from tests.host_models import HostModel, recurrent
from tests.onnx_models import make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.random_recurrences import random_recurrence
from tests.tiers import deep_but, seeds

MODELS = {f"{number} {model.name}": model for number, model in enumerate(recurrent())}


@pytest.mark.parametrize("seed", deep_but([28], seeds(60), range(20)))
def test_kernels_compute_what_the_interpreter_does(seed: int) -> None:
    program, arguments = random_recurrence(seed)
    expected = interpret(program, arguments)["y"]
    for threads in (1, 2):
        got = satura.compile(program, threads=threads).run(arguments)["y"]
        assert_close(got, expected, 1e-5)


@pytest.mark.deep
@pytest.mark.parametrize("seed", seeds(12))
def test_kernels_stay_inside_their_operands(seed: int) -> None:
    program, arguments = random_recurrence(seed)
    check(program, arguments, {"y": False})


def test_one_kernel_serves_all_sizes() -> None:
    """It is compiled once, whatever the number of steps is."""
    weights = {"w": random_input(1, 16, 3), "r": random_input(1, 16, 4, seed=1)}

    def model(steps: int | str) -> onnx.ModelProto:
        nodes = [node("LSTM", "x w r", "y h c", hidden_size=4)]
        return make_model(nodes, {"x": (steps, 2, 3)}, dict(weights), outputs=("y", "h", "c"))

    texts: set[str] = set()
    for steps in (1, 3, 500):
        kernels = kernel_records(rewritten(load(model(steps))).schedule, 1)
        texts.update(kernel.source for kernel in kernels if "recurrence" in kernel.name)
    assert len(texts) == 1
    compiled = satura.compile(model("t"), threads=1)
    assert compiled.statistics["host-count"] == 0
    for steps in (0, 1, 9):
        given = {"x": random_input(steps, 2, 3)}
        expected = interpret(compiled.source, given)
        for name, got in compiled.run(given).items():
            assert_close(got, expected[name], 1e-5)


@pytest.mark.parametrize("name", deep_but([[*MODELS][14]], MODELS))
def test_saved_models_are_recurrent_nodes(name: str) -> None:
    model: HostModel = MODELS[name]
    program = load(model.model)
    saved = to_model(program)
    kinds = [node.op_type for node in saved.graph.node]
    assert kinds.count(model.model.graph.node[0].op_type) == 1 and "MatMul" not in kinds
    expected = interpret(program, model.arguments)
    for wanted, got in zip(expected.values(), run(saved, model.arguments), strict=True):
        assert_close(got, wanted, 1e-5)


def test_inputs_that_come_from_no_matmul_are_saved() -> None:
    build = Builder()
    cell = Cell("gru", (("sigmoid", 0.0, 0.0), ("tanh", 0.0, 0.0)), (False, True), variant=True)
    random = np.random.default_rng(0)
    shapes = {"x": (3, 2, 24), "w": (2, 4, 12), "f": (1, 2, 2, 4), "p": (2, 1, 4)}
    given = {name: random.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
    x, w, f, p = (build.input(name, DType.F32, shape) for name, shape in shapes.items())
    y = build.recurrence(x, w, f, p, build.constant(np.zeros(0, np.int64)), cell)
    program = build.program({"y": y})
    (got,) = run(to_model(program), given)
    assert_close(got, interpret(program, given)["y"], 1e-5)
    both = Cell("gru", cell.functions, (True, True), variant=True)
    y = build.recurrence(x, w, f, p, build.constant(np.zeros(0, np.int64)), both)
    with pytest.raises(UnsupportedError, match="no ONNX node"):
        to_model(build.program({"y": y}))


def recurrent_model(function: str, **numbers: list[float]) -> onnx.ModelProto:
    weights = {"w": random_input(1, 2, 3), "r": random_input(1, 2, 2, seed=1)}
    nodes = [node("RNN", "x w r", "y", hidden_size=2, activations=[function], **numbers)]
    return make_model(nodes, {"x": (1, 1, 3)}, dict(weights))


@pytest.mark.parametrize(
    ("function", "numbers", "missing"),
    [
        ("Affine", {"activation_beta": [0.5]}, "alpha"),
        ("ScaledTanh", {"activation_beta": [0.5]}, "alpha"),
        ("ScaledTanh", {"activation_alpha": [0.5]}, "beta"),
    ],
)
def test_numbers_without_a_default_are_given(
    function: str, numbers: dict[str, list[float]], missing: str
) -> None:
    """ONNX has no ops of these names, and onnxruntime takes 0."""
    message = f"'{function}' has no number in 'activation_{missing}', and no default: give it"
    with pytest.raises(UnsupportedError, match=message):
        load(recurrent_model(function, **numbers))


@pytest.mark.parametrize("function", ["Affine", "LeakyRelu", "Elu"])
def test_numbers_have_the_defaults_of_onnxruntime(function: str) -> None:
    given = {"activation_alpha": [0.5]} if function == "Affine" else {}
    model, x = recurrent_model(function, **given), {"x": random_input(1, 1, 3, seed=2)}
    (wanted,) = run(model, x)
    assert_close(interpret(load(model), x)["y"], wanted, 1e-5)


WEIGHTS = {"LSTM": 8, "GRU": 6, "RNN": 2}


@pytest.mark.parametrize("op", WEIGHTS)
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"hidden_size": 2**40}, f"'hidden_size' is {2**40}, the weights have 2"),
        ({"hidden_size": -2}, "'hidden_size' is -2, the weights have 2"),
        ({"direction": "bidirectional"}, "'bidirectional', the weights have 1"),
    ],
)
def test_attributes_fit_the_weights(
    op: str, attributes: dict[str, int | str], message: str
) -> None:
    rows = WEIGHTS[op]
    types = {"x": (3, 1, 4), "w": (1, rows, 4), "r": (1, rows, 2)}
    nodes = [node(op, "x w r", "y", **({"hidden_size": 2} | attributes))]
    with pytest.raises(ModelError, match=rf"\({op}\).*attribute .*{re.escape(message)}"):
        load(make_model(nodes, types))
