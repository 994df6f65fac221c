"""Ops that write or find places, as ONNX nodes."""

from __future__ import annotations

from satura.rewrite.onnx.write.emitter import Emitter, Site, kernel_type
from satura.rewrite.types.attributes import Count, ReduceFn

_REDUCTIONS = {"last": "none", "sum": "add", "prod": "mul", "max": "max", "min": "min"}


def scatter(emit: Emitter, site: Site) -> str:
    """scatter(x, indices, updates, f)"""
    (f,) = site.node.attributes
    assert isinstance(f, ReduceFn)
    tuples = emit.node("Unsqueeze", site.operand(1), emit.integers([1]))
    dtype = site.node.type.dtype
    work = kernel_type(dtype)
    x, updates = (emit.cast(site.operand(at), dtype, work) for at in (0, 2))
    result = emit.node("ScatterND", x, tuples, updates, reduction=_REDUCTIONS[f.name])
    return emit.cast(result, work, dtype)


def first_places(emit: Emitter, site: Site) -> str:
    """first_places(x, count, largest)"""
    count, largest = site.node.attributes
    assert isinstance(count, Count) and isinstance(largest, Count)
    made = (site.operand(0), emit.integers([count.value]))
    emit.node("TopK", *made, axis=1, largest=largest.value)
    places = emit.fresh()
    emit.nodes[-1].output.append(places)
    return places
