"""Nodes of ops of onnxruntime: where they may stand, what goes before, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, parser
from onnxruntime.quantization import quantize_dynamic

import satura
from satura.errors import CallError, ModelError, UnsupportedError
from satura.ops import TensorType, local_ops, op
from satura.rewrite.onnx.contrib.definition import DOMAIN
from satura.rewrite.onnx.contrib.table import DEFINITIONS
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.onnx.write.unread import without_unread
from satura.rewrite.program.interpreter import interpret
from tests.contrib_cases import Array, Case, f32s, number, octets
from tests.contrib_quantised_cases import embeddings
from tests.onnx_models import make_model, node
from tests.onnxruntime_reference import run

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
IDS = np.array([[1, 4, 0], [2, 2, 5]], np.int32)
ROWS = [f32s(1, 8), f32s(2, 8)]
PAST = f32s(1, 2, 2, 2, 4)
QUERY = f32s(1, 1, 1, 16)
LAST, ALL = np.array([0], np.int32), np.array(1, np.int32)
MATRIX = [octets(1, 3, 3), number(0.1), number(3, np.uint8)]
GEMM = [*MATRIX, *MATRIX]


def embedded(without: int) -> Case:
    case = next(embeddings())
    inputs = [None if at == without else x for at, x in enumerate(case.inputs)]
    return replace(case, inputs=inputs)


TYPICAL = {"INT": 1, "INTS": [1], "FLOAT": 1.0}
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
     r"'activation_params' of Clip must be low, high"),
    (Case("FusedConv", [f32s(1, 1, 2, 4, 4), f32s(1, 2, 2, 3, 3)], {"activation": "LeakyRelu"}),
     r"'activation_params' of LeakyRelu must be alpha"),
    (Case("FusedGemm", [X[0], X[1]], {"transB": 1, "activation": "Elu"}),
     r"activation 'Elu' has no number 'alpha': give it"),
    (Case("GroupQueryAttention", [*[f32s(1, 1, 1, 16)] * 3, None, None, LAST, ALL],
          {"num_heads": 1, "kv_num_heads": 1, "do_rotary": 1}), r"no input 'cos_cache'"),
]  # fmt: skip
PARTNERS = [
    (Case("EmbedLayerNormalization", [IDS, IDS, f32s(1, 6, 8), f32s(2, 6, 8), None, *ROWS]),
     "segment_ids", "segment_embedding"),
    (embedded(without=1), "segment_embedding_quant", "segment_ids"),
    (embedded(without=10), "segment_ids", "segment_embedding_scale"),
    (Case("QGemm", [*GEMM, None, number(0.1)]), "Y_scale", "Y_zero_point"),
    (Case("QGemm", [*GEMM, None, None, number(3, np.uint8)]), "Y_zero_point", "Y_scale"),
    (Case("MultiHeadAttention", [X, X, X, None, None, None, None, PAST], {"num_heads": 2}),
     "past_value", "past_key"),
    (Case("MultiHeadAttention", [X, None, X], {"num_heads": 2}), "value", "key"),
    *((Case("GroupQueryAttention", [QUERY, *rest], {"num_heads": 1, "kv_num_heads": 1}), *names)
      for rest, names in (
          ([None, QUERY, None, None, LAST, ALL], ("value", "key")),
          ([QUERY, QUERY, None, QUERY[:, None], LAST, ALL], ("past_value", "past_key")),
          ([QUERY, QUERY, None, None, LAST, ALL, f32s(1, 4, 8)], ("cos_cache", "sin_cache")),
      )),
]  # fmt: skip


@pytest.mark.parametrize(("case", "message"), REFUSED, ids=lambda given: str(given)[:40])
def test_what_is_not_defined_is_refused(case: Case, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        load(case.model)


@pytest.mark.parametrize(("case", "given", "other"), PARTNERS, ids=lambda given: str(given)[:40])
def test_inputs_that_belong_together_are_given_together(case: Case, given: str, other: str) -> None:
    """onnxruntime refuses one alone, but for QGemm, where its schema and kernel disagree."""
    with pytest.raises(ModelError, match=f"input '{given}' is given without '{other}': add it"):
        load(case.model)


FLAGS = sorted(
    (name, flag) for (_, name), each in DEFINITIONS.items() for flag in each.signature.flags
)


@pytest.mark.parametrize("value", [-1, 2])
@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_flags_are_0_or_1(name: str, flag: str, value: int) -> None:
    signature = DEFINITIONS[DOMAIN, name].signature
    needed = {
        each: TYPICAL[AttributeProto.AttributeType.Name(signature.kinds[each])]
        for each in signature.function.attribute
        if each not in signature.optional
    }
    case = Case(name, [X] * len(signature.function.input), {**needed, flag: value})
    with pytest.raises(ModelError, match=f"attribute '{flag}' must be 0 or 1, not {value}"):
        load(case.model)


@pytest.mark.parametrize(("case", "message"), BROKEN, ids=lambda given: str(given)[:40])
def test_broken_nodes_are_refused(case: Case, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(case.model)


@pytest.mark.parametrize("ops", [None, ["MatMul", "Gemm", "Conv"]])
def test_lstms_that_are_not_quantised_are_read(ops: list[str] | None, tmp_path: Path) -> None:
    """As README.md says."""
    nodes = [
        node("LSTM", "x w r", "h", hidden_size=4), node("Squeeze", "h one", "s"),
        node("MatMul", "s v", "y"),
    ]  # fmt: skip
    weights = {"w": f32s(1, 1, 16, 5), "r": f32s(2, 1, 16, 4), "v": f32s(3, 4, 6)}
    onnx.save(make_model(nodes, {"x": (3, 1, 5)}, {**weights, "one": [1]}), tmp_path / "model.onnx")
    quantize_dynamic(tmp_path / "model.onnx", tmp_path / "new.onnx", op_types_to_quantize=ops)
    model, arguments = onnx.load(tmp_path / "new.onnx"), {"x": f32s(4, 3, 1, 5)}
    if ops is None:
        with pytest.raises(UnsupportedError, match="DynamicQuantizeLSTM"):
            load(model)
    else:
        assert "MatMulInteger" in {each.op_type for each in model.graph.node}
        (wanted,) = run(model, arguments)
        found = np.float64(interpret(load(model), arguments)["y"])
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_sequence_is_not_a_tensor() -> None:
    text = f"s = SequenceConstruct (x, x) y = {CALL.replace('(x)', '(s)')}"
    with pytest.raises(UnsupportedError, match="input 0 is a sequence"):
        load(model_of(text))


def test_the_domain_is_imported() -> None:
    model = gelu_case().model
    del model.opset_import[1]
    with pytest.raises(ModelError, match="does not import its domain"):
        load(model)


# What is saved


@pytest.mark.parametrize("read", ["x, s, g", "x, s, g, , b"])
def test_saved_nodes_have_neither_empty_inputs_at_their_ends_nor_unread_outputs(read: str) -> None:
    """onnxruntime dies of a LayerNormalization behind a sum whose third input is empty."""
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17, "{DOMAIN}" : 1]>
        m (float[2, 3, 8] x, float[2, 3, 8] s) => (float[2, 3, 8] y)
        <float[8] g = {{1, 2, 3, 4, 5, 6, 7, 8}}, float[8] b = {{1, 1, 1, 1, 1, 1, 1, 1}}> {{
            y = {DOMAIN}.SkipLayerNormalization ({read})
        }}
    """)
    program = satura.optimize(model)
    saved = to_model(program)
    (normalised,) = [each for each in saved.graph.node if each.op_type == "LayerNormalization"]
    assert len(normalised.input) == 2 and list(normalised.output) == ["y"]
    x, s = np.random.default_rng(0).standard_normal((2, 2, 3, 8)).astype(np.float32)
    (result,) = run(saved, {"x": x, "s": s})
    expected = interpret(program, {"x": x, "s": s})["y"].astype(np.float32)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_an_output_in_the_middle_that_nobody_reads_has_no_name() -> None:
    nodes = [
        node("LSTM", "x w r", "a b c", hidden_size=2), node("Gather", "w k", "d"),
        node("Loop", "- - x", "e"), node("BatchNormalization", "x s s s s", "f m v"),
    ]  # fmt: skip
    short = without_unread(nodes, ["b", "d", "e", "f"], 17)
    assert [list(each.output) for each in short] == [["", "b"], ["d"], ["e"], ["f", "m", "v"]]
    assert list(short[2].input) == ["", "", "x"]


