"""Contractions on a CPU whose instructions multiply matrices (AMX), which need not be there.

Each instruction is a function of NumPy here, which checks what a CPU would, too.
`python -m tests.matrix_model FIRST COUNT` compares random contractions with the interpreter, and
prints what differs.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from satura.backend import target
from satura.backend.helpers import matrix_tile
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType

if TYPE_CHECKING:
    from tests.test_octets import Case

PREFIX = "model_"
_REGISTERS, _EDGE, _LINE = 8, 16, 64


@dataclass
class Model(threading.local):
    """The registers of a thread: of each its rows and the bytes of a row, and what it holds."""

    sizes: list[tuple[int, int]] = field(default_factory=list)
    held: dict[int, NDArray[np.uint8]] = field(default_factory=dict)


MODEL = Model()
SCALES = 1.0, 1e-36, 1e-15, 1e25, 1e30
TELLING = 10, 40, 52  # taps of depths cut unevenly; panels in the place of kept ones; slabs
RUN: Counter[str] = Counter()
FAULTS: list[str] = []


def _memory(address: int, size: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def ldtilecfg(address: int) -> None:
    """Sets the sizes; all registers are zero then."""
    given = _memory(address, _LINE)
    widths = given[16:48].view(np.uint16).tolist()
    heights = given[48:].tolist()
    assert given[0] == 1 and not given[1:16].any(), "palette, start row or reserved bytes"
    assert not any(widths[_REGISTERS:]) and not any(heights[_REGISTERS:]), "registers beyond 8"
    sizes = list(zip(heights[:_REGISTERS], widths[:_REGISTERS], strict=True))
    assert all(0 < rows <= _EDGE and 0 < size <= _LINE for rows, size in sizes), f"{sizes}"
    MODEL.sizes = sizes
    MODEL.held = {n: np.zeros((_EDGE, _LINE), np.uint8) for n in range(_REGISTERS)}


def tilerelease() -> None:
    """No register has a size any more."""
    MODEL.sizes, MODEL.held = [], {}


def tileloadd64(register: int, address: int, stride: int) -> None:
    """Rows that are `stride` bytes apart; what a register has beyond them is zero."""
    rows, size = MODEL.sizes[register]
    MODEL.held[register][:] = 0
    for row in range(rows):
        MODEL.held[register][row, :size] = _memory(address + row * stride, size)


def tilestored64(register: int, address: int, stride: int) -> None:
    """Rows to where they are `stride` bytes apart."""
    rows, size = MODEL.sizes[register]
    for row in range(rows):
        _memory(address + row * stride, size)[:] = MODEL.held[register][row, :size]


def tdpbusd(sums: int, left: int, right: int) -> None:
    """Adds to each i32 the products of four u8 and i8 of every word; sums wrap."""
    (rows, line), (height, words), (depth, width) = (
        MODEL.sizes[each] for each in (sums, left, right)
    )
    assert height == rows and words == 4 * depth and width == line, "sizes do not fit"
    a = MODEL.held[left][:rows, :words].astype(np.int64)
    b = MODEL.held[right][:depth, :width].view(np.int8).reshape(depth, -1, 4).astype(np.int64)
    total = MODEL.held[sums][:rows, :line].view(np.int32)
    total += np.einsum("mki,kni->mn", a.reshape(rows, depth, 4), b).astype(np.int32)


def tilezero(register: int) -> None:
    """All of a register."""
    assert MODEL.sizes, "no sizes are set"
    MODEL.held[register][:] = 0


def _floats(register: int) -> NDArray[np.float32]:
    """The bf16 of a register as [rows, words, 2]; those that are not normal are zero."""
    rows, size = MODEL.sizes[register]
    halves = MODEL.held[register][:rows, :size].view(np.uint16).astype(np.uint32)
    flushed = np.where(halves & 0x7F80, halves, halves & 0x8000) << 16
    return flushed.view(np.float32).reshape(rows, -1, 2)


def _flushed(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """f32, of which those that are not normal are zero."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)


