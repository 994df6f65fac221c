"""`python -m benchmarks ops`: single ops and small blocks, as exporters write them.

Models hide what a rare op costs: masks that leave something out, models quantised by operators,
reductions of several axes, attention of one query. Each is compared with onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, parser

from satura.rewrite.types.tensor_type import Array

_OPSET = 20
_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class _Block:
    """Nodes in ONNX's text form, which compute `y` from inputs and constants."""

    nodes: str
    inputs: Mapping[str, Array]
    constants: Mapping[str, Array] = field(default_factory=dict)


def blocks() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Array]]]:
    """Every block: its name, its model and arguments."""
    for name, block in _BLOCKS.items():
        yield name, _model(block), dict(block.inputs)


def _model(block: _Block) -> onnx.ModelProto:
    graph = parser.parse_graph(f"block () => (y) {{ {block.nodes} }}")
    for name, array in block.inputs.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in block.constants.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def _f32(*shape: int) -> NDArray[np.float32]:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _ints(*shape: int, most: int = 100) -> Array:
    return _RANDOM.integers(0, most, shape)


def _i8(*shape: int) -> Array:
    return _RANDOM.integers(-64, 65, shape).astype(np.int8)


def _u8(*shape: int) -> Array:
    return _RANDOM.integers(0, 256, shape).astype(np.uint8)


