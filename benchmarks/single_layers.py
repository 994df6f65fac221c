"""`python -m benchmarks layers`: single layers of known networks against onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.peers import runners
from benchmarks.statistics import geometric_mean, time_in_turns
from satura.commands.terminal import print_line, print_table
from satura.commands.timing import ratio
from satura.rewrite.types.tensor_type import Array

DTYPES = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16}
_OPSET = 18
Attributes = Mapping[str, int | str | list[int]]

# network, then: channels in and out, edge, kernel, stride, groups
_CONVOLUTIONS = (
    ("ResNet-50", 3, 64, 224, 7, 2, 1), ("ResNet-50", 64, 64, 56, 3, 1, 1),
    ("ResNet-50", 64, 256, 56, 1, 1, 1), ("ResNet-50", 128, 128, 28, 3, 1, 1),
    ("ResNet-50", 1024, 256, 14, 1, 1, 1), ("ResNet-50", 512, 512, 7, 3, 1, 1),
    ("MobileNetV2", 96, 96, 112, 3, 2, 96), ("MobileNetV2", 144, 144, 56, 3, 1, 144),
    ("MobileNetV2", 576, 576, 14, 3, 1, 576), ("MobileNetV2", 24, 144, 56, 1, 1, 1),
    ("MobileNetV2", 960, 160, 7, 1, 1, 1), ("EfficientNet", 240, 240, 28, 5, 2, 240),
    ("EfficientNet", 672, 672, 14, 5, 1, 672), ("EfficientNet", 40, 240, 28, 1, 1, 1),
    ("ConvNeXt", 96, 96, 56, 7, 1, 96), ("ResNeXt-50", 128, 128, 56, 3, 1, 32),
    ("ResNeXt-50", 256, 256, 28, 3, 1, 32), ("ResNeXt-50", 1024, 1024, 7, 3, 1, 32),
)  # fmt: skip
# network, then: channels in and out, edge, kernel and stride
_TRANSPOSED = (("U-Net", 128, 64, 28, 2, 2), ("DCGAN", 256, 128, 14, 4, 2))
# network, then: batch, rows, depth, columns
_MATMULS = (
    ("BERT", 1, 128, 768, 768), ("BERT", 1, 128, 768, 3072), ("BERT", 1, 128, 3072, 768),
    ("BERT", 12, 128, 64, 128), ("BERT", 12, 128, 128, 64), ("Swin", 192, 49, 32, 49),
    ("Swin", 192, 49, 49, 32), ("Swin", 1, 3136, 96, 384), ("Swin", 1, 196, 1536, 384),
)  # fmt: skip


def layers(dtype: str) -> Iterator[tuple[str, onnx.ModelProto, dict[str, Array]]]:
    """Every layer for elements of one type: its name, its model and an argument."""
    random = np.random.default_rng(0)
    numpy_dtype = helper.tensor_dtype_to_np_dtype(DTYPES[dtype])

    def draw(*shape: int) -> Array:
        return np.asarray(random.standard_normal(shape) / 8).astype(numpy_dtype)

    for network, inner, outer, edge, kernel, stride, groups in _CONVOLUTIONS:
        attributes: Attributes = {
            "strides": [stride] * 2,
            "pads": [kernel // 2] * 4,
            "group": groups,
        }
        weight = draw(outer, inner // groups, kernel, kernel)
        kind = "depthwise" if groups == inner else "grouped" if groups > 1 else "conv"
        name = f"{kind} {network} {inner}>{outer} {edge}² {kernel}×{kernel}/{stride}"
        yield _layer(name, "Conv", dtype, draw(1, inner, edge, edge), [weight], attributes)
    for network, inner, outer, edge, kernel, stride in _TRANSPOSED:
        border = (kernel - stride) // 2
        attributes = {"strides": [stride] * 2, "pads": [border] * 4}
        weight = draw(inner, outer, kernel, kernel)
        name = f"transposed {network} {inner}>{outer} {edge}² {kernel}×{kernel}/{stride}"
        image = draw(1, inner, edge, edge)
        yield _layer(name, "ConvTranspose", dtype, image, [weight], attributes)
    for network, batch, rows, depth, columns in _MATMULS:
        name = f"matmul {network} {batch}×{rows}×{depth}×{columns}"
        shape = (depth, columns) if batch == 1 else (batch, depth, columns)
        left = draw(rows, depth) if batch == 1 else draw(batch, rows, depth)
        yield _layer(name, "MatMul", dtype, left, [draw(*shape)], {})
    image, tokens = draw(1, 64, 112, 112), draw(1, 128, 768)
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    yield _layer("max pool ResNet-50", "MaxPool", dtype, image, [], pool)
    yield _layer("average pool", "AveragePool", dtype, image, [], pool)
    yield _layer("global pool", "GlobalAveragePool", dtype, draw(1, 2048, 7, 7), [], {})
    scales = [np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)]
    resize = {"mode": "nearest", "nearest_mode": "floor",
              "coordinate_transformation_mode": "asymmetric"}  # fmt: skip
    yield _layer("nearest resize", "Resize", dtype, image, scales, resize)
    yield _layer("linear resize", "Resize", dtype, image, scales, {"mode": "linear"})
    yield _layer("softmax BERT", "Softmax", dtype, draw(12, 128, 128), [], {"axis": -1})
    yield _layer("softmax Swin", "Softmax", dtype, draw(64, 3, 49, 49), [], {"axis": -1})
    norm = [draw(768), draw(768)]
    yield _layer("LayerNorm BERT", "LayerNormalization", dtype, tokens, norm, {"axis": -1})
    yield _layer("transpose to last", "Transpose", dtype, image, [], {"perm": [0, 2, 3, 1]})
    heads = draw(1, 128, 12, 64)
    yield _layer("transpose of heads", "Transpose", dtype, heads, [], {"perm": [0, 2, 1, 3]})
    yield _layer("erf", "Erf", dtype, tokens, [], {})


def _layer(
    name: str,
    op: str,
    dtype: str,
    x: Array,
    weights: Sequence[Array],
    attributes: Attributes,
) -> tuple[str, onnx.ModelProto, dict[str, Array]]:
    """One node as a model, whose other operands are constants."""
    given = [numpy_helper.from_array(each, f"w{i}") for i, each in enumerate(weights)]
    operands = ["x", *(each.name for each in given)]
    if op == "Resize":
        operands = ["x", "", "w1"]
    node = helper.make_node(op, operands, ["y"])
    node.attribute.extend(helper.make_attribute(key, each) for key, each in attributes.items())
    source = helper.make_tensor_value_info("x", DTYPES[dtype], x.shape)
    result = helper.make_tensor_value_info("y", DTYPES[dtype], None)
    graph = helper.make_graph([node], "layer", [source], [result], given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
    return name, onnx.shape_inference.infer_shapes(model), {"x": x}


def compare_layers(dtypes: Sequence[str], threads: int, rounds: int, only: str = "") -> None:
    """Print each layer's times, and the geometric mean of onnxruntime's over satura's."""
    for dtype in dtypes:
        compare_each(layers(dtype), f"{dtype} layers", threads, rounds, only)


