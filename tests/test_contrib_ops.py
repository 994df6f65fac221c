"""Ops of onnxruntime, which are defined as functions of ONNX's, against onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import FunctionProto, TensorProto, helper, numpy_helper, parser

import satura
from benchmarks.models import QUANTIZED, TINY, build, example_inputs
from satura.errors import CallError, ModelError, SaturaError, UnsupportedError
from satura.ops import TensorType, local_ops, op
from satura.rewrite.onnx.contrib.definition import DOMAIN, Definition
from satura.rewrite.onnx.contrib.table import DEFINITIONS
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.interpreter import interpret
from tests.contrib_attention_cases import attended
from tests.contrib_cases import Array, Case, f32s, fused, moved, normalised, number, octets
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
def changed(mutate: Mutation, name: str) -> Iterator[list[bool]]:
    """Bodies are mutated where they compute `name`; whether that changed each of them."""
    original = Definition.function
    changes: list[bool] = []

    def function(self: Definition, node: Context) -> FunctionProto:
        made = original(self, node)
        before = made.SerializeToString()
        mutate(name, made)
        changes.append(made.SerializeToString() != before)
        return made

    with patch.object(Definition, "function", function):
        yield changes


def computed_names(name: str) -> set[str]:
    """What the bodies of an op compute by nodes that change values."""
    found: set[str] = set()
    original = Definition.function

    def function(self: Definition, node: Context) -> FunctionProto:
        made = original(self, node)
        found.update(each.output[0] for each in made.node)
        return made

    with patch.object(Definition, "function", function):
        for case in of(name):
            load(case.model)
    return found


def survivors(name: str, mutate: Mutation) -> list[str]:
    """What may be computed wrongly so that no case of the op tells."""
    cases = [(case, expected(case)) for case in of(name) if not case.symbols]
    return [each for each in computed_names(name) if not _is_caught(cases, mutate, each)]


def _is_caught(cases: list[tuple[Case, dict[str, Array]]], mutate: Mutation, name: str) -> bool:
    has_changed = False
    for case, wanted in cases:
        with changed(mutate, name) as changes:
            try:
                program = load(case.model)
                if not any(changes):
                    continue
                has_changed = True
                assert_is(case, interpret(program, case.arguments), wanted)
            except (SaturaError, AssertionError):
                return True
    return not has_changed


@pytest.mark.parametrize("mutate", [without, exchanged])
@pytest.mark.parametrize("name", deep_but(["QLinearAdd", "SkipLayerNormalization"], NAMES))
def test_a_wrong_definition_is_caught(name: str, mutate: Mutation) -> None:
    assert {*survivors(name, mutate)} <= EQUIVALENT.get(name, set())


# Where nodes stand


def gelu_case() -> Case:
    return Case("QuickGelu", [f32s(1, 2, 3)], {"alpha": 1.5})


def quick_gelu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-1.5 * x)))


def model_of(text: str, functions: str = "") -> onnx.ModelProto:
    """A model of one input x, f32[2, 3], and a condition c."""
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17, "{DOMAIN}" : 1, "own" : 1]>
        g (float[2, 3] x, bool c) => (float[2, 3] y) {{ {text} }}
        {functions}
    """)


CALL = f"{DOMAIN}.QuickGelu <alpha = 1.5> (x)"
PLACES = {
    "if": f"""
        y = If (c) <
            then_branch = a () => (float[2, 3] p) {{ p = {CALL} }},
            else_branch = b () => (float[2, 3] q) {{ q = {CALL} }}
        >
    """,
    "loop": f"""
        n = Constant <value = int64 {{1}}> ()
        y = Loop (n, c, x) <
            body = b (int64 i, bool k, float[2, 3] s) => (bool k_out, float[2, 3] t) {{
                k_out = Identity (k)
                t = {CALL.replace("(x)", "(s)")}
            }}
        >
    """,
    "function": "y = own.f (x)",
}
FUNCTION = f"""
    <domain: "own", opset_import: ["" : 17, "{DOMAIN}" : 1]> f (x) => (y) {{ y = {CALL} }}
"""


@pytest.mark.parametrize("place", PLACES)
def test_nodes_inside_of_others_are_defined(place: str) -> None:
    model = model_of(PLACES[place], FUNCTION if place == "function" else "")
    x = f32s(1, 2, 3)
    found = satura.interpret(model, {"x": x, "c": np.array(True)})["y"]
    np.testing.assert_allclose(np.float64(found), quick_gelu(x), rtol=1e-5)


def test_a_function_of_the_model_goes_before() -> None:
    own = f'<domain: "{DOMAIN}", opset_import: ["" : 17]> QuickGelu (x) => (y) {{ y = Neg (x) }}'
    x = f32s(1, 2, 3)
    found = satura.interpret(model_of(f"y = {CALL}", own), {"x": x, "c": np.array(True)})["y"]
    np.testing.assert_array_equal(found, -x)


def test_an_op_of_the_user_goes_before() -> None:
    with local_ops():

        @op(domain=DOMAIN, op_type="BiasGelu", formula="x - y")
        def less(x: TensorType, y: TensorType) -> TensorType:
            """x - y"""
            return x

        a, b = f32s(1, 2, 3), f32s(2, 2, 3)
        case = Case("BiasGelu", [a, b])
        found = satura.interpret(case.model, case.arguments)["y"]
    np.testing.assert_array_equal(found, a - b)


