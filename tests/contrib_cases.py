"""Nodes of onnxruntime's own ops, with inputs: several for each op that is defined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from satura.rewrite.onnx.contrib.definition import DOMAIN

Array = NDArray[Any]
Attributes = Mapping[str, Any]
F32 = np.float32
U8 = np.uint8
S8 = np.int8
I32 = np.int32
I64 = np.int64


@dataclass(frozen=True)
class Case:
    """A node whose inputs are arrays, of which `constant` ones are initializers; None is left out.

    Open axes are those of `symbols`, by the position of an input and the axis.
    """

    op_type: str
    inputs: Sequence[Array | None]
    attributes: Attributes = field(default_factory=dict)
    outputs: Sequence[str] = ("y",)
    constant: Sequence[int] = ()
    symbols: Mapping[tuple[int, int], str] = field(default_factory=dict)
    tolerance: float = 2e-5
    compared: Sequence[str] = ()  # or all outputs
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


def f32s(seed: int, *shape: int, dtype: type = F32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def octets(seed: int, *shape: int, dtype: type = U8) -> Array:
    bounds = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def number(value: float | Sequence[float], dtype: type = F32) -> Array:
    return np.array(value, dtype)


def opened(case: Case, **symbols: Sequence[tuple[int, int]]) -> Case:
    """The case with axes of inputs open."""
    return replace(case, symbols={at: name for name, places in symbols.items() for at in places})


def fused() -> Iterator[Case]:
    attributes: Attributes
    x, bias = 2 * f32s(1, 2, 3, 8), f32s(2, 8)
    for name, inputs in (
        ("Gelu", [x]), ("FastGelu", [x]), ("FastGelu", [x, bias]), ("BiasGelu", [x, bias]),
        ("QuickGelu", [x]),
    ):  # fmt: skip
        yield Case(name, inputs)
        yield opened(Case(name, inputs), n=[(0, 0)], m=[(0, 1)])
    yield Case("QuickGelu", [x], {"alpha": 1.0})
    for a, b, attributes in (
        (f32s(1, 2, 3, 4), f32s(2, 2, 4, 5), {"alpha": 0.5}),
        (f32s(1, 2, 4, 3), f32s(2, 2, 4, 5), {"transA": 1}),
        (f32s(1, 2, 3, 4), f32s(2, 5, 4), {"transB": 1}),
        (f32s(1, 3, 2, 4), f32s(2, 4, 2, 5), {"transBatchA": 1, "transBatchB": 1}),
        (f32s(1, 3, 6, 2, 4), f32s(2, 6, 2, 3, 5), {"transBatchA": 1, "transA": 1}),
        (f32s(1, 6, 2, 3, 4), f32s(2, 4, 6, 2, 5), {"transBatchB": 1}),
        (f32s(1, 6, 2, 3, 4), f32s(2, 5, 6, 2, 4), {"transBatchB": 1, "transB": 1}),
        (f32s(1, 4), f32s(2, 4, 5), {"transA": 1}),
    ):  # fmt: skip
        case = Case("FusedMatMul", [a, b], attributes)
        yield case
        if a.ndim > 1 and "transBatchA" not in attributes and "transBatchB" not in attributes:
            yield opened(case, n=[(0, 2 if attributes.get("transA") else 1)])
    transposed = [f32s(1, 4, 3), f32s(2, 5, 4)]
    yield Case("TransposeMatMul", transposed, {"transA": 1, "transB": 1, "alpha": 2.0})
    for name, numbers in (
        ("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Softplus", {}),
        ("Elu", {"activation_alpha": 0.5}), ("ThresholdedRelu", {"activation_alpha": 0.5}),
    ):  # fmt: skip
        attributes = {"activation": name, "transB": 1, "alpha": 0.5, "beta": 2.0, **numbers}
        case = Case("FusedGemm", [f32s(1, 3, 4), f32s(2, 5, 4), f32s(3, 5)], attributes)
        yield opened(case, n=[(0, 0)]) if name == "Relu" else case
    yield Case("FusedGemm", [f32s(1, 3, 4), f32s(2, 4, 5)], {"activation": "Relu"})
    image, weights = f32s(1, 2, 4, 6, 6), f32s(2, 8, 4, 3, 3)
    for name, params in (
        ("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.2]),
        ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4]), ("", None),
    ):  # fmt: skip
        attributes = {"pads": [1, 1, 1, 1], **({"activation": name} if name else {})}
        attributes |= {} if params is None else {"activation_params": params}
        yield Case("FusedConv", [image, weights, f32s(3, 8)], attributes)
        yield Case("FusedConv", [image, weights, None, f32s(4, 2, 8, 6, 6)], attributes)
    case = Case("FusedConv", [image, f32s(2, 8, 2, 3, 3), f32s(3, 8)],
                {"group": 2, "strides": [2, 2], "activation": "Relu"})  # fmt: skip
    yield opened(case, n=[(0, 0)])
    last = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    yield Case("NhwcFusedConv", [last, weights, f32s(3, 8)], {"activation": "Relu"},
               oracle=_nhwc_conv)  # fmt: skip


def _nhwc_conv(x: Array, weights: Array, bias: Array) -> Array:
    patches = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    result = np.einsum("nhwcij,ocij->nhwo", patches, weights)
    return np.asarray(np.maximum(result + bias, 0))


def normalised() -> Iterator[Case]:
    x, skip = f32s(1, 2, 3, 8), f32s(2, 2, 3, 8)
    gamma, beta, bias = f32s(3, 8), f32s(4, 8), f32s(5, 8)
    yield Case("SimplifiedLayerNormalization", [x, gamma], domain="")
    yield Case("SimplifiedLayerNormalization", [x, f32s(3, 3, 8)], {"axis": 1, "epsilon": 0.1},
               domain="")  # fmt: skip
    case = Case("SimplifiedLayerNormalization", [x, gamma], {"epsilon": 0.1}, ("y", "s"), domain="")
    yield case
    yield opened(case, n=[(0, 0)], m=[(0, 1)])
    for inputs in (
        [x, skip, gamma], [x, skip, gamma, beta], [x, skip, gamma, beta, bias],
        [x, skip, gamma, None, bias], [x, skip[:1], gamma, beta], [x, skip[0], gamma, beta],
        [x[0], skip[0], gamma, beta],
    ):  # fmt: skip
        yield Case("SkipLayerNormalization", inputs, {"epsilon": 0.01})
    case = Case("SkipLayerNormalization", [x, skip, gamma, beta, bias], outputs=("y", "", "", "s"))
    yield opened(case, n=[(0, 0), (1, 0)], m=[(0, 1), (1, 1)])
    for inputs in ([x, skip, gamma], [x, skip, gamma, bias], [x, skip[0], gamma]):
        case = Case("SkipSimplifiedLayerNormalization", inputs, outputs=("y", "", "", "s"))
        yield case
        rows = [(0, 0), (1, 0)] if inputs[1] is skip else [(0, 0)]
        yield opened(replace(case, outputs=["y"]), n=rows)
    ids = np.array([[1, 4, 0], [2, 2, 5]], I32)
    words, places, segments = f32s(1, 6, 8), f32s(2, 4, 8), f32s(3, 2, 8)
    mask = np.array([[1, 2, 0], [1, 1, 1]], I32)
    norm = [gamma, beta]
    for inputs, outputs in (
        ([ids, ids % 2, words, places, segments, *norm, mask], ("y", "m")),
        ([ids, None, words, places, None, *norm], ("y", "m")),
        ([ids, ids % 2, words, places, segments, *norm, None, np.array([[3, 1, 0]] * 2, I32)],
         ("y", "m", "s")),
        ([ids, None, words, places, None, *norm, mask], ("y", "m", "s")),
        ([ids, None, words, places, segments, *norm], ("y", "m", "s")),
    ):  # fmt: skip
        case = Case("EmbedLayerNormalization", inputs, {"epsilon": 1e-3}, outputs)
        yield replace(case, constant=(2, 3, 4))
        open_axes = [(at, 1) for at in (0, 1, 7, 8) if at < len(inputs) and inputs[at] is not None]
        yield opened(replace(case, constant=(2, 3, 4)), n=open_axes)
    image, g = f32s(1, 2, 4, 5, 6), f32s(3, 6)
    for activation in (0, 1):
        attributes = {"groups": 3, "activation": activation, "epsilon": 1e-3}
        yield Case("GroupNorm", [image, g, f32s(4, 6)], attributes, oracle=_group_norm(activation))


def _group_norm(activation: int) -> Callable[..., Array]:
    def oracle(x: Array, gamma: Array, beta: Array) -> Array:
        parts = x.reshape(2, 20, 3, 2).astype(np.float64)
        mean = parts.mean((1, 3), keepdims=True)
        normal = (parts - mean) / np.sqrt(parts.var((1, 3), keepdims=True) + 1e-3)
        y = normal.reshape(x.shape) * gamma + beta
        return np.asarray(y / (1 + np.exp(-y)) if activation else y, F32)

    return oracle


def moved() -> Iterator[Case]:
    x = f32s(1, 2, 4, 5)
    yield Case("Trilu", [x])
    yield Case("Trilu", [x, np.array(-1)], {"upper": 0}, constant=(1,))
    yield Case("ExpandDims", [x, np.array(1, I32)], constant=(1,))
    yield Case("ExpandDims", [x, np.array(-1, I32)], constant=(1,))
    yield Case("Pad", [x, np.array([0, 1, 2, 1, 0, 0]), number(2.5)], constant=(1,))
    yield Case("Pad", [x, np.array([0, 1, 2, 1, 0, 0])], {"mode": "reflect"}, constant=(1,))
    yield Case("CDist", [f32s(1, 5, 4), f32s(2, 3, 4)], tolerance=1e-4)
    case = Case("CDist", [f32s(1, 5, 4), f32s(2, 3, 4)], {"metric": "euclidean"}, tolerance=1e-4)
    yield opened(case, n=[(0, 0)])
    for dtype in (U8, S8):
        attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 1, 0]}
        yield Case("NhwcMaxPool", [octets(1, 2, 7, 6, 3, dtype=dtype)], attributes)
    y = f32s(3, 2, 4, 5)
    yield Case("BiasAdd", [x, f32s(2, 5), y], oracle=lambda x, b, y: x + b + y)
    yield Case("BiasSplitGelu", [f32s(1, 2, 3, 8), f32s(2, 8)], oracle=_split_gelu)
    yield Case("BiasSoftmax", [x, y[:1]], {"axis": -1, "is_inner_broadcast": 0},
               oracle=_bias_softmax)  # fmt: skip


def _split_gelu(x: Array, bias: Array) -> Array:
    left, right = np.split(x + bias, 2, axis=-1)
    return np.asarray(left * right * (1 + np.vectorize(erf)(right / 2**0.5)) / 2, F32)


def _bias_softmax(x: Array, bias: Array) -> Array:
    powers = np.exp(x + bias)
    return np.asarray(powers / powers.sum(-1, keepdims=True))
