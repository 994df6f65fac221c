"""Nodes of onnxruntime's own ops, with inputs: several for each op that is defined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from satura.rewrite.onnx.contrib.definition import DOMAIN
from satura.rewrite.types.tensor_type import Array

F32, F16, U8, S8, I32, I64 = np.float32, np.float16, np.uint8, np.int8, np.int32, np.int64


@dataclass(frozen=True)
class Case:
    """A node whose inputs are arrays, of which `constant` ones are initializers; None is left out.

    Open axes are those of `symbols`, by the position of an input and the axis.
    """

    op_type: str
    inputs: Sequence[Array | None]
    attributes: dict[str, object] = field(default_factory=dict)
    outputs: Sequence[str] = ("y",)
    constant: Sequence[int] = ()
    symbols: dict[tuple[int, int], str] = field(default_factory=dict)
    tolerance: float = 2e-5
    oracle: Callable[..., Array] | None = None
    domain: str = DOMAIN

    def __str__(self) -> str:
        shown = [f"{key}={value}" for key, value in self.attributes.items()]
        given = ["-" if x is None else f"{x.dtype}{list(x.shape)}" for x in self.inputs]
        opened = ["open"] if self.symbols else []
        return " ".join([self.op_type, *given, *shown, *opened]).replace(" ", "_")

    @property
    def node(self) -> NodeProto:
        names = ["" if x is None else f"i{at}" for at, x in enumerate(self.inputs)]
        return helper.make_node(
            self.op_type, names, list(self.outputs), domain=self.domain, **self.attributes
        )

    @property
    def model(self) -> ModelProto:
        infos, constants = [], []
        for at, x in enumerate(self.inputs):
            if x is None:
                continue
            if at in self.constant:
                constants.append(numpy_helper.from_array(x, f"i{at}"))
                continue
            shape = [self.symbols.get((at, axis), size) for axis, size in enumerate(x.shape)]
            code = helper.np_dtype_to_tensor_dtype(x.dtype)
            infos.append(helper.make_tensor_value_info(f"i{at}", code, shape))
        results = [ValueInfoProto(name=name) for name in self.outputs if name]
        graph = helper.make_graph([self.node], "graph", infos, results, constants)
        imports = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = 10
        return model

    @property
    def arguments(self) -> dict[str, Array]:
        return {
            f"i{at}": x
            for at, x in enumerate(self.inputs)
            if x is not None and at not in self.constant
        }


def _f(seed: int, *shape: int, dtype: type = F32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _q(seed: int, *shape: int, dtype: type = U8) -> Array:
    bounds = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def _s(value: float | Sequence[float], dtype: type = F32) -> Array:
    return np.array(value, dtype)


def _opened(case: Case, **symbols: Sequence[tuple[int, int]]) -> Case:
    """The case with axes of inputs open."""
    return replace(case, symbols={at: name for name, places in symbols.items() for at in places})


def quantised() -> Iterator[Case]:
    for dtype, zero in ((U8, 120), (S8, -7)):
        x, y = _q(1, 2, 3, 7, dtype=dtype), _q(2, 3, 7, dtype=dtype)
        z = _s(zero, dtype)
        first, second = [x, _s(0.0531), z], [y, _s(0.0203), _s(3, dtype)]
        for op_type in ("QLinearAdd", "QLinearMul"):
            case = Case(op_type, [*first, *second, _s(0.0713), _s(5, dtype)], constant=(1, 2, 4, 5))
            yield case
            yield replace(case, inputs=[*first, *second, _s(0.0713)])
            yield replace(case, inputs=[*first, y, _s(0.0203), None, _s(0.3071)])
            yield _opened(case, n=[(0, 0)])
        for op_type in ("QLinearSigmoid", "QLinearLeakyRelu"):
            yield Case(op_type, [*first, _s(1 / 256), _s(0, dtype)], constant=(1, 2, 3, 4))
            yield _opened(Case(op_type, [x, _s(0.0531), None, _s(1 / 99), None]), n=[(0, 1)])
        yield Case("QLinearLeakyRelu", [*first, _s(0.04), z], {"alpha": 0.3})
        for axis, opset in ((-1, 13), (1, 13), (1, 12), (2, 11)):
            attributes = {"axis": axis, "opset": opset}
            least = np.iinfo(dtype).min
            out = [_s(1 / 256), _s(least, dtype)]
            case = Case("QLinearSoftmax", [*first, *out], attributes, constant=(1, 2, 3, 4))
            yield case
            yield _opened(case, n=[(0, 0)])
        condition = np.random.default_rng(3).random((2, 1, 7)) < 0.5
        inputs = [condition, *first, *second, _s(0.0613), _s(9, dtype)]
        yield Case("QLinearWhere", inputs, constant=(2, 3, 5, 6, 7, 8))
        triple = [_q(4, 2, 2, 7, dtype=dtype), _s(0.09), _s(1, dtype)]
        case = Case("QLinearConcat", [_s(0.0613), z, *first, *triple], {"axis": 1},
                    constant=(0, 1, 3, 4, 6, 7))  # fmt: skip
        yield case
        yield _opened(case, n=[(2, 1)], m=[(5, 1)])
        image = _q(5, 2, 5, 7, 6, dtype=dtype)
        for last in (0, 1):
            yield Case("QLinearGlobalAveragePool", [image, _s(0.0531), z, _s(0.0109), _s(3, dtype)],
                       {"channels_last": last}, constant=(1, 2, 3, 4))  # fmt: skip
        inputs = [image, _s(0.0531), z, _s(0.0317), _s(3, dtype)]
        for attributes in (
            {"kernel_shape": [3, 2]},
            {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 1, 1]},
            {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2], "count_include_pad": 1},
            {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
            {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": 1},
            {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        ):
            case = Case("QLinearAveragePool", inputs, attributes, constant=(1, 2, 3, 4))
            yield case
            yield _opened(case, n=[(0, 0)])
    yield from quantised_products()
    yield from conversions()


def quantised_products() -> Iterator[Case]:
    for left, right in ((U8, S8), (U8, U8), (S8, S8)):
        a, b = _q(1, 5, 16, dtype=left), _q(2, 16, 6, dtype=right)
        za, zb = _s(3, left), _s(-1 if right is S8 else 130, right)
        bias = np.arange(6, dtype=I32) * 1000
        first = [a, _s(0.0203), za, b, _s(0.0109), zb]
        last = [_s(0.3071), _s(7, left)]
        for c, rest in ((bias, last), (None, last), (bias, []), (None, [])):
            case = Case("QGemm", [*first, c, *rest], constant=(1, 2, 3, 4, 5, 6, 7, 8))
            yield case
            yield _opened(case, n=[(0, 0)])
        inputs = [a, _s(0.0203), za, np.ascontiguousarray(b.T), _s(0.0109), zb, bias, *last]
        yield Case("QGemm", inputs, {"transB": 1, "alpha": 0.5}, constant=(1, 2, 3, 4, 5, 6, 7, 8))
        columns = [_s(np.linspace(0.01, 0.02, 6)), np.arange(6).astype(right)]
        inputs = [a, _s(0.0203), za, b, *columns, bias, *last]
        yield Case("QGemm", inputs, constant=(1, 2, 3, 4, 5, 6, 7, 8))
        x = _f(3, 2, 5, 16)
        for scale, zero, moved in (
            (_s(0.0109), zb, None),
            (columns[0], None, _f(4, 6)),
            (columns[0], columns[1], _f(4, 6)),
        ):
            inputs = [x, b, scale, zero, moved]
            case = Case("DynamicQuantizeMatMul", inputs, constant=(1, 2, 3, 4), tolerance=5e-3)
            yield case
            yield _opened(case, n=[(0, 1)])
            inputs = [np.stack([a, a[::-1]]), b, _s(0.0203), scale, za, zero, moved]
            case = Case("MatMulIntegerToFloat", inputs, constant=(1, 2, 3, 4, 5, 6))
            yield case
            yield _opened(case, n=[(0, 0)])
    for last in (0, 1):
        x = _q(1, 2, 4, 6, 6) if not last else _q(1, 2, 6, 6, 4)
        inputs = [x, _s(0.0203), _s(3, U8), _q(2, 8, 4, 3, 3, dtype=S8), _s(0.0109), _s(0, S8),
                  _s(0.3071), _s(9, U8), np.arange(8, dtype=I32) * 100]  # fmt: skip
        attributes = {"channels_last": last, "pads": [1, 1, 1, 1], "strides": [1, 2]}
        yield Case("QLinearConv", inputs, attributes, constant=range(1, 9))


def conversions() -> Iterator[Case]:
    x, scales = 3 * _f(1, 2, 3, 4), _s([0.1, 0.2, 0.05])
    yield Case("QuantizeLinear", [x, _s(0.1), None])
    for zeros in (np.array([3, 4, 5], U8), np.array([3, -4, 5], S8), np.array([9, 1, 2], np.int16)):
        yield Case("QuantizeLinear", [x, scales, zeros], constant=(1, 2))
        yield _opened(Case("QuantizeLinear", [x, _s(0.1), zeros[0]], constant=(1, 2)), n=[(0, 0)])
        q = _q(1, 2, 3, 4, dtype=zeros.dtype.type)
        yield Case("DequantizeLinear", [q, scales, zeros], {"axis": -2}, constant=(1, 2))
        yield _opened(Case("DequantizeLinear", [q, _s(0.1), zeros[0]]), n=[(0, 2)])
    yield Case("DequantizeLinear", [_q(1, 5), _s(0.1), None])
    yield Case("DequantizeLinear", [_q(1, 5, dtype=I32), _s(0.1), None])


def fused() -> Iterator[Case]:
    x, bias = 2 * _f(1, 2, 3, 8), _f(2, 8)
    for name, inputs in (
        ("Gelu", [x]), ("FastGelu", [x]), ("FastGelu", [x, bias]), ("BiasGelu", [x, bias]),
        ("QuickGelu", [x]),
    ):  # fmt: skip
        yield Case(name, inputs)
        yield _opened(Case(name, inputs), n=[(0, 0)], m=[(0, 1)])
    yield Case("QuickGelu", [x], {"alpha": 1.0})
    for a, b, attributes in (
        (_f(1, 2, 3, 4), _f(2, 2, 4, 5), {"alpha": 0.5}),
        (_f(1, 2, 4, 3), _f(2, 2, 4, 5), {"transA": 1}),
        (_f(1, 2, 3, 4), _f(2, 5, 4), {"transB": 1}),
        (_f(1, 3, 2, 4), _f(2, 4, 2, 5), {"transBatchA": 1, "transBatchB": 1}),
        (_f(1, 3, 6, 2, 4), _f(2, 6, 2, 3, 5), {"transBatchA": 1, "transA": 1}),
        (_f(1, 6, 2, 3, 4), _f(2, 4, 6, 2, 5), {"transBatchB": 1}),
        (_f(1, 6, 2, 3, 4), _f(2, 5, 6, 2, 4), {"transBatchB": 1, "transB": 1}),
        (_f(1, 4), _f(2, 4, 5), {"transA": 1}),
    ):  # fmt: skip
        case = Case("FusedMatMul", [a, b], attributes)
        yield case
        if a.ndim > 1 and "transBatchA" not in attributes and "transBatchB" not in attributes:
            yield _opened(case, n=[(0, 2 if attributes.get("transA") else 1)])
    yield Case("TransposeMatMul", [_f(1, 4, 3), _f(2, 4, 5)], {"transA": 1, "alpha": 2.0})
    for name, numbers in (
        ("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Softplus", {}),
        ("Elu", {"activation_alpha": 0.5}), ("ThresholdedRelu", {"activation_alpha": 0.5}),
    ):  # fmt: skip
        attributes = {"activation": name, "transB": 1, "alpha": 0.5, "beta": 2.0, **numbers}
        case = Case("FusedGemm", [_f(1, 3, 4), _f(2, 5, 4), _f(3, 5)], attributes)
        yield _opened(case, n=[(0, 0)]) if name == "Relu" else case
    yield Case("FusedGemm", [_f(1, 3, 4), _f(2, 4, 5)], {"activation": "Relu"})
    image, weights = _f(1, 2, 4, 6, 6), _f(2, 8, 4, 3, 3)
    for name, params in (
        ("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.2]),
        ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4]), ("", None),
    ):  # fmt: skip
        attributes = {"pads": [1, 1, 1, 1], **({"activation": name} if name else {})}
        attributes |= {} if params is None else {"activation_params": params}
        yield Case("FusedConv", [image, weights, _f(3, 8)], attributes)
        yield Case("FusedConv", [image, weights, None, _f(4, 2, 8, 6, 6)], attributes)
    case = Case("FusedConv", [image, _f(2, 8, 2, 3, 3), _f(3, 8)],
                {"group": 2, "strides": [2, 2], "activation": "Relu"})  # fmt: skip
    yield _opened(case, n=[(0, 0)])
    last = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    yield Case("NhwcFusedConv", [last, weights, _f(3, 8)], {"activation": "Relu"},
               oracle=_nhwc_conv)  # fmt: skip
    yield from narrow_weights()


def _nhwc_conv(x: Array, weights: Array, bias: Array) -> Array:
    patches = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    result = np.einsum("nhwcij,ocij->nhwo", patches, weights)
    return np.asarray(np.maximum(result + bias, 0))


def narrow_weights() -> Iterator[Case]:
    for bits, size, depth, columns in ((4, 32, 64, 5), (4, 16, 50, 6), (8, 32, 64, 5), (4, 32, 96, 8)):
        blocks = -(-depth // size)
        weights = _q(1, columns, blocks, size * bits // 8)
        scales = np.abs(_f(2, columns, blocks)).astype(F32) / 8
        zeros = _q(3, columns, -(-blocks * bits // 8))
        attributes = {"K": depth, "N": columns, "bits": bits, "block_size": size}
        for inputs in (
            [_f(4, 2, 3, depth), weights, scales],
            [_f(4, 3, depth), weights, scales, zeros],
            [_f(4, 3, depth), weights, scales.ravel(), zeros.ravel()],
            [_f(4, 3, depth), weights, scales, zeros, None, _f(5, columns)],
        ):
            case = Case("MatMulNBits", inputs, attributes, constant=range(1, 6), tolerance=1e-4)
            yield case
            yield _opened(case, n=[(0, 0)])


def normalised() -> Iterator[Case]:
    x, skip = _f(1, 2, 3, 8), _f(2, 2, 3, 8)
    gamma, beta, bias = _f(3, 8), _f(4, 8), _f(5, 8)
    yield Case("SimplifiedLayerNormalization", [x, gamma], domain="")
    yield Case("SimplifiedLayerNormalization", [x, _f(3, 3, 8)], {"axis": 1, "epsilon": 0.1},
               domain="")  # fmt: skip
    case = Case("SimplifiedLayerNormalization", [x, gamma], outputs=("y", "s"), domain="")
    yield _opened(case, n=[(0, 0)], m=[(0, 1)])
    for inputs in (
        [x, skip, gamma], [x, skip, gamma, beta], [x, skip, gamma, beta, bias],
        [x, skip, gamma, None, bias], [x, skip[:1], gamma, beta], [x, skip[0], gamma, beta],
        [x[0], skip[0], gamma, beta],
    ):  # fmt: skip
        yield Case("SkipLayerNormalization", inputs, {"epsilon": 0.01})
    case = Case("SkipLayerNormalization", [x, skip, gamma, beta, bias], outputs=("y", "", "", "s"))
    yield _opened(case, n=[(0, 0), (1, 0)], m=[(0, 1), (1, 1)])
    for inputs in ([x, skip, gamma], [x, skip, gamma, bias], [x, skip[0], gamma]):
        case = Case("SkipSimplifiedLayerNormalization", inputs, outputs=("y", "", "", "s"))
        yield case
        yield _opened(replace(case, outputs=["y"]), n=[(0, 0)])
    ids = np.array([[1, 4, 0], [2, 2, 5]], I32)
    words, places, segments = _f(1, 6, 8), _f(2, 4, 8), _f(3, 2, 8)
    mask = np.array([[1, 1, 0], [1, 1, 1]], I32)
    norm = [gamma, beta]
    for inputs, outputs in (
        ([ids, ids % 2, words, places, segments, *norm, mask], ("y", "m")),
        ([ids, None, words, places, None, *norm], ("y", "m")),
        ([ids, ids % 2, words, places, segments, *norm, None, np.array([[3, 1, 0]] * 2, I32)],
         ("y", "m", "s")),
        ([ids, None, words, places, None, *norm, mask], ("y", "m", "s")),
    ):  # fmt: skip
        case = Case("EmbedLayerNormalization", inputs, {"epsilon": 1e-3}, outputs)
        yield replace(case, constant=(2, 3, 4))
        opened = [(at, 1) for at in (0, 1, 7, 8) if at < len(inputs) and inputs[at] is not None]
        yield _opened(replace(case, constant=(2, 3, 4)), n=opened)
    image, g = _f(1, 2, 4, 5, 6), _f(3, 6)
    for activation in (0, 1):
        attributes = {"groups": 3, "activation": activation, "epsilon": 1e-3}
        yield Case("GroupNorm", [image, g, _f(4, 6)], attributes, oracle=_group_norm(activation))


def _group_norm(activation: int) -> Callable[..., Array]:
    def oracle(x: Array, gamma: Array, beta: Array) -> Array:
        parts = x.reshape(2, 20, 3, 2).astype(np.float64)
        mean = parts.mean((1, 3), keepdims=True)
        normal = (parts - mean) / np.sqrt(parts.var((1, 3), keepdims=True) + 1e-3)
        y = normal.reshape(x.shape) * gamma + beta
        return np.asarray(y / (1 + np.exp(-y)) if activation else y, F32)

    return oracle


def moved() -> Iterator[Case]:
    x = _f(1, 2, 4, 5)
    yield Case("Trilu", [x])
    yield Case("Trilu", [x, np.array(-1)], {"upper": 0}, constant=(1,))
    yield Case("ExpandDims", [x, np.array(1, I32)], constant=(1,))
    yield Case("ExpandDims", [x, np.array(-1, I32)], constant=(1,))
    yield Case("Pad", [x, np.array([0, 1, 2, 1, 0, 0]), _s(2.5)], constant=(1,))
    yield Case("Pad", [x, np.array([0, 1, 2, 1, 0, 0])], {"mode": "reflect"}, constant=(1,))
    yield Case("CDist", [_f(1, 5, 4), _f(2, 3, 4)], tolerance=1e-4)
    case = Case("CDist", [_f(1, 5, 4), _f(2, 3, 4)], {"metric": "euclidean"}, tolerance=1e-4)
    yield _opened(case, n=[(0, 0)])
    for dtype in (U8, S8):
        attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 1, 0]}
        yield Case("NhwcMaxPool", [_q(1, 2, 7, 6, 3, dtype=dtype)], attributes)
    y = _f(3, 2, 4, 5)
    yield Case("BiasAdd", [x, _f(2, 5), y], oracle=lambda x, b, y: x + b + y)
    yield Case("BiasSplitGelu", [_f(1, 2, 3, 8), _f(2, 8)], oracle=_split_gelu)
    yield Case("BiasSoftmax", [x, y[:1]], {"axis": -1, "is_inner_broadcast": 0},
               oracle=_bias_softmax)  # fmt: skip


def _split_gelu(x: Array, bias: Array) -> Array:
    from math import erf

    left, right = np.split(x + bias, 2, axis=-1)
    return np.asarray(left * right * (1 + np.vectorize(erf)(right / 2**0.5)) / 2, F32)


def _bias_softmax(x: Array, bias: Array) -> Array:
    powers = np.exp(x + bias)
    return np.asarray(powers / powers.sum(-1, keepdims=True))
