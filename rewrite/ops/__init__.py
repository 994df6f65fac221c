"""The canonical ops: name, attributes, type rule, reference and flops of each, at one place."""

from satura.rewrite.ops import (
    attention,
    elementwise,
    indexing,
    layout,
    recurrence,
    reductions,
    sources,
    winograd,
)
from satura.rewrite.ops.registry import REGISTRY, USER_OPS, Kind, Op

REPEATING = ("broadcast", "reshape")
"""Ops that make of a constant one that is repeated, as often as their attribute says."""

__all__ = [
    "REGISTRY",
    "REPEATING",
    "USER_OPS",
    "Kind",
    "Op",
    "attention",
    "elementwise",
    "indexing",
    "layout",
    "recurrence",
    "reductions",
    "sources",
    "winograd",
]
