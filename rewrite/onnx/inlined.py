"""A model whose own functions are inlined, so that what their nodes compute has names in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from onnx import ModelProto, NodeProto, inliner

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.importer import MOST_INLINED, MOST_NESTED
from satura.rewrite.onnx.order import all_nodes
from satura.rewrite.user_ops.declare import find


def inlined(model: ModelApart) -> ModelApart:
    """`model` with the bodies of its functions in place of their calls.

    Declared ops stay, since they do not mean such a body. Raises UnsupportedError where the bodies
    are too many, call each other in a circle, or are of another opset than the model.
    """
    proto = model.proto
    names = [(f.domain, f.name) for f in proto.functions if find(f.domain, f.name) is None]
    if _inlined_size(proto) > MOST_INLINED:
        raise UnsupportedError(
            f"the bodies of the model's functions have more than {MOST_INLINED:,} nodes in all"
        )
    try:
        return replace(model, proto=inliner.inline_selected_functions(proto, names))
    except Exception as error:  # the inliner raises whatever its C++ throws
        raise UnsupportedError(str(error).strip() or "the onnx package does not say why") from None


def _inlined_size(model: ModelProto) -> int:
    """How many nodes the model has when its functions are inlined."""
    bodies = {(f.domain, f.name, f.overload): f.node for f in model.functions}
    sizes: dict[tuple[str, str, str], int] = {}

    def size(nodes: Iterable[NodeProto], depth: int) -> int:
        if depth > MOST_NESTED:
            raise UnsupportedError(
                f"the model's functions call each other more than {MOST_NESTED} deep"
            )
        total = 0
        for node in all_nodes(nodes):
            key = (node.domain, node.op_type, node.overload)
            if key in bodies and key not in sizes:
                sizes[key] = size(bodies[key], depth + 1)
            total += sizes.get(key, 1)
        return total

    return size(model.graph.node, 0)