QUANTISED = {
    "by operators": (
        "uint8", 18, ["DequantizeLinear", "Sigmoid", "QuantizeLinear", "Mul"],
        f"""b = {DOMAIN}.QLinearSigmoid (x, s, z, t, z)
            y = {DOMAIN}.QLinearMul (x, s, z, b, t, z, s, z)""",
    ),
    "with onnxruntime's own marks": (
        "int16", 21, ["DequantizeLinear", "Sigmoid", "QuantizeLinear"],
        f"""a = {DOMAIN}.DequantizeLinear (x, s, z) b = Sigmoid (a)
            y = {DOMAIN}.QuantizeLinear (b, t, z)""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTISED)
def test_what_onnxruntime_has_quantised_is_saved_with_marks_that_it_fuses(name: str) -> None:
    dtype, opset, op_types, text = QUANTISED[name]
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17, "{DOMAIN}" : 1]>
        m ({dtype}[2, 3] x) => ({dtype}[2, 3] y)
        <float s = {{0.05}}, float t = {{0.004}}, {dtype} z = {{3}}> {{ {text} }}
    """)
    saved = to_model(satura.optimize(model))
    assert {each.op_type for each in saved.graph.node} == {*op_types}
    assert [each.version for each in saved.opset_import] == [opset]
    x = np.array([[0, 3, 100], [90, 7, 41]], dtype)
    (result,) = run(saved, {"x": x})
    np.testing.assert_array_equal(result, run(model, {"x": x})[0])


def test_a_mean_of_quantised_images_is_saved_as_the_pool_that_runtimes_fuse() -> None:
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17, "{DOMAIN}" : 1]>
        m (uint8[1, 3, 4, 4] x) => (uint8[1, 3, 1, 1] y) <float s = {{0.05}}, uint8 z = {{3}}> {{
            y = {DOMAIN}.QLinearGlobalAveragePool (x, s, z, s, z)
        }}
    """)
    saved = to_model(satura.optimize(model))
    op_types = [each.op_type for each in saved.graph.node]
    assert op_types == ["DequantizeLinear", "GlobalAveragePool", "QuantizeLinear"]


@pytest.mark.parametrize("code", [TensorProto.INT4, TensorProto.UINT4])
def test_rows_of_4_bits_are_saved_though_onnx_gathers_none_in_this_opset(code: int) -> None:
    """Its shape inference fails of them with an error of another kind than of wrong shapes."""
    rows = helper.make_tensor("q", code, [3, 16], [at % 8 for at in range(48)])
    scales = helper.make_tensor("s", TensorProto.FLOAT, [3, 1], [0.5, 0.25, 2])
    gathered = helper.make_node(
        "GatherBlockQuantized", ["q", "at", "s"], ["y"], domain=DOMAIN,
        gather_axis=0, quantize_axis=1, block_size=16,
    )  # fmt: skip
    at = helper.make_tensor_value_info("at", TensorProto.INT64, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 16])
    graph = helper.make_graph([gathered], "g", [at], [y], [rows, scales])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    feeds = {"at": np.array([2, 0, 2])}
    saved = to_model(satura.optimize(model))
    np.testing.assert_array_equal(run(saved, feeds)[0], run(model, feeds)[0])
