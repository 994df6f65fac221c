"""Nodes of onnxruntime's quantised ops, with inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.contrib_cases import (
    F32,
    I32,
    I64,
    S8,
    U8,
    Array,
    Attributes,
    Case,
    f32s,
    number,
    octets,
    opened,
)


def quantised() -> Iterator[Case]:
    attributes: Attributes
    for dtype, zero in ((U8, 120), (S8, -7)):
        x, y = octets(1, 2, 3, 7, dtype=dtype), octets(2, 3, 7, dtype=dtype)
        z = number(zero, dtype)
        first, second = [x, number(0.0531), z], [y, number(0.0203), number(3, dtype)]
        for op_type in ("QLinearAdd", "QLinearMul"):
            case = Case(
                op_type, [*first, *second, number(0.0713), number(5, dtype)], constant=(1, 2, 4, 5)
            )
            yield case
            yield replace(case, inputs=[*first, *second, number(0.0713)])
            yield opened(case, n=[(0, 0)])
        for op_type in ("QLinearSigmoid", "QLinearLeakyRelu"):
            yield Case(op_type, [*first, number(1 / 256), number(0, dtype)], constant=(1, 2, 3, 4))
            yield opened(Case(op_type, [x, number(0.0531), None, number(1 / 99), None]), n=[(0, 1)])
        yield Case("QLinearLeakyRelu", [*first, number(0.04), z], {"alpha": 0.3})
        for axis, opset in ((-1, 13), (1, 13), (1, 12), (2, 11)):
            attributes = {"axis": axis, "opset": opset}
            least = np.iinfo(dtype).min
            out = [number(1 / 256), number(least, dtype)]
            case = Case("QLinearSoftmax", [*first, *out], attributes, constant=(1, 2, 3, 4))
            yield case
            yield opened(case, n=[(0, 0)])
        condition = np.random.default_rng(3).random((2, 1, 7)) < 0.5
        inputs = [condition, *first, *second, number(0.0613), number(9, dtype)]
        yield Case("QLinearWhere", inputs, constant=(2, 3, 5, 6, 7, 8))
        triple = [octets(4, 2, 2, 7, dtype=dtype), number(0.09), number(1, dtype)]
        case = Case("QLinearConcat", [number(0.0613), z, *first, *triple], {"axis": 1},
                    constant=(0, 1, 3, 4, 6, 7))  # fmt: skip
        yield case
        yield opened(case, n=[(2, 1)], m=[(5, 1)])
        image = octets(5, 2, 5, 7, 6, dtype=dtype)
        for last in (0, 1):
            inputs = [image, number(0.0531), z, number(0.0109), number(3, dtype)]
            attributes = {"channels_last": last}
            yield Case("QLinearGlobalAveragePool", inputs, attributes, constant=(1, 2, 3, 4))
        inputs = [image, number(0.0531), z, number(0.0317), number(3, dtype)]
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
            yield opened(case, n=[(0, 0)])
    yield from quantised_products()
    yield from conversions()
    yield from narrow_weights()
    yield from embeddings()


def quantised_products() -> Iterator[Case]:
    inputs: list[Array | None]
    for left, right in ((U8, S8), (U8, U8), (S8, S8)):
        a, b = octets(1, 5, 16, dtype=left), octets(2, 16, 6, dtype=right)
        za, zb = number(3, left), number(-1 if right is S8 else 130, right)
        bias = np.arange(6, dtype=I32) * 1000
        first = [a, number(0.0203), za, b, number(0.0109), zb]
        last = [number(0.3071), number(7, left)]
        for c, rest in ((bias, last), (None, last), (bias, []), (None, [])):
            case = Case("QGemm", [*first, c, *rest], constant=(1, 2, 3, 4, 5, 6, 7, 8))
            yield case
            yield opened(case, n=[(0, 0)])
        inputs = [a, number(0.0203), za, np.ascontiguousarray(b.T), number(0.0109), zb, bias, *last]
        yield Case("QGemm", inputs, {"transB": 1, "alpha": 0.5}, constant=(1, 2, 3, 4, 5, 6, 7, 8))
        columns: list[Array] = [np.linspace(0.01, 0.02, 6, dtype=F32), np.arange(6).astype(right)]
        inputs = [a, number(0.0203), za, b, *columns, bias, *last]
        yield Case("QGemm", inputs, constant=(1, 2, 3, 4, 5, 6, 7, 8))
        x = f32s(3, 2, 5, 16)
        for scale, zero, moved in (
            (number(0.0109), zb, None),
            (columns[0], None, f32s(4, 6)),
            (columns[0], columns[1], f32s(4, 6)),
        ):
            inputs = [x, b, scale, zero, moved]
            case = Case("DynamicQuantizeMatMul", inputs, constant=(1, 2, 3, 4), tolerance=5e-3)
            yield case
            yield opened(case, n=[(0, 1)])
            inputs = [np.stack([a, a[::-1]]), b, number(0.0203), scale, za, zero, moved]
            case = Case("MatMulIntegerToFloat", inputs, constant=(1, 2, 3, 4, 5, 6))
            yield case
            yield opened(case, n=[(0, 0)])
    for is_last in (0, 1):
        image = octets(1, 2, 6, 6, 4) if is_last else octets(1, 2, 4, 6, 6)
        weights = [octets(2, 8, 4, 3, 3, dtype=S8), number(0.0109), number(0, S8)]
        rest = [number(0.3071), number(9, U8), np.arange(8, dtype=I32) * 100]
        inputs = [image, number(0.0203), number(3, U8), *weights, *rest]
        attributes = {"channels_last": is_last, "pads": [1, 1, 1, 1], "strides": [1, 2]}
        yield Case("QLinearConv", inputs, attributes, constant=range(1, 9))


def conversions() -> Iterator[Case]:
    x, scales = 3 * f32s(1, 2, 3, 4), number([0.1, 0.2, 0.05])
    yield Case("QuantizeLinear", [x, number(0.1), None])
    for zeros in (np.array([3, 4, 5], U8), np.array([3, -4, 5], S8), np.array([9, 1, 2], np.int16)):
        yield Case("QuantizeLinear", [x, scales, zeros], constant=(1, 2))
        yield opened(
            Case("QuantizeLinear", [x, number(0.1), zeros[0]], constant=(1, 2)), n=[(0, 0)]
        )
        q = octets(1, 2, 3, 4, dtype=zeros.dtype.type)
        yield Case("DequantizeLinear", [q, scales, zeros], {"axis": -2}, constant=(1, 2))
        yield opened(Case("DequantizeLinear", [q, number(0.1), zeros[0]]), n=[(0, 2)])
    yield Case("DequantizeLinear", [octets(1, 5), number(0.1), None])
    yield Case("DequantizeLinear", [octets(1, 5, dtype=I32), number(0.1), None])


def narrow_weights() -> Iterator[Case]:
    for bits, size, depth, columns in (
        (4, 32, 64, 5),
        (4, 16, 50, 6),
        (8, 32, 64, 5),
        (4, 32, 96, 8),
    ):
        blocks = -(-depth // size)
        weights = octets(1, columns, blocks, size * bits // 8)
        scales = np.abs(f32s(2, columns, blocks)).astype(F32) / 8
        zeros = octets(3, columns, -(-blocks * bits // 8))
        attributes = {"K": depth, "N": columns, "bits": bits, "block_size": size}
        for inputs in (
            [f32s(4, 2, 3, depth), weights, scales],
            [f32s(4, 3, depth), weights, scales, zeros],
            [f32s(4, 3, depth), weights, scales.ravel(), zeros.ravel()],
            [f32s(4, 3, depth), weights, scales, zeros, None, f32s(5, columns)],
        ):
            case = Case("MatMulNBits", inputs, attributes, constant=range(1, 6), tolerance=1e-4)
            yield case
            yield opened(case, n=[(0, 0)])
    attributes = {"K": 64, "N": 5, "bits": 4, "block_size": 32}
    inputs = [f32s(4, 3, 64), octets(1, 5, 2, 16), np.abs(f32s(2, 5, 2)), 7 + f32s(3, 5, 2)]
    yield Case("MatMulNBits", inputs, attributes, constant=range(1, 6), tolerance=1e-4)
    attributes = {"K": 128, "N": 5, "bits": 2, "block_size": 32}
    inputs = [f32s(4, 3, 128), octets(1, 5, 4, 8), np.abs(f32s(2, 5, 4)), octets(3, 5, 1)]
    yield Case("MatMulNBits", inputs, attributes, constant=range(1, 6), tolerance=1e-4)
    ids = np.array([[1, 4, 0], [2, 2, 5]], I64)
    scales = np.abs(f32s(2, 6, 4)) / 8
    packed, zeros = octets(1, 6, 32), octets(3, 6, 2)
    attributes = {"block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    for given in (
        [packed, ids, scales],
        [packed, ids[0], scales],
        [packed[:, :24].copy(), ids, scales[:, :3].copy(), zeros],
    ):
        case = Case("GatherBlockQuantized", given, attributes, constant=(0, 2, 3))
        yield case
        yield opened(case, n=[(1, 0)])


def embeddings() -> Iterator[Case]:
    ids = np.array([[1, 4, 0], [2, 2, 5]], I32)
    tables = [octets(1, 6, 8), octets(2, 4, 8), octets(3, 2, 8), octets(4, 8), octets(5, 8)]
    scales = [number(0.01 + at / 300) for at in range(5)]
    zeros = [number(120 + at, U8) for at in range(5)]
    mask = np.array([[1, 2, 0], [1, 1, 1]], I32)
    given = [ids, ids % 2, *tables, mask, *scales, *zeros]
    without = [None if at in (1, 4, 10, 15) else each for at, each in enumerate(given)]
    for inputs in (given, without):
        case = Case("QEmbedLayerNormalization", inputs, {"epsilon": 1e-3}, ("y", "m"), range(2, 7))
        case = replace(case, tolerance=1e-4)
        yield case
        yield opened(case, n=[(at, 1) for at in (0, 1, 7) if inputs[at] is not None])
