"""The canonical ops: name, attributes, type rule, reference and flops of each, at one place."""

from satura.rewrite.ops import elementwise, indexing, layout, reductions, sources
from satura.rewrite.ops.registry import OWN, REGISTRY, Kind, Op

__all__ = [
    "OWN",
    "REGISTRY",
    "Kind",
    "Op",
    "elementwise",
    "indexing",
    "layout",
    "reductions",
    "sources",
]