def compare_each(
    models: Iterable[tuple[str, onnx.ModelProto, dict[str, Array]]],
    what: str,
    threads: int,
    rounds: int,
    only: str = "",
) -> None:
    """Print the times of small models of which the name has `only`, and their geometric mean."""
    rows: list[list[str]] = []
    ratios: list[float] = []
    for name, model, arguments in models:
        if only not in name:
            continue
        try:
            found = list(runners(model, threads, arguments, ("satura", "onnxruntime")))
        except Exception as error:  # whatever a peer raises where it has no such kernel
            rows.append([name, "-", "-", "-", str(error).splitlines()[0][:60]])
            continue
        samples = time_in_turns({runtime: run for runtime, run, _ in found}, rounds)
        middle, low, high = ratio(samples["satura"], samples["onnxruntime"])
        ratios.append(middle)
        milliseconds = [f"{np.median(each) * 1e3:.3f}" for each in samples.values()]
        rows.append([name, *milliseconds, f"{middle:.2f}", f"{low:.2f} to {high:.2f}"])
    header = ["layer", "satura ms", "onnxruntime ms", "ratio", "95 %"]
    print_table(f"{what} on {threads} threads", header, rows)
    print_line(
        f"{what}: geometric mean of onnxruntime's time over satura's: {geometric_mean(ratios):.2f}"
    )
