"""The assembly of a kernel for a CPU that need not be there.

`python -m tests.assembly CPU VECTOR_BYTES` reads names of programs and writes a line of JSON for
each; a CPU may have a triple in front, as in `aarch64-unknown-linux-gnu/neoverse-n1`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import llvmlite.binding as llvm
import numpy as np

from satura.backend import target
from satura.backend.lower.body import Access, Nest, Pointer, Value
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import COMPUTED, DType

VECTOR_FUNCTIONS = (
    "exp", "sigmoid", "tanh", "erf", "log", "sin", "cos", "tan", "sqrt", "floor", "ceil", "round",
    "abs", "relu", "sign", "neg",
)  # fmt: skip


def elementwise() -> Program:
    """A loop that LLVM vectorises."""
    build = Builder()
    x = build.input("x", DType.F32, (1000,))
    return build.program({"y": build.unary("sqrt", x)})


def contraction(dtype: DType = DType.F32) -> Program:
    """A microkernel, and a loop over its results that LLVM vectorises."""
    build = Builder()
    x, w = (build.input(name, dtype, (96, 96)) for name in "xw")
    return build.program({"y": build.unary("sqrt", build.matmul(x, w))})


def few_columns() -> Program:
    """A microkernel for 24 columns."""
    build = Builder()
    x, w = build.input("x", DType.F32, (96, 96)), build.input("w", DType.F32, (96, 24))
    return build.program({"y": build.matmul(x, w)})


def activated() -> Program:
    """A microkernel, and a function of its results."""
    build = Builder()
    x, w = (build.input(name, DType.F32, (96, 96)) for name in "xw")
    return build.program({"y": build.unary("sigmoid", build.matmul(x, w))})


def winograd() -> Program:
    """Transforms of tiles, between them a microkernel."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 14, 14, 64))
    w = build.constant(np.ones((3, 3, 64, 64)), DType.F32)
    return build.program({"y": build.winograd(x, w, build.window(DType.F32, (3, 3)))})


def attention() -> Program:
    """Two microkernels, and between them the softmax of what is in scratch memory."""
    build = Builder()
    q, k, v = (build.input(name, DType.F32, (96, 96)) for name in "qkv")
    bias = build.broadcast(build.constant([[0.0]], DType.F32), (96, 96))
    return build.program({"y": build.attention(q, k, bias, v)})


def functions() -> Program:
    """A loop for every function of f32 that calls no library."""
    build = Builder()
    x = build.input("x", DType.F32, (1000,))
    results = [build.unary(name, x) for name in VECTOR_FUNCTIONS]
    results += [build.binary(name, x, results[0]) for name in ("pow", "max", "min", "div")]
    return build.program({"y": build.concat(results, 0)})


def softmax() -> Program:
    """Rows with a maximum and a sum."""
    build = Builder()
    x = build.input("x", DType.F32, (64, 1000))
    largest = build.broadcast(build.reduce("max", x, (1,)), (64, 1000))
    grown = build.unary("exp", build.binary("sub", x, largest))
    total = build.broadcast(build.reduce("sum", grown, (1,)), (64, 1000))
    return build.program({"y": build.binary("div", grown, total)})


def places() -> Program:
    """Rows of which the place of the largest element is wanted."""
    build = Builder()
    x = build.input("x", DType.F32, (64, 1000))
    return build.program({"y": build.arg_reduce("max", x, 1)})


def quantized() -> Program:
    """Casts that saturate."""
    build = Builder()
    x = build.input("x", DType.F32, (1000,))
    scale = build.broadcast(build.constant([0.02], DType.F32), (1000,))
    steps = build.unary("round", build.binary("div", x, scale))
    return build.program({"y": build.cast(steps, DType.I8)})


def cast(source: DType, target: DType) -> Program:
    """Elements of one type as another."""
    build = Builder()
    return build.program({"y": build.cast(build.input("x", source, (1000,)), target)})


def channels() -> Program:
    """Pixels whose channels become planes."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 28, 28, 3))
    return build.program({"y": build.transpose(x, (0, 3, 1, 2))})


def depthwise() -> Program:
    """A window over channels, with an epilogue."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 20, 20, 64))
    weight = build.input("w", DType.F32, (3, 3, 1, 64))
    window = build.window(DType.F32, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0)
    return build.program({"y": build.unary("relu", build.conv(x, weight, window, 64))})


