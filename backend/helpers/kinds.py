"""The types of scalars in the text of kernels, and helpers: what the text calls.

A helper writes LLVM instructions in place. Names of kinds are those of Numba's types, which the
same text has where Numba compiles it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir


@dataclass(frozen=True)
class Kind:
    """A scalar type of `bitwidth` bits; `void` has none."""

    name: str
    bitwidth: int
    is_float: bool = False
    signed: bool = False

    @property
    def is_integer(self) -> bool:
        return self.bitwidth > 1 and not self.is_float

    @property
    def llvm(self) -> ir.Type:
        """How values of this type are held."""
        if self.is_float:
            return ir.DoubleType() if self.bitwidth == 64 else ir.FloatType()
        return ir.IntType(self.bitwidth) if self.bitwidth else ir.VoidType()

    def __str__(self) -> str:
        return self.name


void, boolean = Kind("void", 0), Kind("boolean", 1)
float32, float64 = (Kind(f"float{bits}", bits, is_float=True) for bits in (32, 64))
int8, int16, int32, int64 = (Kind(f"int{bits}", bits, signed=True) for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (Kind(f"uint{bits}", bits) for bits in (8, 16, 32, 64))

Result = Callable[..., Kind]
Emit = Callable[[ir.IRBuilder, tuple[Kind, ...], list[ir.Value]], "ir.Value | None"]


@dataclass(frozen=True, eq=False)
class Helper:
    """A function of kernel text: `emit` writes it, given the kinds and values of its operands.

    `operands` are the kinds that it takes, None for any; `result` of their kinds is what it gives.
    A microkernel is compiled apart, and `emit` calls it; `body` writes its function into a module.
    """

    arity: int
    emit: Emit
    result: Result
    operands: tuple[Kind, ...] | None = None
    body: Callable[[ir.Module], None] | None = None
