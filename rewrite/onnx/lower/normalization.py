"""Lowerings of normalisations, as their definitions."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import exact_quotient
from satura.rewrite.types.tensor_type import DType


@lowering("Softmax", "LogSoftmax")
@computed_wide
def softmax(node: Context) -> int:
    """exp(x - m) / sum(exp(x - m)), m the largest element; the log form is x - m - log(sum).

    Before opset 13 all axes from `axis` on count as one.
    """
    build, x = node.build, node[0]
    rank = build.rank(x)
    if node.opset >= 13:
        axes = [node.axis(node.integer("axis", -1), rank)]
    else:
        axes = list(range(node.axis(node.integer("axis", 1), rank), rank))
    moved = build.binary("sub", x, build.reduced("max", x, axes))
    grown = build.unary("exp", moved)
    if node.proto.op_type == "Softmax":
        return build.binary("div", grown, build.reduced("sum", grown, axes))
    total = build.unary("log", build.reduce("sum", grown, axes))
    return build.binary("sub", moved, build.expand(total, build.shape(x)))


@lowering("BatchNormalization")
@computed_wide
def batch_norm(node: Context) -> list[int]:
    """x·a + b with a = scale / √(var + ε) and b = bias - mean·a, both per channel."""
    if node.integer("training_mode"):
        return _trained_batch_norm(node)
    if len([w for w in node.wanted if w]) > 1:
        raise NoLowering
    build, x = node.build, node[0]
    shape, dtype = build.shape(x), build.dtype(x)
    scale, bias, mean, variance = (
        build.converted(node[position], build.dtype(node[3])) for position in (1, 2, 3, 4)
    )
    a = build.binary("div", scale, _deviation(node, variance))
    b = build.binary("sub", bias, build.binary("mul", mean, a))
    wide = build.converted(x, build.dtype(a))
    if node.opset < 9 and not node.integer("spatial", 1):
        spread = [build.expand(vector, shape) for vector in (a, b)]
    else:
        spread = [build.along(vector, min(1, len(shape) - 1), shape) for vector in (a, b)]
    result = build.binary("add", build.binary("mul", wide, spread[0]), spread[1])
    return [build.converted(result, dtype)]


def _trained_batch_norm(node: Context) -> list[int]:
    """With the batch's own mean and variance; then the running ones, moved towards these."""
    build, x = node.build, node[0]
    shape, rank = build.shape(x), build.rank(x)
    axes = [axis for axis in range(rank) if axis != 1]
    mean, centred, variance = _center(build, x, axes)
    scaled = build.binary("div", centred, build.expand(_deviation(node, variance), shape))
    wide = [build.along(build.converted(node[at], build.dtype(x)), 1, shape) for at in (1, 2)]
    result = build.binary("add", build.binary("mul", scaled, wide[0]), wide[1])
    momentum = node.number("momentum", 0.9)
    moved = []
    for position, fresh in ((3, mean), (4, variance)):
        kept = build.apply_number("mul", node[position], momentum)
        line = build.converted(build.reshape(fresh, build.shape(kept)), build.dtype(kept))
        moved.append(build.binary("add", kept, build.apply_number("mul", line, 1 - momentum)))
    return [result, *moved][: len(node.wanted)]


def _deviation(node: Context, variance: int, default: float = 1e-5) -> int:
    """√(variance + ε)"""
    build = node.build
    return build.unary("sqrt", build.apply_number("add", variance, node.number("epsilon", default)))


def _center(build: Tensors, x: int, axes: Sequence[int]) -> tuple[int, int, int]:
    """The mean along `axes`, x minus it, and the variance."""
    mean = build.mean(x, axes)
    centred = build.binary("sub", x, build.expand(mean, build.shape(x)))
    return mean, centred, build.mean(build.binary("mul", centred, centred), axes)


@lowering("LayerNormalization")
def layer_norm(node: Context) -> list[int]:
    """(x - mean) / √(var + ε) · scale + bias over the axes from `axis` on, computed in f32."""
    build, x = node.build, node[0]
    dtype = build.dtype(x)
    wide = _stash(node, x)
    rank, shape = build.rank(x), build.shape(x)
    axes = range(node.axis(node.integer("axis", -1), rank), rank)
    mean, centred, variance = _center(build, wide, axes)
    deviation = _deviation(node, variance)
    result = build.binary("div", centred, build.expand(deviation, shape))
    result = build.binary("mul", build.converted(result, dtype), build.expand(node[1], shape))
    bias = node.optional(2)
    if bias is not None:
        result = build.binary("add", result, build.expand(bias, shape))
    inverse = build.binary("div", build.number(1, deviation), deviation)
    return [result, mean, inverse][: len(node.wanted)]