def images(size: int = 3) -> Program:
    """A window over channels of what is dequantised."""
    build = Builder()
    x = build.cast(build.input("x", DType.U8, (1, 20, 20, 64)), DType.F32)
    weight = build.input("w", DType.F32, (size, size, 1, 64))
    border = (size // 2,) * 2
    window = build.window(DType.F32, (size, size), (1, 1), (1, 1), border, border, 0)
    return build.program({"y": build.unary("relu", build.conv(x, weight, window, 64))})


def planar(size: int = 5) -> Program:
    """A window over channels that are planes, with an epilogue."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 64, 28, 28))
    weight = build.constant(np.ones((size, size, 1, 64), np.float32))
    border = (size // 2,) * 2
    window = build.window(DType.F32, (size,) * 2, (2, 2), (1, 1), border, border, 0)
    last = build.conv(build.transpose(x, (0, 2, 3, 1)), weight, window, 64)
    return build.program({"y": build.transpose(build.unary("relu", last), (0, 3, 1, 2))})


def groups(depth: int = 4) -> Program:
    """Groups of few channels."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 20, 20, 64))
    weight = build.constant(np.ones((3, 3, depth, 64), np.float32))
    window = build.window(DType.F32, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0)
    return build.program({"y": build.conv(x, weight, window, 64 // depth)})


def pool() -> Program:
    """A maximum of every other window along the axis that is contiguous."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 8, 112, 112))
    both, border = (1, 1, 2, 2), (0, 0, 1, 1)
    window = build.window(DType.F32, (1, 1, 3, 3), both, None, border, border, -np.inf)
    return build.program({"y": build.pool("max", x, window)})


def upsampled() -> Program:
    """Every element twice along both axes."""
    build = Builder()
    x = build.input("x", DType.F32, (8, 56, 1, 56, 1))
    wide = build.broadcast(x, (8, 56, 2, 56, 2))
    return build.program({"y": build.reshape(wide, (8, 112, 112))})


def octets(columns: int = 96, largest: int = 127) -> Program:
    """A matmul of u8 and constant i8."""
    build = Builder()
    x = build.input("x", DType.U8, (96, 96))
    numbers = np.random.default_rng(0).integers(-largest, largest + 1, (96, columns))
    w = build.constant(numbers, DType.I8)
    return build.program({"y": build.matmul(*(build.cast(each, DType.I32) for each in (x, w)))})


def split() -> Program:
    """A matmul of f32 and constants."""
    build = Builder()
    w = np.random.default_rng(0).standard_normal((96, 96))
    x = build.input("x", DType.F32, (96, 96))
    return build.program({"y": build.matmul(x, build.constant(w, DType.F32))})


def doubles() -> Program:
    """A microkernel of f64."""
    return contraction(DType.F64)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "depthwise": depthwise, "images": images, "planar": planar, "groups": groups, "pool": pool,
    "full_groups": lambda: groups(target.host_target().lanes),
    "upsampled": upsampled, "channels": channels, "elementwise": elementwise,
    "contraction": contraction,
    "winograd": winograd,
    "attention": attention,
    "functions": functions, "softmax": softmax, "places": places, "quantized": quantized,
    "octets": octets, "few_columns": few_columns, "few_octets": lambda: octets(24),
    "small_octets": lambda: octets(largest=64),
    "few_small_octets": lambda: octets(24, largest=64),
    "activated": activated, "doubles": doubles, "split": split,
    **{f"{a.value}_as_{b.value}": partial(cast, a, b) for a in COMPUTED for b in COMPUTED},
}  # fmt: skip
VNNI, AMX = "+avx512vnni", "+amx-tile,+amx-int8,+amx-bf16"
HAVE_MATRICES = ("sapphirerapids", "graniterapids")
SUM_FOUR_PRODUCTS = ("icelake-server", "znver4", "znver5", *HAVE_MATRICES)


def named_target(name: str, vector_bytes: int) -> target.Target:
    """The CPU of that name, with all its features."""
    *triple, cpu = name.split("/")
    host = target.host_target()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return host._replace(
        triple="".join(triple) or host.triple, cpu=cpu,
        features=",".join([VNNI] * (cpu in SUM_FOUR_PRODUCTS) + [AMX] * (cpu in HAVE_MATRICES)),
        vector_bytes=vector_bytes,
    )  # fmt: skip


def assembly(program: Program) -> str:
    """The code of `program` as one kernel, for the CPU that `host_target` names."""
    # Imported here: these modules take the name `host_target` as it is at that moment.
    from satura.backend.constants import ConstantStore
    from satura.backend.jit.kernel import KernelSource
    from satura.backend.jit.translate import assembly as assembly_of
    from satura.backend.plan.kernels import kernel_code
    from tests.trivial_scheduler import one_dispatch

    schedule = one_dispatch(program)
    (dispatch,) = schedule.dispatches
    code = kernel_code(schedule, dispatch, 1, ConstantStore(), False)
    assert code is not None
    return assembly_of(KernelSource(code.name, code.text))


def of_nest(nest: Nest) -> str:
    """The code of a loop nest as one kernel."""
    from satura.backend.emit.loops import loop_code
    from satura.backend.jit.kernel import KernelSource
    from satura.backend.jit.translate import assembly as assembly_of

    code = loop_code("nest", [nest], 1, lambda _: None)
    return assembly_of(KernelSource(code.name, code.text))


def strided() -> Nest:
    """A function of rows of three numbers, which are stored 100 bytes apart."""
    load = Value("load", DType.F32, access=Access(Pointer(("buffer", 0)), (12, 4)))
    target = Access(Pointer(("buffer", 1)), (100, 4))
    function = Value("exp", DType.F32, (0,))
    return Nest((500, 3), 0, (load, function), (), (), target, 1, DType.F32)


if __name__ == "__main__":
    cpu, vector_bytes = sys.argv[1:]
    named = named_target(cpu, int(vector_bytes))
    with patch("satura.backend.target.host_target", lambda: named):
        for line in sys.stdin:
            name = line.strip()
            text = of_nest(strided()) if name == "strided" else assembly(PROGRAMS[name]())
            print(json.dumps(text), flush=True)