def tdpbf16ps(sums: int, left: int, right: int) -> None:
    """Adds to each f32 the sum of the products of even bf16 and that of odd ones, word by word."""
    (rows, line), (height, words), (depth, width) = (
        MODEL.sizes[each] for each in (sums, left, right)
    )
    assert height == rows and words == 4 * depth and width == line, "sizes do not fit"
    a, b = _floats(left).astype(np.float64), _floats(right).astype(np.float64)
    added = np.zeros((2, rows, line // 4), np.float32)
    for k in range(depth):
        for odd in range(2):
            product = np.multiply.outer(a[:, k, odd], b[k, :, odd])
            added[odd] = _flushed((added[odd] + product).astype(np.float32))
    total = MODEL.held[sums][:rows, :line].view(np.float32)
    total[:] = _flushed(_flushed(total) + _flushed(added[0] + added[1]))


_ADDRESS, _NUMBER = ctypes.c_int64, ctypes.c_int8
_OPERANDS: dict[Callable[..., None], tuple[type, ...]] = {
    ldtilecfg: (_ADDRESS,),
    tilerelease: (),
    tileloadd64: (_NUMBER, _ADDRESS, _ADDRESS),
    tilestored64: (_NUMBER, _ADDRESS, _ADDRESS),
    tilezero: (_NUMBER,),
    tdpbusd: (_NUMBER,) * 3,
    tdpbf16ps: (_NUMBER,) * 3,
}


def _called(function: Callable[..., None]) -> Callable[..., None]:
    """The function, which counts its calls, and notes what is raised: a caller would not see it."""

    def call(*operands: int) -> None:
        RUN[function.__name__] += 1
        try:
            function(*operands)
        except Exception as error:
            FAULTS.append(f"{function.__name__}{operands}: {error!r}")

    return call


_FUNCTIONS = {
    PREFIX + function.__name__: ctypes.CFUNCTYPE(None, *operands)(_called(function))
    for function, operands in _OPERANDS.items()
}


@contextmanager
def modelled() -> Iterator[None]:
    """A CPU that multiplies matrices; what is compiled meanwhile calls the functions above.

    Modules of kernels must not have been imported before.
    """
    host = target.host_target()
    features = "+avx512vnni,+amxtile,+amxint8,+amxbf16,+model"  # has machine code of its own
    named = host._replace(features=features, vector_bytes=64)
    with (
        patch("satura.backend.target.host_target", lambda: named),
        patch.object(matrix_tile, "INSTRUCTIONS", PREFIX),
    ):
        from satura.backend.jit import loading, workers

        found = loading.address_of_function

        def address(name: str) -> int | None:
            own = _FUNCTIONS.get(name)
            return found(name) if own is None else ctypes.cast(own, ctypes.c_void_p).value

        with (
            patch.object(loading, "address_of_function", address),
            patch.object(workers, "_helpers_for", lambda *_: 0),  # of another CPU
        ):
            yield


def random_case(seed: int) -> Case:
    """Integers: a product or a convolution of a depth that registers can share evenly."""
    from tests.test_octets import Case

    random = Random(seed)
    kernel = random.choice([0, 0, 1, 2, 3, 3])
    left = random.choice([DType.U8, DType.U8, DType.I8])
    return Case(
        (left, DType.I8), (random.randint(*((-3, 3) if left is DType.I8 else (0, 255))), 0),
        random.choice([16, 20, 24, 28, 32, 48, 60, 64, 80, 112, 128, 200, 576]),
        random.choice([17, 31, 32, 33, 64, 70]),
        kernel, random.choice([1, 1, 2]), random.choice([0, 1]) if kernel > 1 else 0,
        random.choice([1, 1, 2]), random.choice([1, 1, 2]) if kernel else 1,
        size=random.choice([8, 9, 13, 16, 17, 25]),
        wide=random.choice([DType.I32, DType.I64]),
    )  # fmt: skip


def copied_case(seed: int) -> Case:
    """A product or a convolution of a depth that words do not hold evenly: each row is copied, with
    what its taps see side by side."""
    from tests.test_octets import Case

    random = Random(seed)
    kernel, left = random.choice([0, 1, 2, 3, 3, 5, 7]), random.choice([DType.U8, DType.I8])
    return Case(
        (left, DType.I8), (random.randint(*((-3, 3) if left is DType.I8 else (0, 255))), 0),
        random.choice([1, 2, 3, 3, 5, 6, 9, 13, 22, 33, 75, 150] if kernel else [33, 75, 150, 257]),
        random.choice([17, 31, 32, 33, 64, 70]),
        kernel, random.choice([1, 2, 3]), random.randint(0, max(0, kernel - 1)),
        random.choice([1, 1, 1, 2]), random.choice([1, 1, 2]) if kernel else 1,
        size=random.choice([13, 14, 16, 17]), wide=random.choice([DType.I32, DType.I64]),
    )  # fmt: skip


def uneven_case() -> Case:
    """Every other pixel of an image 25 such pixels wide, each line of which lies apart: of the two
    groups of 16 rows in a tile the first one may be uneven where the second is not."""
    from tests.test_octets import Case

    return Case((DType.U8, DType.I8), (0, 0), 64, 32, 1, 2, 0, size=47, wide=DType.I32)


def random_floats(seed: int, dtype: DType) -> tuple[Program, Array]:
    """A product or a convolution large enough for a split of rows to pay, and its input; elements
    are f32, held as `dtype`."""
    random, numbers = Random(seed), np.random.default_rng(seed)
    build = Builder()
    kernel, groups = random.choice([0, 0, 1, 2, 3, 3]), random.choice([1, 1, 2])
    depth, columns = random.choice([16, 17, 24, 31, 33, 64, 100]), random.choice([32, 33, 64, 70])
    if not kernel:
        shape: tuple[int, ...] = (random.choice([1, 2, 3]), random.choice([64, 67, 100]), depth)
        w = numbers.standard_normal((shape[0], depth, columns)).astype(np.float32)
        y = build.matmul(build.input("x", dtype, shape), build.constant(w, dtype))
    else:
        stride, dilation = random.choice([1, 1, 2]), random.choice([1, 1, 2])
        size = 9 * stride + (kernel - 1) * dilation
        shape = (random.choice([1, 2]), size, size + 2, depth * groups)
        w = numbers.standard_normal((kernel, kernel, depth, columns * groups)).astype(np.float32)
        border = (random.choice([0, 1]),) * 2
        window = build.window(
            dtype, (kernel,) * 2, (stride,) * 2, (dilation,) * 2, border, border, 0
        )
        y = build.conv(build.input("x", dtype, shape), build.constant(w, dtype), window, groups)
    scale = SCALES[seed % len(SCALES)]
    x = np.asarray(numbers.standard_normal(shape) * scale, np.float32)
    if seed % 3 == 0:
        for value in random.choices([np.inf, -np.inf, np.nan, -0.0, 3.4e38, 1e-44], k=5):
            x.reshape(-1)[random.randrange(x.size)] = value
    return build.program({"y": y}), x.astype(dtype.numpy)


def agrees(seed: int) -> bool:
    """Whether what is not finite is the interpreter's, and all else as near to sums of f64 as what
    the microkernel of f32 computes in one chain of FMAs: its rms error is at most 1.1 times that.
    Of an odd seed little is near: there are several blocks of rows, and steps over a panel. Of some
    even ones blocks are short, and panels are kept for the next; of some the depth is cut into
    slabs. One thread computes all, or two."""
    import satura
    from satura.backend.contraction import cut, problem
    from satura.rewrite.program.interpreter import interpret

    program, x = random_floats(seed, DType.F32)
    near = (1, 8192) if seed % 2 else (cut._NEAR_BYTES, cut._NEAR_PANEL)
    most = 1 if seed % 4 == 2 else cut._MOST_ROWS
    slab = 30 if seed % 4 < 2 else cut._DEEP
    threads = 2 if seed // 4 % 2 else 1
    with (
        patch.object(cut, "_NEAR_BYTES", near[0]), patch.object(cut, "_NEAR_PANEL", near[1]),
        patch.object(cut, "_MOST_ROWS", most), patch.object(cut, "_DEEP", slab),
        patch.object(cut, "_SLAB", slab),
    ):  # fmt: skip
        split = np.asarray(satura.compile(program, threads=threads)(x=x))
    with (
        patch.object(problem, "multiplies_in_parts", lambda *_: False),
        patch.object(cut, "_LONGEST", 1 << 30),
    ):
        whole = np.asarray(satura.compile(program, threads=threads)(x=x))
    wide, x = random_floats(seed, DType.F64)
    meant = interpret(wide, {"x": x})["y"].astype(np.float64)
    finite = np.isfinite(whole)
    if not np.array_equal(np.where(finite, 0, split), np.where(finite, 0, whole), equal_nan=True):
        return False
    errors = [float(np.square(each[finite] - meant[finite]).sum()) for each in (split, whole)]
    return errors[0] <= 1.21 * errors[1]


def main(first: int, count: int) -> None:
    """Compares, and prints what is wrong."""
    import satura
    from satura.rewrite.program.interpreter import interpret
    from tests.test_octets import drawn

    seeds = range(first, first + count)
    drawn_cases = [(seed, draw(seed)) for seed in seeds for draw in (random_case, copied_case)]
    for seed, case in [(first, uneven_case()), *drawn_cases]:
        program = case.program()
        shape = tuple(map(static, program.nodes[program.inputs[0]].type.shape))
        inputs = {"x": drawn(case.dtypes[0], shape, seed)}
        result = np.asarray(satura.compile(program, threads=2)(**inputs))
        if not np.array_equal(result, interpret(program, inputs)["y"]):
            print(f"seed {seed}: {case} differs")
    for seed in {*seeds, *TELLING}:
        if not agrees(seed):
            print(f"seed {seed}: {random_floats(seed, DType.F32)[0]} differs")
    numbers, w = (np.random.default_rng(each).standard_normal((64, 64)) for each in (0, 1))
    finite, other = numbers.astype(np.float32), numbers.astype(np.float32)
    other[63, 0], other[10] = np.inf, other[10] * np.float32(1e-36)
    build = Builder()
    y = build.matmul(build.input("x", DType.F32, w.shape), build.constant(w, DType.F32))
    program, rows = build.program({"y": y}), np.delete(np.arange(64), [10, 63])
    one, two = (satura.compile(program, threads=threads) for threads in (1, 2))
    found = [np.array(run(x=each)) for run in (one, two) for each in (finite, other)]
    if any(not np.array_equal(each[rows], found[0][rows]) for each in found):
        print("rows depend on other rows, or on threads")
    before = RUN["tdpbf16ps"]
    program, x = random_floats(first, DType.F32)
    satura.compile(program, threads=1, precision="exact")(x=x)
    if RUN["tdpbf16ps"] > before:
        print("what is to be exact is multiplied in parts")
    for instruction in ("tdpbusd", "tdpbf16ps"):
        if RUN[instruction] < 10 * count:
            print(f"{instruction} runs {RUN[instruction]} times")
    print(*FAULTS, sep="\n", end="")
    print(dict(RUN), file=sys.stderr)


if __name__ == "__main__":
    with modelled(), np.errstate(all="ignore"):
        main(*map(int, sys.argv[1:]))
