"""Ops of your own: what a file that declares some imports.

    from satura.ops import FLOATS, TensorType, op, refuse_unless

    @op(formula="x / (1 + abs(x))")
    def softsign(x: TensorType) -> TensorType:
        \"\"\"x / (1 + |x|)\"\"\"
        refuse_unless(x.dtype in FLOATS, "softsign takes floats")
        return x

From then on `softsign(x)` may stand in rules, `build.add(softsign, (x,))` in programs, and nodes
`softsign` of domain `satura.user` in ONNX models.
"""

from satura.rewrite.attributes import (
    Axes,
    Axis,
    Constant,
    Count,
    OwnAttribute,
    Perm,
    Refuse,
    Scalar,
    Shape,
    refuse_unless,
)
from satura.rewrite.ops import Kind, Op
from satura.rewrite.ops.elementwise import BITS, INTEGERS, NUMBERS
from satura.rewrite.ops.own import local_ops
from satura.rewrite.ops.registry import op, size_of
from satura.rewrite.types import FLOATS, DType, TensorType

__all__ = [
    "BITS",
    "FLOATS",
    "INTEGERS",
    "NUMBERS",
    "Axes",
    "Axis",
    "Constant",
    "Count",
    "DType",
    "Kind",
    "Op",
    "OwnAttribute",
    "Perm",
    "Refuse",
    "Scalar",
    "Shape",
    "TensorType",
    "local_ops",
    "op",
    "refuse_unless",
    "size_of",
]
