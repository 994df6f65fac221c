"""A small layer over LLVM IR: what kernels say about memory, vectors and loops.

`Code` writes IR and reads like the maths of a microkernel. `native` turns such a writer into a
helper that kernel text calls; `helpers` lists the fixed ones. Addresses are int64 everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from llvmlite import ir

from satura.backend.helpers.kinds import Helper, Kind, float32, int64, void
from satura.backend.target import MICROKERNEL, host_target

INT1, INT32, INT64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
F32, F64 = ir.FloatType(), ir.DoubleType()
VOID = ir.VoidType()
_BYTES = {F32: 4, F64: 8, INT32: 4}
KERNEL = ir.FunctionType(VOID, [INT64] * 3)


@dataclass(frozen=True)
class Code:
    """Writes instructions at the end of the function being built.

    A vector has `lanes` elements of `scalar`.
    """

    builder: ir.IRBuilder
    lanes: int
    scalar: ir.Type = F32

    @property
    def vector(self) -> ir.VectorType:
        """The type of one vector."""
        return ir.VectorType(self.scalar, self.lanes)

    def integer(self, value: int) -> ir.Value:
        return ir.Constant(INT64, value)

    def zero(self) -> ir.Value:
        """A vector of zeros."""
        return ir.Constant(self.vector, [0.0] * self.lanes)

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.add(a, b)

    def multiply(self, a: ir.Value, factor: int) -> ir.Value:
        return self.builder.mul(a, self.integer(factor))

    def pointer(self, address: ir.Value, kind: ir.Type) -> ir.Value:
        return self.builder.inttoptr(address, kind.as_pointer())

    def element(self, address: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
        """A pointer to element `index` of an array of `kind` at `address`."""
        return self.builder.gep(self.pointer(address, kind), [index])

    def load(self, address: ir.Value, index: ir.Value | int, kind: ir.Type) -> ir.Value:
        """Element `index` of an array of `kind`."""
        place = self.integer(index) if isinstance(index, int) else index
        value = self.builder.load(self.element(address, place, kind))
        value.align = _alignment(kind)
        return value

    def store(self, address: ir.Value, index: ir.Value | int, value: ir.Value) -> None:
        """Sets element `index` of an array of the value's type."""
        place = self.integer(index) if isinstance(index, int) else index
        written = self.builder.store(value, self.element(address, place, value.type))
        written.align = _alignment(value.type)

    def broadcast(self, address: ir.Value, index: ir.Value) -> ir.Value:
        """A vector whose lanes all hold element `index` of the array at `address`."""
        value = self.load(address, index, self.scalar)
        if self.scalar == INT32:
            value.align = 1  # four octets, wherever they stand
        return self.spread(value, self.lanes)

    def spread(self, value: ir.Value, count: int) -> ir.Value:
        """A vector of `count` lanes that all hold `value`."""
        undefined = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
        first = self.builder.insert_element(undefined, value, INT32(0))
        lanes = ir.Constant(ir.VectorType(INT32, count), [0] * count)
        return self.builder.shuffle_vector(first, undefined, lanes)

    def of_groups(self, vector: ir.Value, size: int, index: int) -> ir.Value:
        """Element `index` of every `size` lanes, in all lanes of its group."""
        places = [lane // size * size + index for lane in range(self.lanes)]
        order = ir.Constant(ir.VectorType(INT32, self.lanes), places)
        return self.builder.shuffle_vector(vector, vector, order)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """a * b + c, rounded once."""
        count = f"v{self.lanes}" if isinstance(a.type, ir.VectorType) else ""
        return self.call(f"llvm.fma.{count}f{8 * _BYTES[self.scalar]}", a.type, [a, b, c])

    def call(self, name: str, result: ir.Type, arguments: list[ir.Value]) -> ir.Value:
        """A call of a function that exists elsewhere."""
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = self.builder.module.globals.get(name)
        if function is None:
            function = ir.Function(self.builder.module, kind, name)
        return self.builder.call(function, arguments)

    def opaque(self, value: ir.Value) -> ir.Value:
        """The same int64, of which LLVM knows nothing."""
        kind = ir.FunctionType(INT64, [INT64])
        return self.builder.asm(kind, "", "=r,0", [value], side_effect=False)

    def prefetch(self, address: ir.Value) -> None:
        """Asks for the cache line at `address` to come into the second level; never faults."""
        self.call(
            "llvm.prefetch.p0", VOID,
            [self.pointer(address, ir.IntType(8)), INT32(0), INT32(2), INT32(1)],
        )  # fmt: skip

    def prefetch_nearest(self, address: ir.Value, to_write: bool) -> None:
        """Asks for the cache line at `address` to come into the first level; never faults."""
        self.call(
            "llvm.prefetch.p0", VOID,
            [self.pointer(address, ir.IntType(8)), INT32(int(to_write)), INT32(3), INT32(1)],
        )  # fmt: skip

    def choose(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        return self.builder.select(condition, yes, no)

    def either(
        self,
        condition: ir.Value,
        yes: Callable[[], list[ir.Value]],
        no: Callable[[], list[ir.Value]],
    ) -> list[ir.Value]:
        """The values of one of two branches, of which only that one runs."""
        builder = self.builder
        branches = [builder.append_basic_block(name) for name in ("yes", "no")]
        after = builder.append_basic_block("chosen")
        builder.cbranch(condition, *branches)
        ends = []
        for block, write in zip(branches, (yes, no), strict=True):
            builder.position_at_end(block)
            ends.append((write(), builder.block))
            builder.branch(after)
        builder.position_at_end(after)
        merged = []
        for values in zip(*(found for found, _ in ends), strict=True):
            merged.append(builder.phi(values[0].type))
            for value, (_, block) in zip(values, ends, strict=True):
                merged[-1].add_incoming(value, block)
        return merged

    def loop(
        self,
        count: ir.Value,
        start: list[ir.Value],
        body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """`state = body(i, state)` for i in 0 … count-1 from `start`; the last state."""
        builder = self.builder
        before = builder.block
        head = builder.append_basic_block("head")
        inside = builder.append_basic_block("body")
        after = builder.append_basic_block("after")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(INT64)
        index.add_incoming(self.integer(0), before)
        state = []
        for value in start:
            carried = builder.phi(value.type)
            carried.add_incoming(value, before)
            state.append(carried)
        builder.cbranch(builder.icmp_signed("<", index, count), inside, after)
        builder.position_at_end(inside)
        following = body(index, list(state))
        index.add_incoming(builder.add(index, self.integer(1)), builder.block)
        for carried, value in zip(state, following, strict=True):
            carried.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return list(state)


Writer = Callable[..., "ir.Value | None"]


def native(write: Writer, arguments: tuple[Kind, ...], result: Kind = void) -> Helper:
    """A helper for kernel text: `write(code, *values)` writes its instructions in place."""

    def emit(builder: ir.IRBuilder, _: object, values: list[ir.Value]) -> ir.Value | None:
        return write(Code(builder, lanes=1), *values)

    return Helper(len(arguments), emit, lambda *_: result, arguments)


def outlined_helper(name: str, write: Writer, arguments: int, scalar: ir.Type = F32) -> Helper:
    """A microkernel: a helper with int64 arguments that is compiled once, for all kernels.

    Its registers are allocated apart from those of the kernels that call it.
    """
    symbol = MICROKERNEL + name
    kind = ir.FunctionType(VOID, [INT64] * arguments)

    def call(code: Code, *values: ir.Value) -> None:
        code.call(symbol, VOID, list(values))

    def body(module: ir.Module) -> None:
        function = ir.Function(module, kind, symbol)
        prefer_wide(function)
        builder = ir.IRBuilder(function.append_basic_block())
        lanes = host_target().vector_bytes // _BYTES[scalar]
        write(Code(builder, lanes, scalar), *function.args)
        builder.ret_void()

    return replace(native(call, (int64,) * arguments), body=body)


@lru_cache(maxsize=1)
def helpers() -> Mapping[str, Helper]:
    """The fixed helpers of kernel text, by name."""
    i64, f32 = int64, float32
    return {
        "load_int64": native(lambda code, base, i: code.load(base, i, INT64), (i64, i64), i64),
        "store_int64": native(_store, (i64, i64, i64)),
        "load_f32": native(lambda code, base, i: code.load(base, i, F32), (i64, i64), f32),
        "store_f32": native(_store, (i64, i64, f32)),
        "prefetch_to_read": native(lambda code, at: code.prefetch_nearest(at, False), (i64,)),
        "prefetch_to_write": native(lambda code, at: code.prefetch_nearest(at, True), (i64,)),
        "f32_of_bits": native(_f32_of_bits, (i64,), f32),
        "call_kernel": native(_call_kernel, (i64, i64, i64, i64)),
        "prefer_wide_vectors": native(_prefer_wide_here, ()),
        "short_loops": native(_nothing, ()),
        "atomic_load": native(_atomic_load, (i64,), i64),
        "atomic_store": native(_atomic_store, (i64, i64)),
        "atomic_add": native(_atomic_add, (i64, i64), i64),
        "atomic_max": native(_atomic_max, (i64, i64), i64),
        "relax": native(_relax, ()),
        "yield_processor": native(_library_call("sched_yield"), ()),
        "lock": native(_library_call("pthread_mutex_lock"), (i64,)),
        "unlock": native(_library_call("pthread_mutex_unlock"), (i64,)),
        "wake_all": native(_library_call("pthread_cond_broadcast"), (i64,)),
        "sleep_until_woken": native(_library_call("pthread_cond_wait"), (i64, i64)),
    }


def _store(code: Code, base: ir.Value, index: ir.Value, value: ir.Value) -> None:
    code.store(base, index, value)


def _f32_of_bits(code: Code, bits: ir.Value) -> ir.Value:
    """The f32 whose bit pattern stands in the low half of an int64."""
    return code.builder.bitcast(code.builder.trunc(bits, INT32), F32)


def _call_kernel(code: Code, address: ir.Value, *arguments: ir.Value) -> None:
    code.builder.call(code.pointer(address, KERNEL), arguments)


def _nothing(code: Code) -> None:
    """Writes no instruction: that the text says so is enough, see `jit.translate`."""


def _prefer_wide_here(code: Code) -> None:
    prefer_wide(code.builder.function)


def prefer_wide(function: ir.Function) -> None:
    """LLVM's tuning for some CPUs stops at half of their vectors' width; this lifts that.

    llvmlite admits only the attributes it knows, hence the call of the plain set's method.
    """
    bits = 8 * host_target().vector_bytes
    for attribute in ("prefer-vector-width", "min-legal-vector-width"):
        set.add(function.attributes, f'"{attribute}"="{bits}"')


def _atomic_load(code: Code, address: ir.Value) -> ir.Value:
    return code.builder.load_atomic(code.pointer(address, INT64), "acquire", 8)


def _atomic_store(code: Code, address: ir.Value, value: ir.Value) -> None:
    code.builder.store_atomic(value, code.pointer(address, INT64), "release", 8)


def _atomic_add(code: Code, address: ir.Value, value: ir.Value) -> ir.Value:
    """Adds and gives the value before."""
    return code.builder.atomic_rmw("add", code.pointer(address, INT64), value, "acq_rel")


def _atomic_max(code: Code, address: ir.Value, value: ir.Value) -> ir.Value:
    """Stores the larger of `value` and what is there, and gives what was there."""
    return code.builder.atomic_rmw("max", code.pointer(address, INT64), value, "acq_rel")


def _relax(code: Code) -> None:
    """Tells the CPU that this thread is spinning, where there is a way to."""
    if host_target().triple.startswith("x86_64"):
        code.call("llvm.x86.sse2.pause", VOID, [])


def _library_call(name: str) -> Writer:
    """A C function over addresses, its int result ignored."""

    def write(code: Code, *arguments: ir.Value) -> None:
        code.call(name, INT32, list(arguments))

    return write


def _alignment(kind: ir.Type) -> int:
    """Vectors are read wherever their elements may stand."""
    if isinstance(kind, ir.VectorType) and kind.element == ir.IntType(8):
        return 1
    return 8 if kind == INT64 else 4
