"""The canonical ops: name, attributes, type rule, reference and flops of each, at one place."""

from satura.rewrite.ops import (
    attention,
    elementwise,
    host,
    indexing,
    layout,
    recurrence,
    reductions,
    selections,
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
    "host",
    "indexing",
    "layout",
    "recurrence",
    "reductions",
    "selections",
    "sources",
    "winograd",
]