def _i64(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def _number(value: float) -> Array:
    return np.array(value, np.float32)


def _boxes(count: int, edge: int) -> Array:
    return np.sort(_RANDOM.random((count, 4)).astype(np.float32) * edge, axis=-1)


def _of_one_op(op: str, x: Array, attributes: str = "") -> _Block:
    return _Block(f"y = {op} {attributes} (x)", {"x": x})


def _reduction(op: str, *axes: int) -> _Block:
    return _Block(f"y = {op} (x, axes)", {"x": _f32(16, 128, 256)}, {"axes": _i64(*axes)})


def _quantised(op: str, x: Array, w: Array, attributes: str = "") -> _Block:
    """A node of 8 bits, whose scales are one number each."""
    scales = {"a": 0.02, "b": 0.01, "c": 0.5}
    zeros = {"p": np.uint8(128), "q": np.int8(0), "r": np.uint8(128)}
    constants = {name: _number(value) for name, value in scales.items()}
    constants |= {name: np.array(value) for name, value in zeros.items()}
    return _Block(f"y = {op} {attributes} (x, a, p, w, b, q, c, r)", {"x": x}, constants | {"w": w})


_IMAGE, _TOKENS, _HIDDEN = (1, 96, 56, 56), (256, 768), (256, 3072)
_SCORES = (1, 12, 256, 256)
_CAUSAL = np.tril(np.ones((1, 1, 256, 256), np.bool_))
_HALF = np.float32(0.01)
_DYNAMIC = """
    q, s, z = DynamicQuantizeLinear (x)
    i = MatMulInteger (q, w, z)
    c = Cast <to: int = 1> (i)
    y = Mul (c, s)
"""
_ATTENTION = """
    t = Transpose <perm = [0, 1, 3, 2]> (k)
    s = MatMul (q, t)
    p = Softmax <axis: int = -1> (s)
    y = MatMul (p, v)
"""
_OF_TOKENS = ("Exp", "Sin", "Tanh", "Erf", "Sigmoid", "Reciprocal", "Round", "Tan", "Atan", "Sinh")
_OF_IMAGES = ("HardSwish", "Mish", "Elu", "Softplus", "LeakyRelu")

_BLOCKS: dict[str, _Block] = {
    **{op: _of_one_op(op, _f32(*_TOKENS)) for op in _OF_TOKENS},
    **{op: _of_one_op(op, abs(_f32(*_TOKENS)) + _HALF) for op in ("Log", "Sqrt")},
    **{op: _of_one_op(op, np.clip(_f32(*_TOKENS) / 4, -0.99, 0.99)) for op in ("Asin", "Atanh")},
    **{op: _of_one_op(op, _f32(*_IMAGE)) for op in _OF_IMAGES},
    "GELU": _of_one_op("Gelu", _f32(*_HIDDEN)),
    "GELU by tanh": _of_one_op("Gelu", _f32(*_HIDDEN), '<approximate = "tanh">'),
    "SiLU": _Block("s = Sigmoid (x) y = Mul (x, s)", {"x": _f32(*_IMAGE)}),
    "power 3": _Block("y = Pow (x, p)", {"x": _f32(*_HIDDEN)}, {"p": _number(3)}),
    "power 1.5": _Block("a = Abs (x) y = Pow (a, p)", {"x": _f32(*_TOKENS)}, {"p": _number(1.5)}),
    "clip": _Block("y = Clip (x, a, b)", {"x": _f32(*_IMAGE)}, {"a": _number(0), "b": _number(6)}),
    "batch normalisation": _Block(
        "y = BatchNormalization (x, g, b, b, v)",
        {"x": _f32(*_IMAGE)},
        {"g": _f32(96), "b": _f32(96), "v": abs(_f32(96)) + 1},
    ),
    "integer division": _Block("y = Div (x, m)", {"x": _ints(*_TOKENS)}, {"m": np.array(7)}),
    "where": _Block(
        "y = Where (c, x, z)",
        {"c": _f32(*_TOKENS) > 0, "x": _f32(*_TOKENS), "z": _f32(*_TOKENS)},
    ),
    # rows
    "softmax, causal": _Block(
        "s = Add (x, m) y = Softmax <axis: int = -1> (s)",
        {"x": _f32(*_SCORES)},
        {"m": np.where(_CAUSAL, np.float32(0), -np.float32(np.inf))},
    ),
    "softmax of masked": _Block(
        "s = Where (c, x, n) y = Softmax <axis: int = -1> (s)",
        {"x": _f32(*_SCORES)},
        {"c": _CAUSAL, "n": _number(-1e9)},
    ),
    "softmax of axis 1": _of_one_op("Softmax", _f32(8, 64, 1000), "<axis = 1>"),
    "softmax, long": _of_one_op("Softmax", _f32(192, 1024), "<axis: int = -1>"),
    "log of softmax": _of_one_op("LogSoftmax", _f32(32, 30000), "<axis: int = -1>"),
    "layer normalisation": _Block(
        "y = LayerNormalization <axis: int = -1> (x, g, b)",
        {"x": _f32(*_TOKENS)},
        {"g": _f32(768), "b": _f32(768)},
    ),
    "instance normalisation": _Block(
        "y = InstanceNormalization (x, g, b)",
        {"x": _f32(1, 64, 96, 96)},
        {"g": _f32(64), "b": _f32(64)},
    ),
    "RMS normalisation": _Block(
        "q = Mul (x, x) m = ReduceMean (q, a) e = Add (m, c) r = Sqrt (e) y = Div (x, r)",
        {"x": _f32(1, 128, 2048)},
        {"a": _i64(-1), "c": _number(1e-6)},
    ),
    "L2 normalisation": _Block(
        "n = ReduceL2 (x, a) y = Div (x, n)", {"x": _f32(1000, 512)}, {"a": _i64(1)}
    ),
    **{
        f"{op} {axes}": _reduction(op, *axes)
        for op in ("ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp")
        for axes in ((0,), (1,), (2,), (1, 2))
    },
    "argmax, last": _of_one_op("ArgMax", _f32(64, 1000), "<axis: int = -1>"),
    "argmax of channels": _of_one_op("ArgMax", _f32(1, 21, 128, 128), "<axis = 1>"),
    "top 10": _Block("y, i = TopK <axis: int = -1> (x, k)", {"x": _f32(16, 1000)}, {"k": _i64(10)}),
    "cumulative sum": _Block("y = CumSum (x, a)", {"x": _f32(64, 1000)}, {"a": np.array(1)}),
    "cumulative sum of channels": _Block(
        "y = CumSum (x, a)", {"x": _f32(1, 21, 64, 64)}, {"a": np.array(1)}
    ),
    "pool of small images": _of_one_op(
        "MaxPool", _f32(1, 256, 14, 14), "<kernel_shape = [2, 2], strides = [2, 2]>"
    ),
    # movements
    "gather rows": _Block(
        "y = Gather (w, i)", {"i": _ints(1, 256, most=30000)}, {"w": _f32(30000, 768)}
    ),
    "gather elements": _Block(
        "y = GatherElements <axis = 1> (x, i)", {"x": _f32(64, 256), "i": _ints(64, 100)}
    ),
    "scatter": _Block(
        "y = ScatterND (x, i, u)", {"x": _f32(256, 64), "i": _ints(50, 1), "u": _f32(50, 64)}
    ),
    "pad by reflection": _Block(
        'y = Pad <mode = "reflect"> (x, p)',
        {"x": _f32(*_IMAGE)},
        {"p": _i64(0, 0, 3, 3, 0, 0, 3, 3)},
    ),
    "concat": _Block("y = Concat <axis = 1> (x, z)", {"x": _f32(*_IMAGE), "z": _f32(*_IMAGE)}),
    "transpose of heads": _of_one_op("Transpose", _f32(1, 128, 12, 64), "<perm = [0, 2, 1, 3]>"),
    "transpose of matrices": _of_one_op("Transpose", _f32(8, 256, 256), "<perm = [0, 2, 1]>"),
    "channels of an image": _of_one_op("Transpose", _f32(1, 224, 224, 3), "<perm = [0, 3, 1, 2]>"),
    "narrow matrices": _of_one_op("Transpose", _f32(2, 12, 5000), "<perm = [0, 2, 1]>"),
    "windows": _of_one_op("Transpose", _f32(1, 8, 7, 8, 7, 96), "<perm = [0, 1, 3, 2, 4, 5]>"),
    "depth to space": _of_one_op("DepthToSpace", _f32(1, 64, 64, 64), "<blocksize = 2>"),
    "detector's head": _Block(
        "r = Reshape (x, s) t = Transpose <perm = [0, 1, 3, 4, 2]> (r) y = Sigmoid (t)",
        {"x": _f32(1, 255, 40, 40)},
        {"s": _i64(1, 3, 85, 40, 40)},
    ),
    "bytes to floats": _Block(
        "c = Cast <to: int = 1> (x) e = Mul (c, s) y = Transpose <perm = [0, 3, 1, 2]> (e)",
        {"x": _u8(1, 224, 224, 3)},
        {"s": _f32(3)},
    ),
    **{
        f"resize, {mode}": _Block(
            f'y = Resize <mode = "{mode}"> (x, , s)',
            {"x": _f32(1, 64, 40, 40)},
            {"s": np.array([1, 1, 2, 2], np.float32)},
        )
        for mode in ("nearest", "linear", "cubic")
    },
    "grid of samples": _Block(
        "y = GridSample (x, g)",
        {"x": _f32(1, 32, 40, 40), "g": np.tanh(_f32(1, 40, 40, 2))},
    ),
    "regions": _Block(
        "y = RoiAlign <output_height = 7, output_width = 7, sampling_ratio = 2> (x, r, b)",
        {"x": _f32(1, 64, 50, 50), "r": _boxes(20, 50), "b": np.zeros(20, np.int64)},
    ),
    # contractions
    "one row": _Block("y = MatMul (x, w)", {"x": _f32(1, 768)}, {"w": _f32(768, 3072)}),
    "one column": _Block("y = MatMul (x, w)", {"x": _f32(1000, 256)}, {"w": _f32(256, 1)}),
    "eight rows": _Block("y = MatMul (x, w)", {"x": _f32(8, 768)}, {"w": _f32(768, 768)}),
    "small matrices": _Block("y = MatMul (x, z)", {"x": _f32(256, 16, 16), "z": _f32(256, 16, 16)}),
    "f16 matmul": _Block(
        "y = MatMul (x, w)",
        {"x": _f32(128, 768).astype(np.float16)},
        {"w": _f32(768, 768).astype(np.float16)},
    ),
    "attention": _Block(_ATTENTION, {name: _f32(1, 12, 197, 64) for name in "qkv"}),
    "attention of one query": _Block(
        _ATTENTION,
        {"q": _f32(1, 12, 1, 64), "k": _f32(1, 12, 256, 64), "v": _f32(1, 12, 256, 64)},
    ),
    "gated MLP": _Block(
        "a = MatMul (x, u) s = Sigmoid (a) g = Mul (a, s) b = MatMul (x, w) y = Mul (g, b)",
        {"x": _f32(16, 512)},
        {"u": _f32(512, 1365), "w": _f32(512, 1365)},
    ),
    "convolution of few channels": _Block(
        "y = Conv <pads = [1, 1, 1, 1]> (x, w)",
        {"x": _f32(1, 3, 64, 64)},
        {"w": _f32(8, 3, 3, 3)},
    ),
    "convolution of a signal": _Block(
        "y = Conv <kernel_shape = [9], pads = [4, 4]> (x, w)",
        {"x": _f32(1, 64, 1000)},
        {"w": _f32(64, 64, 9)},
    ),
    "depthwise signal": _Block(
        "y = Conv <kernel_shape = [31], pads = [15, 15], group = 128> (x, w)",
        {"x": _f32(1, 128, 500)},
        {"w": _f32(128, 1, 31)},
    ),
    "convolution of a volume": _Block(
        "y = Conv <pads = [1, 1, 1, 1, 1, 1]> (x, w)",
        {"x": _f32(1, 16, 16, 28, 28)},
        {"w": _f32(32, 16, 3, 3, 3)},
    ),
    "dilated convolution": _Block(
        "y = Conv <pads = [4, 4, 4, 4], dilations = [4, 4]> (x, w)",
        {"x": _f32(1, 64, 32, 32)},
        {"w": _f32(64, 64, 3, 3)},
    ),
    "squeeze and excite": _Block(
        """g = GlobalAveragePool (x) a = Conv (g, u) r = Relu (a) b = Conv (r, w)
           s = Sigmoid (b) y = Mul (x, s)""",
        {"x": _f32(*_IMAGE)},
        {"u": _f32(24, 96, 1, 1), "w": _f32(96, 24, 1, 1)},
    ),
    "LSTM": _Block(
        "y, h = LSTM <hidden_size = 128> (x, w, r)",
        {"x": _f32(50, 1, 128)},
        {"w": _f32(1, 512, 128) / 9, "r": _f32(1, 512, 128) / 9},
    ),
    # 8 bits
    "QLinearMatMul": _quantised("QLinearMatMul", _u8(128, 768), _i8(768, 768)),
    "QLinearConv": _quantised(
        "QLinearConv", _u8(1, 64, 28, 28), _i8(64, 64, 3, 3), "<pads = [1, 1, 1, 1]>"
    ),
    "dynamic quantisation": _Block(_DYNAMIC, {"x": _f32(128, 768)}, {"w": _i8(768, 768)}),
    "dynamic, one row": _Block(_DYNAMIC, {"x": _f32(1, 768)}, {"w": _i8(768, 3072)}),
}