def _stash(node: Context, x: int) -> int:
    """x in the type that statistics are computed in: f32 for f16 and bf16."""
    narrow = node.build.dtype(x) in (DType.F16, DType.BF16)
    return node.build.cast(x, DType.F32) if narrow and node.integer("stash_type", 1) == 1 else x


@lowering("RMSNormalization")
def rms_norm(node: Context) -> int:
    """x / √(mean(x²) + ε) · scale over the axes from `axis` on."""
    build, x = node.build, node[0]
    wide = _stash(node, x)
    rank, shape = build.rank(x), build.shape(x)
    axes = range(node.axis(node.integer("axis", -1), rank), rank)
    deviation = _deviation(node, build.mean(build.binary("mul", wide, wide), axes))
    result = build.binary("div", wide, build.expand(deviation, shape))
    return build.binary(
        "mul", build.converted(result, build.dtype(node[1])), build.expand(node[1], shape)
    )


@lowering("InstanceNormalization")
@computed_wide
def instance_norm(node: Context) -> int:
    """(x - mean) / √(var + ε) · scale + bias, per sample and channel."""
    build, x = node.build, node[0]
    shape = build.shape(x)
    _, centred, variance = _center(build, x, range(2, len(shape)))
    result = build.binary("div", centred, build.expand(_deviation(node, variance), shape))
    result = build.binary("mul", result, build.along(node[1], 1, shape))
    return build.binary("add", result, build.along(node[2], 1, shape))


@lowering("GroupNormalization")
def group_norm(node: Context) -> int:
    """Instance normalisation over groups of channels; scale and bias per channel."""
    build, x = node.build, node[0]
    shape, dtype = build.shape(x), build.dtype(x)
    groups = node.integer("num_groups")
    width = exact_quotient(shape[1], groups) if groups > 0 else None
    if width is None:
        raise node.wrong(f"{shape[1]} channels do not split into {groups} groups")
    grouped = build.reshape(_stash(node, x), (shape[0], groups, width, *shape[2:]))
    _, centred, variance = _center(build, grouped, range(2, len(shape) + 1))
    normal = build.binary(
        "div", centred, build.expand(_deviation(node, variance), build.shape(grouped))
    )
    if node.opset < 21:
        scale, bias = (
            build.along(build.converted(node[i], build.dtype(normal)), 1, build.shape(normal))
            for i in (1, 2)
        )
        result = build.binary("add", build.binary("mul", normal, scale), bias)
        return build.converted(build.reshape(result, shape), dtype)
    flat = build.converted(build.reshape(normal, shape), dtype)
    scaled = build.binary("mul", flat, build.along(node[1], 1, shape))
    return build.binary("add", scaled, build.along(node[2], 1, shape))


@lowering("MeanVarianceNormalization")
@computed_wide
def mean_variance_norm(node: Context) -> int:
    """(x - mean) / (√var + 1e-9) over the axes."""
    build, x = node.build, node[0]
    given = node.integers("axes")
    axes = node.axes((0, 2, 3) if given is None else given, build.rank(x))
    _, centred, variance = _center(build, x, axes)
    deviation = build.apply_number("add", build.unary("sqrt", variance), 1e-9)
    return build.binary("div", centred, build.expand(deviation, build.shape(x)))


@lowering("LpNormalization")
@computed_wide
def lp_norm(node: Context) -> int:
    """x divided by its L1 or L2 norm along an axis; 0 where the norm is 0."""
    build, x = node.build, node[0]
    axis = node.axis(node.integer("axis", -1), build.rank(x))
    if node.integer("p", 2) == 1:
        norm = build.reduced("sum", build.unary("abs", x), [axis])
    else:
        norm = build.reduce("sum", build.binary("mul", x, x), [axis])
        norm = build.expand(build.unary("sqrt", norm), build.shape(x))
    zero = build.number(0, x)
    empty = build.binary("eq", norm, zero)
    return build.select(empty, zero, build.binary("div", x, norm))
