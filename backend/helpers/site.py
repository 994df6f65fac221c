"""Helpers of kernel text that write LLVM instructions in place, for operands of any scalar type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from satura.backend.helpers import kinds
from satura.backend.helpers.arithmetic import call
from satura.backend.helpers.kinds import Helper, Kind, Result
from satura.rewrite.types.tensor_type import NARROW, DType

INT8, INT16, INT32, INT64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()

KIND: dict[DType, Kind] = {
    DType.F64: kinds.float64, DType.F32: kinds.float32,
    DType.F16: kinds.float32, DType.BF16: kinds.float32,
    DType.I8: kinds.int8, DType.I16: kinds.int16, DType.I32: kinds.int32, DType.I64: kinds.int64,
    DType.U8: kinds.uint8, DType.U16: kinds.uint16, DType.U32: kinds.uint32,
    DType.U64: kinds.uint64, DType.BOOL: kinds.boolean,
}  # fmt: skip
STORED = {
    DType.F64: F64, DType.F32: F32, DType.F16: F16, DType.BF16: INT16,
    DType.I8: INT8, DType.I16: INT16, DType.I32: INT32, DType.I64: INT64,
    DType.U8: INT8, DType.U16: INT16, DType.U32: INT32, DType.U64: INT64, DType.BOOL: INT8,
}  # fmt: skip
KIND.update((dtype, kinds.uint8) for dtype in NARROW)
STORED.update((dtype, INT8) for dtype in NARROW)


@dataclass(frozen=True)
class Site:
    """Where a helper writes its instructions, and the kind of its first operand."""

    builder: ir.IRBuilder
    kind: Kind

    @property
    def is_float(self) -> bool:
        return self.kind.is_float

    @property
    def is_signed(self) -> bool:
        return self.is_float or self.kind.signed

    @property
    def bits(self) -> int:
        """Width of an integer or float type."""
        return self.kind.bitwidth

    @property
    def suffix(self) -> str:
        """How LLVM's intrinsics name the type."""
        return f"f{self.bits}" if self.is_float else f"i{self.bits}"

    def same(self, name: str, *operands: ir.Value) -> ir.Value:
        """LLVM's intrinsic `name` for the type of its operands."""
        return call(self.builder, f"llvm.{name}.{self.suffix}", *operands)

    def less(self, a: ir.Value, b: ir.Value) -> ir.Value:
        if self.is_float:
            return self.builder.fcmp_ordered("<", a, b)
        compare = self.builder.icmp_signed if self.is_signed else self.builder.icmp_unsigned
        return compare("<", a, b)


Writer = Callable[..., "ir.Value | None"]


def first_kind(*operands: Kind) -> Kind:
    return operands[0]


def helper(arity: int, write: Writer, result: Result = first_kind) -> Helper:
    """A helper of `arity` operands of any kind, of kind `result(*operand kinds)`."""

    def emit(
        builder: ir.IRBuilder, operands: tuple[Kind, ...], values: list[ir.Value]
    ) -> ir.Value | None:
        return write(Site(builder, operands[0]), *values)

    return Helper(arity, emit, result)


def declare_function(builder: ir.IRBuilder, function: ir.FunctionType, name: str) -> ir.Value:
    known = builder.module.globals.get(name)
    return ir.Function(builder.module, function, name) if known is None else known
