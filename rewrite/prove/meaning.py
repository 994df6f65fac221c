"""The meaning of every op that the prover knows, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from satura.rewrite.ops import Op
from satura.rewrite.ops.registry import REGISTRY
from satura.rewrite.prove import folds, layout, reshape
from satura.rewrite.prove.paths import Undecided
from satura.rewrite.prove.tensors import Elements, Judge
from satura.rewrite.prove.user_ops import user_elements

Meaning = Callable[..., Elements]

MEANINGS: dict[str, Meaning] = {
    "unary": lambda judge, x, f: layout.elementwise(judge, f, [x]),
    "binary": lambda judge, x, y, f: layout.elementwise(judge, f, [x, y]),
    "select": layout.select,
    "cast": layout.cast,
    "transpose": layout.transpose,
    "broadcast": layout.broadcast,
    "slice": layout.slice_,
    "pad": layout.pad,
    "concat": layout.concat,
    "reshape": reshape.reshape,
    "reduce": folds.reduce,
    "arg_reduce": folds.arg_reduce,
    "pool": folds.pool,
    "conv": folds.conv,
    "matmul": folds.matmul,
}


def meaning(
    judge: Judge, op: Op, operands: Sequence[Elements], attributes: Sequence[object]
) -> Elements:
    """`op` on tensors; its demands go to `judge`. Raises Undecided for an op without a meaning."""
    if op.user is not None:
        return user_elements(judge, op, operands, attributes)
    if op.name not in MEANINGS or REGISTRY.get(op.name) is not op:
        raise Undecided(f"{op.name} is not an op that the prover knows")
    return MEANINGS[op.name](judge, *operands, *attributes)
