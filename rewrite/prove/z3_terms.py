"""Dims as z3 sees them, and the words for what a program's elements are.

A rule fires when a program is built, where a dim may be symbolic; a program runs at actual sizes.
So a dim has two values: the actual one, and the one at a generic point, where two polynomials are
equal only when they are the same; it lies where no dim is negative. What code finds out by `==` is
equality at the generic point, in both directions, and it implies equality at every actual one.
Plain ints have one value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import z3

from satura.rewrite.ops.elementwise import BINARY, UNARY, ScalarFunction
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import COMPUTED, DType

DTYPES = list(COMPUTED)
ELEMENT = z3.DeclareSort("Element")
INT, BOOL = z3.IntSort(), z3.BoolSort()

# Functions and dtypes are numbers. What an elementwise function computes is left open; which dtypes
# it takes and gives is a table, for functions whose name is known.
UNARY_VALUE = z3.Function("unary", INT, INT, ELEMENT, ELEMENT)
BINARY_VALUE = z3.Function("binary", INT, INT, ELEMENT, ELEMENT, ELEMENT)
CAST_VALUE = z3.Function("cast", INT, INT, ELEMENT, ELEMENT)
IS_TRUE = z3.Function("is_true", ELEMENT, BOOL)
TAKES = {"unary": z3.Function("takes_unary", INT, INT, BOOL),
         "binary": z3.Function("takes_binary", INT, INT, BOOL)}  # fmt: skip
GIVES = {"unary": z3.Function("gives_unary", INT, INT, INT),
         "binary": z3.Function("gives_binary", INT, INT, INT)}  # fmt: skip
TABLES: dict[str, dict[str, ScalarFunction]] = {"unary": UNARY, "binary": BINARY}


FIXED = "="  # the names of numbers that are never symbolic begin with it


@cache
def formula(dim: Dim) -> z3.ArithRef:
    """The actual value of a dim."""
    return _value(dim, "")


@cache
def generic(dim: Dim) -> z3.ArithRef:
    """The value of a dim at the generic point."""
    return _value(dim, "'")


def _value(dim: Dim, mark: str) -> z3.ArithRef:
    if isinstance(dim, int):
        return z3.IntVal(int(dim))
    parts = []
    for monomial, coefficient in dim.terms:
        factors = []
        for atom in monomial:
            assert isinstance(atom, str), "quotients are named"
            factors.append(z3.Int(atom if atom.startswith(FIXED) else atom + mark))
        if coefficient != 1 or not factors:
            factors.insert(0, z3.IntVal(coefficient))
        parts.append(z3.Product(*factors) if len(factors) > 1 else factors[0])
    return z3.Sum(*parts) if len(parts) > 1 else parts[0]


@cache
def equal(left: Dim, right: Dim) -> z3.BoolRef:
    """Whether two dims are the same, for all sizes."""
    difference = left - right
    if isinstance(difference, int):
        return z3.BoolVal(difference == 0)
    return is_zero(difference)


@cache
def is_zero(dim: SymbolicDim) -> z3.BoolRef:
    """Whether a dim is 0 for all sizes."""
    actual, same = formula(dim) == 0, generic(dim) == 0
    return actual if actual.eq(same) else z3.And(actual, same)


@cache
def is_nonzero(dim: SymbolicDim) -> z3.BoolRef:
    """Whether a dim is not 0 for all sizes; it may still be 0 for some."""
    return z3.And(generic(dim) != 0, z3.Implies(is_static(dim), formula(dim) != 0))


@cache
def within(at: Dim, extent: Dim) -> z3.BoolRef:
    """0 <= at < extent."""
    return z3.And(formula(at) >= 0, formula(at) < formula(extent))


@cache
def at_least(dim: Dim, bound: int, value: Callable[[Dim], z3.ArithRef] = formula) -> z3.BoolRef:
    """dim >= bound, for its actual value or for another."""
    return z3.BoolVal(dim >= bound) if isinstance(dim, int) else value(dim) >= bound


@cache
def is_static(*dims: Dim) -> z3.BoolRef:
    """Whether dims are plain ints, which they are when all their symbols are."""
    names = {name for dim in dims if not isinstance(dim, int) for name in dim.symbols}
    open_names = sorted(name for name in names if not name.startswith(FIXED))
    return z3.And(*(z3.Bool(f"static {name}") for name in open_names))


@cache
def code(dtype: DType) -> z3.ArithRef:
    return z3.IntVal(DTYPES.index(dtype))


@cache
def table(family: str, number: int) -> tuple[z3.BoolRef, ...]:
    """Which dtypes a named function takes and gives."""
    declared = list(TABLES[family].values())[number]
    rows = []
    for dtype in DTYPES:
        takes, gives = TAKES[family](number, code(dtype)), GIVES[family](number, code(dtype))
        rows.append(takes == (dtype in declared.dtypes))
        if dtype in declared.dtypes:
            rows.append(gives == code(declared.result(dtype)))
    return tuple(rows)