GROWING = f"""
    <ir_version: 8, opset_import: ["" : 18, "{DOMAIN}" : 1]>
    g (float[b, s, 64] q, float[b, s, 32] k, float[b, s, 32] v, float[b, 2, p, 16] past_k,
       float[b, 2, p, 16] past_v, int64[b, t] mask)
    => (float[b, s, 64] y, float[b, 2, t, 16] present_k, float[b, 2, t, 16] present_v) {{
        last = Constant <value = int64[1] {{1}}> ()
        one = Constant <value = int64 {{1}}> ()
        counts = ReduceSum <keepdims = 0> (mask, last)
        less = Sub (counts, one)
        lengths = Cast <to = 6> (less)
        shape = Shape (mask)
        total_wide = Gather (shape, one)
        total = Cast <to = 6> (total_wide)
        y, present_k, present_v = {DOMAIN}.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>
            (q, k, v, past_k, past_v, lengths, total)
    }}
"""


def test_a_growing_past_has_one_program() -> None:
    """The length of a mask is that of the past and of what is new."""
    model = parser.parse_model(GROWING)
    program = load(model)
    for batch, length, past in ((1, 1, 7), (2, 1, 5), (1, 4, 0), (2, 3, 0), (1, 3, 4)):
        arguments = {
            "q": f32s(1, batch, length, 64), "k": f32s(2, batch, length, 32),
            "v": f32s(3, batch, length, 32), "past_k": f32s(4, batch, 2, past, 16),
            "past_v": f32s(5, batch, 2, past, 16),
            "mask": np.ones((batch, past + length), np.int64),
        }  # fmt: skip
        found = interpret(program, arguments)
        for name, wanted in zip(found, run(model, arguments), strict=True):
            np.testing.assert_allclose(np.float64(found[name]), wanted, rtol=1e-5, atol=1e-5)
        arguments["mask"] = np.ones((batch, past + length + 1), np.int64)
        with pytest.raises(CallError, match="axis 1 must be p\\+s"):
            interpret(program, arguments)


# What is refused


X = f32s(1, 2, 3, 8)
WIDE = f32s(1, 8, 24)
REFUSED = [
    (Case("NoSuch", [X]), r"nothing is known about 'NoSuch' of the domain 'com\.microsoft'"),
    (Case("QuickGelu", [X], {"beta": 2.0}), r"QuickGelu.*attribute 'beta' is not.*satura\.ops"),
    (Case("Attention", [X, WIDE], {"num_heads": 2, "do_rotary": 1}),
     r"Attention.*'do_rotary' = 1 is not defined here; export the model without it"),
    (Case("Attention", [X, WIDE, None, np.zeros(7, np.int32)], {"num_heads": 2}),
     r"'mask_index' of shape \[7\] is not"),
    (Case("Attention", [X, WIDE], {"num_heads": 2}, symbols={(1, 1): "n"}), r"the open size n"),
    (Case("FusedGemm", [X[0], X[1]], {"transB": 1, "activation": "Strange"}),
     r"'activation' = 'Strange' is not"),
    (Case("MatMulNBits", [X, octets(1, 8, 1, 16), f32s(1, 8)],
          {"K": 8, "N": 8, "block_size": 32, "bits": 3}), r"'bits' = 3"),
    (Case("SkipSimplifiedLayerNormalization", [X, X, f32s(1, 8)], outputs=("y", "", "s")),
     r"output 'inv_std_var'"),
]  # fmt: skip
BROKEN = [
    (Case("QuickGelu", [X], {"alpha": 2}), r"'alpha' must be of kind float, not int"),
    (Case("Attention", [X, WIDE]), r"Attention.*attribute 'num_heads' is missing"),
    (Case("Attention", [X, WIDE], {"num_heads": 3}), r"8 is not that of 3 heads"),
    (Case("Attention", [X[0], WIDE], {"num_heads": 2}), r"'input' must have 3 axes, not 2"),
    (Case("QLinearAdd", [octets(1, 3)]), r"QLinearAdd.*input 'A_scale' is missing"),
    (Case("QLinearAdd", [octets(1, 3), number(0.1)] * 6), r"takes 8 inputs"),
    (Case("QLinearConcat", [number(0.1), number(3, np.uint8), X], {"axis": 0}), r"triples"),
    (Case("FusedConv", [f32s(1, 1, 2, 4, 4), f32s(1, 2, 2, 3, 3)], {"activation": "Clip"}),
     r"two 'activation_params'"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "message"), REFUSED, ids=lambda given: str(given)[:40])
def test_what_is_not_defined_is_refused(case: Case, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        load(case.model)


@pytest.mark.parametrize(("case", "message"), BROKEN, ids=lambda given: str(given)[:40])
def test_broken_nodes_are_refused(case: Case, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(case.model)


def test_a_sequence_is_not_a_tensor() -> None:
    text = f"s = SequenceConstruct (x, x) y = {CALL.replace('(x)', '(s)')}"
    with pytest.raises(UnsupportedError, match="input 0 is a sequence"):
        load(model_of(text))


def test_the_domain_is_imported() -> None:
    model = gelu_case().model
    del model.opset_import[1]
    with pytest.raises(ModelError, match="does not import its domain"):
        load(model)


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
