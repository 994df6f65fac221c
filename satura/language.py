"""The language of rules: everything that a file of rules imports.

    from satura.language import Law, Perm, Tensor, rewrites, rule, transpose

    @rule
    def compose_transposes(x: Tensor, p: Perm, q: Perm) -> Law:
        \"\"\"transpose(transpose(x, p), q) = transpose(x, p∘q)\"\"\"
        return rewrites(transpose(transpose(x, p), q), transpose(x, p[q]))

What a law may say is described at the top of `rewrite/language/dsl.py`; `Builder` makes programs to
try rules on. Users declare ops with `satura.ops`.
"""

from satura.rewrite.errors import RuleError
from satura.rewrite.language.conditions import has_value
from satura.rewrite.language.dsl import both, equates, family, replaces, rewrites, rule
from satura.rewrite.language.expressions import attribute_function
from satura.rewrite.language.families import (
    Arithmetic,
    Contraction,
    Elementwise,
    Operands,
    Others,
    Scalars,
    Some,
)
from satura.rewrite.language.rule import Family, Law, Rule, RuleSet
from satura.rewrite.language.terms import (
    Approximate,
    Known,
    Movable,
    Tensor,
    Term,
    Unpadded,
    Untransposed,
    Varying,
    arg_reduce,
    attention,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    conv,
    extent,
    first_places,
    gather,
    iota,
    matmul,
    pad,
    pool,
    reduce,
    reshape,
    scalar,
    select,
    slice_,
    transpose,
    unary,
    winograd,
)
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types import dims
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Count,
    Groups,
    Padding,
    Perm,
    ReduceFn,
    Refuse,
    Shape,
    Slices,
    UnaryFn,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import FLOATS, DType, TensorType

# They may stand in laws as well as in attribute functions.
exact_quotient = attribute_function(dims.exact_quotient)
known_at_least = attribute_function(dims.known_at_least)
product = attribute_function(dims.product)

__all__ = [
    "FLOATS",
    "Approximate",
    "Arithmetic",
    "Axes",
    "Axis",
    "BinaryFn",
    "Builder",
    "Constant",
    "Contraction",
    "Count",
    "DType",
    "Dim",
    "Elementwise",
    "Family",
    "Groups",
    "Known",
    "Law",
    "Movable",
    "Operands",
    "Others",
    "Padding",
    "Perm",
    "Program",
    "ReduceFn",
    "Refuse",
    "Rule",
    "RuleError",
    "RuleSet",
    "Scalar",
    "Scalars",
    "Shape",
    "Slices",
    "Some",
    "Tensor",
    "TensorType",
    "Term",
    "UnaryFn",
    "Unpadded",
    "Untransposed",
    "Varying",
    "Window",
    "arg_reduce",
    "attention",
    "attribute_function",
    "binary",
    "both",
    "broadcast",
    "cast",
    "concat",
    "constant",
    "conv",
    "equates",
    "exact_quotient",
    "extent",
    "family",
    "first_places",
    "gather",
    "has_value",
    "iota",
    "known_at_least",
    "matmul",
    "pad",
    "pool",
    "product",
    "reduce",
    "refuse_unless",
    "replaces",
    "reshape",
    "rewrites",
    "rule",
    "scalar",
    "select",
    "slice_",
    "symbol",
    "transpose",
    "unary",
    "winograd",
]
