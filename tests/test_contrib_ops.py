"""Ops of onnxruntime, which are defined as functions of ONNX's, against onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import FunctionProto, TensorProto, helper, numpy_helper

import satura
from benchmarks.models import QUANTIZED, TINY, build, example_inputs
from satura.errors import SaturaError
from satura.rewrite.onnx.contrib.definition import DOMAIN, Definition
from satura.rewrite.onnx.contrib.table import DEFINITIONS
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.interpreter import interpret
from tests.contrib_attention_cases import attended
from tests.contrib_cases import Array, Case, f32s, fused, moved, normalised
from tests.contrib_quantised_cases import quantised
from tests.onnxruntime_reference import run
from tests.tiers import deep_but

CASES = [*chain(quantised(), fused(), normalised(), moved(), attended())]
NAMES = sorted(name for _, name in DEFINITIONS)
OPTIMISED = [name for name in TINY if name not in ("tiny_rope", "tiny_esrgan")]
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
    check(of(name)[:: len(of(name)) // 8 | 1])  # closed and open ones take turns


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
def test_all_forms_of_an_op_are_those_of_onnxruntime(name: str) -> None:
    check(of(name))


def check(cases: list[Case]) -> None:
    """They are lowered without the host, to what onnxruntime computes."""
    for case in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            program = load(case.model)
        assert_is(case, interpret(program, case.arguments), expected(case))


NOT_NARROW = {"CDist", "DynamicQuantizeMatMul", "QEmbedLayerNormalization"}
NARROW = sorted(
    {case.op_type for case in CASES if case.oracle is None and "QLinear" not in case.op_type}
    - {"QGemm", "QuantizeLinear", *NOT_NARROW}
)


@pytest.mark.parametrize("name", deep_but(["MatMulNBits", "SkipLayerNormalization"], NARROW))
def test_an_op_of_f16_is_that_of_onnxruntime(name: str) -> None:
    for case in of(name):
        if case.oracle is None:
            inputs = [
                x.astype(np.float16) if x is not None and x.dtype == np.float32 else x
                for x in case.inputs
            ]
            narrow = replace(case, inputs=inputs, tolerance=2e-2 if name == "QAttention" else 6e-3)
            assert_is(narrow, interpret(load(narrow.model), narrow.arguments), expected(narrow))


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
        onnx.checker.check_model(saved, full_check=True)
        names = [output.name for output in saved.graph.output]
        assert_is(case, dict(zip(names, run(saved, case.arguments), strict=True)), expected(case))


# Wrong definitions

COMMUTE = ("Add", "Mul", "And", "BitwiseAnd", "Equal", "Min")
CHANGE_NO_VALUES = ("Constant", "Identity", "Cast", "CastLike", "Squeeze", "Unsqueeze", "Shape")


def _bits(*names: str) -> list[str]:
    """Nothing is above the last bits of a byte, and the first are moved by nothing."""
    return [f"{name}_{what}" for name in names for what in ("shifted0", "masked4", "masked6")]


EQUIVALENT = {
    "CDist": {"difference"},  # it is squared
    "GroupQueryAttention": {"key_all", "value_all"},  # refuses other lengths
    "GatherBlockQuantized": {*_bits("q", "z_all"), "z"},  # of zero points the last is not read
    "MatMulNBits": {*_bits("q", "z")},
}


def without(name: str, function: FunctionProto) -> None:
    """The node that computes `name` does nothing to its first input."""
    for each in function.node:
        if name in each.output and each.op_type not in CHANGE_NO_VALUES:
            source = each.input[0]
            each.CopyFrom(helper.make_node("Identity", [source], each.output[:1]))


def exchanged(name: str, function: FunctionProto) -> None:
    """The node that computes `name` has its first two inputs exchanged."""
    for each in function.node:
        if name in each.output and len(each.input) > 1 and each.op_type not in COMMUTE:
            each.input[0], each.input[1] = each.input[1], each.input[0]


Mutation = Callable[[str, FunctionProto], None]


@contextmanager
def bodies(change: Callable[[FunctionProto], None]) -> Iterator[None]:
    """The bodies of ops go through `change` when they are made."""
    original = Definition.function

    def function(self: Definition, node: Context) -> FunctionProto:
        made = original(self, node)
        change(made)
        return made

    with patch.object(Definition, "function", function):
        yield


def changeable(case: Case, mutate: Mutation) -> set[str]:
    """What the bodies of a case compute, where `mutate` changes how."""
    found: set[str] = set()

    def look(made: FunctionProto) -> None:
        for name in [each.output[0] for each in made.node]:
            mutated = FunctionProto.FromString(made.SerializeToString())
            mutate(name, mutated)
            if mutated != made:
                found.add(name)

    with bodies(look):
        load(case.model)
    return found


def survivors(name: str, mutate: Mutation) -> set[str]:
    """What may be computed wrongly so that no case of the op tells."""
    cases = [case for case in of(name) if not case.symbols]
    left: set[str] = set().union(*(changeable(case, mutate) for case in cases))
    for case in cases:
        wanted = expected(case)
        for each in changeable(case, mutate) & left:
            if _is_caught(case, wanted, partial(mutate, each)):
                left.remove(each)
    return left


def _is_caught(
    case: Case, wanted: dict[str, Array], change: Callable[[FunctionProto], None]
) -> bool:
    with bodies(change):
        try:
            assert_is(case, interpret(load(case.model), case.arguments), wanted)
        except (SaturaError, AssertionError):
            return True
    return False


@pytest.mark.parametrize("mutate", [without, exchanged])
@pytest.mark.parametrize("name", deep_but(["QLinearAdd", "SkipLayerNormalization"], NAMES))
def test_a_wrong_definition_is_caught(name: str, mutate: Mutation) -> None:
    assert survivors(name, mutate) <= EQUIVALENT.get(name, set())


# Quantised models


def quantised_model() -> onnx.ModelProto:
    """Two products and a sum, as onnxruntime quantises them by operators."""
    random = np.random.default_rng(3)
    constants: dict[str, Array] = {
        "s": np.array(0.0211, np.float32), "z": np.array(119, np.uint8),
        "w": random.integers(-64, 65, (96, 96)).astype(np.int8), "o": np.array(0, np.int8),
        "b": random.integers(-500, 500, 96).astype(np.int32), "t": np.array(0.113, np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QGemm", ["q", "s", "z", "w", "s", "o", "b", "t", "z"], ["h"],
                         domain=DOMAIN, transB=1),
        helper.make_node("QLinearAdd", ["h", "t", "z", "q", "s", "z", "t", "z"], ["a"],
                         domain=DOMAIN),
        helper.make_node("QGemm", ["a", "t", "z", "w", "s", "o", "b", "t", "z"], ["r"],
                         domain=DOMAIN),
        helper.make_node("DequantizeLinear", ["r", "t", "z"], ["y"]),
    ]  # fmt: skip
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 96]) for name in ("x", "y")
    ]
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "graph", infos[:1], infos[1:], initializers)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def test_a_quantised_model_is_summed_as_octets() -> None:
    model = quantised_model()
    compiled = satura.compile(model, threads=1)
    dispatches = compiled.rewritten.schedule.dispatches
    kinds = [[name for name, _ in each.features.work] for each in dispatches if each.features]
    assert sum("octets" in each for each in kinds) == 2
    assert compiled.statistics["host-count"] == 0
    x = f32s(7, 6, 96)
    (wanted,) = run(model, {"x": x})
    apart = np.abs(compiled(x) - wanted)
    assert apart.max() <= 1.01 * 0.113 and np.mean(apart > 1e-4) <= MOST_TIES


@pytest.mark.parametrize("name", deep_but(["tiny_segformer"], OPTIMISED))
def test_a_model_that_onnxruntime_optimised_has_its_numbers(name: str, tmp_path: Path) -> None:
    model = build(name)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 4  # it warns that such a model is its own
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), options)
    program = load(tmp_path / "optimised.onnx")
    optimised = onnx.load(tmp_path / "optimised.onnx")
    assert any(each.domain == DOMAIN for each in optimised.graph.node)
    arguments = example_inputs(model)
    found = interpret(program, arguments)
    for output, wanted in zip(theirs.get_outputs(), theirs.run(None, arguments), strict=True):
        apart = np.abs(np.float64(found[output.name]) - np.float64(wanted))
        assert apart.max() <= (0.02 if name in QUANTIZED else 1e-4)
