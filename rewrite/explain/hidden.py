"""The e-nodes that are not used any more, for those who ask what happened."""

from __future__ import annotations

from dataclasses import replace

from satura.rewrite.egraph.saturate import Saturation


def with_hidden(saturation: Saturation) -> Saturation:
    """`saturation` with the hidden nodes of every class after those that are used."""
    rows = list(zip(saturation.classes.nodes, saturation.origins, saturation.hidden, strict=True))
    nodes = tuple((*used, *(node for node, _ in hidden)) for used, _, hidden in rows)
    origins = tuple((*used, *(origin for _, origin in hidden)) for _, used, hidden in rows)
    return replace(saturation, classes=replace(saturation.classes, nodes=nodes), origins=origins)
