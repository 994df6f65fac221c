"""Helpers of kernel text that write LLVM instructions in place, for operands of any scalar type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from satura.backend.helpers.arithmetic import call
from satura.rewrite.types.tensor_type import DType

INT8, INT16, INT32, INT64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()

NUMBA: dict[DType, types.Type] = {
    DType.F64: types.float64, DType.F32: types.float32,
    DType.F16: types.float32, DType.BF16: types.float32,
    DType.I8: types.int8, DType.I16: types.int16, DType.I32: types.int32, DType.I64: types.int64,
    DType.U8: types.uint8, DType.U16: types.uint16, DType.U32: types.uint32,
    DType.U64: types.uint64, DType.BOOL: types.boolean,
}  # fmt: skip
STORED = {
    DType.F64: F64, DType.F32: F32, DType.F16: F16, DType.BF16: INT16,
    DType.I8: INT8, DType.I16: INT16, DType.I32: INT32, DType.I64: INT64,
    DType.U8: INT8, DType.U16: INT16, DType.U32: INT32, DType.U64: INT64, DType.BOOL: INT8,
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """Where a helper writes its instructions, and the Numba type of its first operand."""

    builder: ir.IRBuilder
    kind: types.Type

    @property
    def is_float(self) -> bool:
        return isinstance(self.kind, types.Float)

    @property
    def is_signed(self) -> bool:
        return self.is_float or bool(getattr(self.kind, "signed", False))

    @property
    def bits(self) -> int:
        """Width of an integer or float type."""
        return int(getattr(self.kind, "bitwidth", 1))

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


Writer = Callable[..., ir.Value]
Result = Callable[..., types.Type]


def first_type(*operands: types.Type) -> types.Type:
    return operands[0]


def helper(arity: int, write: Writer, result: Result = first_type) -> object:
    """A helper of `arity` operands of any type, of type `result(*operand types)`."""

    def typed(context: object, *operands: types.Type) -> tuple[object, object]:
        kinds = [getattr(kind, "literal_type", kind) for kind in operands]

        def generate(
            target: object, builder: ir.IRBuilder, signature: object, values: list[ir.Value]
        ) -> ir.Value:
            value = write(Site(builder, kinds[0]), *values)
            return ir.Constant(INT8.as_pointer(), None) if value is None else value

        return result(*kinds)(*kinds), generate

    names = ["context", *(f"a{i}" for i in range(arity))]
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    vars(typed)["__signature__"] = signature
    return intrinsic(typed)


def declare_function(builder: ir.IRBuilder, function: ir.FunctionType, name: str) -> ir.Value:
    known = builder.module.globals.get(name)
    return ir.Function(builder.module, function, name) if known is None else known
