"""Ops of users: what a file that declares some imports.

    from satura.ops import FLOATS, TensorType, op, refuse_unless

    @op(formula="x / (1 + abs(x))")
    def softsign(x: TensorType) -> TensorType:
        \"\"\"x / (1 + |x|)\"\"\"
        refuse_unless(x.dtype in FLOATS, "softsign takes floats")
        return x

From then on `softsign(x)` may stand in rules, `build.add(softsign, (x,))` in programs, and nodes
`softsign` of domain `satura.user` in ONNX models (`domain` and `op_type` say otherwise).

- The type rule gives the result's type, or refuses; operands come first, then attributes.
- A formula is an expression in up to three operands and in attributes that are numbers (`Scalar`,
  `Count`); what may stand in one says `satura/rewrite/ops/formula.py`. The op is elementwise: it
  fuses and compiles, and layouts move through it.
- `reference=` computes the op in NumPy. Beside a formula it is optional, and both are compared when
  the op is declared; without a formula the op runs on the host.
- `generator=` draws operand types and attributes for the checker, given a `Draw` and the result's
  type. It is needed where attributes are of a class of yours: a frozen dataclass that inherits
  from `UserAttribute`.
"""

import warnings
from typing import TYPE_CHECKING

from satura.rewrite.ops import Kind, Op
from satura.rewrite.ops.draw import Draw
from satura.rewrite.ops.elementwise import BITS, INTEGERS, NUMBERS
from satura.rewrite.ops.registry import size_of
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Perm,
    Refuse,
    Shape,
    UserAttribute,
    refuse_unless,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import FLOATS, DType, TensorType
from satura.rewrite.user_ops.declare import UserOp, local_ops, op

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
    "Draw",
    "Kind",
    "Op",
    "Perm",
    "Refuse",
    "Scalar",
    "Shape",
    "TensorType",
    "UserAttribute",
    "UserOp",
    "local_ops",
    "op",
    "refuse_unless",
    "size_of",
]

if not TYPE_CHECKING:  # or a type checker would find every name here

    def __getattr__(name: str) -> object:
        """The class `UserAttribute` under its former name."""
        if name != "OwnAttribute":
            raise AttributeError(f"module {__name__} has no attribute {name}")
        warnings.warn(
            "satura.ops.OwnAttribute goes with the next minor version of satura: UserAttribute is"
            " its name now",
            DeprecationWarning,
            stacklevel=2,
        )
        return UserAttribute
