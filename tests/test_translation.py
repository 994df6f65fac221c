"""Kernel text is translated to what Numba makes of it, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import llvmlite.binding as llvm
import numpy as np
import pytest

import satura
from benchmarks.models import TINY, build, example_inputs
from satura.backend.helpers.namespace import meaning
from satura.backend.jit import machine_code, translate
from satura.backend.jit.frontend import numba_module
from satura.backend.jit.kernel import CompiledKernel, KernelError, KernelSource, Microkernel
from satura.backend.jit.loading import Loader
from satura.backend.jit.lowering import translate_kernel
from satura.backend.jit.machine_code import kernel_function
from satura.backend.jit.operators import Untranslatable
from satura.backend.target import host_target
from tests.tiers import deep_but

Writer = Callable[[KernelSource], llvm.ModuleRef]
_plain = translate.plain_module
_engines: list[object] = []
NUMBERS = (0, 1, -1, 2, -2, 7, -7, 127, -128, 255, 32768, -(2**31), 2**31 - 1, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.5, 3.1e38, -1e-42, float("inf"), -float("inf"), float("nan"))


def kernel(*lines: str) -> KernelSource:
    text = ["def kernel(args, thread, threads):", *(f"    {line}" for line in lines), ""]
    return KernelSource("test", "\n".join(text))


def ran(module: llvm.ModuleRef, source: KernelSource, memory: np.ndarray, threads: int) -> bytes:
    """The memory after the kernel has run on a copy of it, the address of which is `args`."""
    translate._optimise(module, host_target().machine())
    engine = llvm.create_mcjit_compiler(module, host_target().machine())
    engine.finalize_object()
    _engines.append(engine)
    copy = memory.copy()
    address = engine.get_function_address(source.symbol)
    kernel_function(address)(int(copy.ctypes.data), threads - 1, threads)
    return copy.tobytes()


def both(source: KernelSource, memory: np.ndarray, threads: int = 3) -> tuple[bytes, bytes]:
    return (
        ran(direct_module(source), source, memory, threads),
        ran(numba_module(source), source, memory, threads),
    )


def words(values: Sequence[int], room: int) -> np.ndarray:
    return np.array([*values, *[0] * room], np.int64)


INTEGER = ("a + b", "a - b", "a * b", "a // b", "a % b", "-a", "~a", "a & b", "a | b", "a ^ b")
COMPARED = ("a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "not a < b")
KINDS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


@pytest.mark.parametrize("kind", deep_but([], KINDS))
def test_integers_are_those_of_numba(kind: str) -> None:
    division = kind == "i64"  # kernels divide positions only
    formulas = [f for f in INTEGER if division or ("//" not in f and "%" not in f)]
    lines = ["for k in range(thread - thread, 225):", f"    a = cast_{kind}(load_int64(args, k))"]
    lines += [f"    b = cast_{kind}(load_int64(args, k + 225))"]
    for place, formula in enumerate(formulas):
        lines.append(f"    write_{kind}(args + {3600 + 1800 * place}, k, {kind}({formula}))")
    for place, formula in enumerate(COMPARED, start=len(formulas)):
        lines.append(f"    write_bool(args + {3600 + 1800 * place}, k, {formula})")
    pairs = list(product(NUMBERS, NUMBERS))
    if division:
        pairs = [(a, 5 if (a, b) == (-(2**63), -1) else b) for a, b in pairs]
    values = [a for a, _ in pairs] + [b for _, b in pairs]
    direct, numba = both(kernel(*lines), words(values, 225 * 20))
    assert direct == numba


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_floats_are_those_of_numba(kind: str) -> None:
    size = int(kind[1:]) // 8
    formulas = ("a + b", "a - b", "a * b", "-a", "a * b + a", "a if a < b else b")
    truths = (*COMPARED, "a != a", "a < b or a == a", "a < b and b < a + a", "not a == b")
    lines = ["for k in range(81):", f"    a = read_{kind}(args, k)"]
    lines += [f"    b = read_{kind}(args, k + 81)"]
    for place, formula in enumerate(formulas):
        lines.append(f"    write_{kind}(args + {2000 + 700 * place}, k, {formula})")
    for place, formula in enumerate(truths):
        lines.append(f"    write_bool(args + {8000 + 100 * place}, k, {formula})")
    pairs = list(product(FLOATS, FLOATS))
    numbers = np.array([a for a, _ in pairs] + [b for _, b in pairs])
    memory = np.zeros(10000, np.uint8)
    with np.errstate(over="ignore"):
        memory[: size * 162] = numbers.astype(f"f{size}").view(np.uint8)
    direct, numba = both(kernel(*lines), memory)
    assert direct == numba


def random_lines(draw: Random, depth: int, names: list[str]) -> list[str]:
    """Statements over int64 variables; `out` counts stored words."""
    lines: list[str] = []

    def expression(level: int = 2) -> str:
        kind = draw.randrange(8 if level else 2)
        if kind == 0:
            return str(draw.randint(-9, 40))
        if kind == 1 or kind > 6:
            return draw.choice(names)
        a, b = expression(level - 1), expression(level - 1)
        if kind == 2:
            return f"({a} if {condition(level - 1)} else {b})"
        if kind == 3:
            return f"{draw.choice(['min', 'max', 'quotient'])}({a}, {draw.randint(1, 9)})"
        sign = draw.choice(["+", "-", "*", "//", "%", "&", "^"])
        if sign in ("//", "%"):  # kernels divide by extents alone, which are not 0
            b = f"({b} & 63 | 1)"
        return f"({a} {sign} {b})"

    def condition(level: int = 1) -> str:
        a, b = expression(level), expression(level)
        test = f"{a} {draw.choice(['<', '<=', '==', '!=', '>'])} {b}"
        if level and draw.random() < 0.3:
            test = f"{test} {draw.choice(['and', 'or'])} {condition(0)}"
        return test if draw.random() < 0.8 else f"not {test}"

    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(7)
        if kind < 2:
            name = draw.choice([*names, f"v{len(names)}"])
            lines.append(f"{name} = {expression()}")
            if name not in names:
                names.append(name)
        elif kind == 2:
            lines.append(f"{draw.choice(names[:2])} {draw.choice('+-')}= {expression()}")
        elif kind == 3:
            lines += ["if out < 60:", f"    store_int64(args, out, {expression()})", "    out += 1"]
        elif depth and kind == 4:
            lines += [f"if {condition()}:", *inner(draw, depth, names)]
            if draw.random() < 0.6:
                lines += ["else:", *inner(draw, depth, names)]
        elif depth and kind == 5:
            counts = draw.choice(["4", "2, 7", "0, 9, 3", "min(a, 5)", "max(a, 3), 6"])
            lines += [f"for i{depth} in range({counts}):", *inner(draw, depth, names)]
            if draw.random() < 0.3:
                lines += [f"    if {condition()}:", f"        {draw.choice(['break', 'continue'])}"]
                lines += inner(draw, depth, names)
        elif depth:
            lines += [f"w{depth} = 0", f"while w{depth} < 3 and ({condition()}):"]
            lines += [f"    w{depth} += 1", *inner(draw, depth, names)]
    return lines or ["pass"]


def inner(draw: Random, depth: int, names: list[str]) -> list[str]:
    """An indented block, after which its new names are not known."""
    lines = random_lines(draw, depth - 1, list(names))
    return [f"    {line}" for line in lines]


@pytest.mark.parametrize("seed", deep_but((), range(300), range(40)))
def test_random_kernels_are_those_of_numba(seed: int) -> None:
    draw = Random(seed)
    lines = ["a = load_int64(args, 0)", "b = load_int64(args, 1)", "out = 2"]
    lines += random_lines(draw, 3, ["a", "b", "thread", "threads"])
    source = kernel(*lines, "store_int64(args, 63, a)", "store_int64(args, 62, out)")
    pair = ((3, 5), (-4, 1), (2**15, -(2**15)))[seed % 3]  # what overflows is undefined to Numba
    direct, numba = both(source, words(pair, 62))
    assert direct == numba, source.text


def results(model: str, monkeypatch: pytest.MonkeyPatch, write: Writer) -> dict[str, np.ndarray]:
    """What a model gives where `write` makes the modules of its kernels."""
    built = build(model)

    def plain(source: KernelSource) -> llvm.ModuleRef:
        return _plain(source) if isinstance(source, Microkernel) else write(source)

    monkeypatch.setattr(translate, "plain_module", plain)
    compiled = satura.compile(built, threads=2)
    return compiled.run(example_inputs(built, {"batch": 2, "seq": 20}))


def direct_module(source: KernelSource) -> llvm.ModuleRef:
    return llvm.parse_assembly(str(translate_kernel(source.text, source.symbol, meaning)))


@pytest.mark.parametrize("model", deep_but((), TINY, ["tiny_resnet_pad", "tiny_bert"]))
def test_models_compute_what_they_compute_through_numba(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SATURA_COMPILERS", "0")
    given = []
    for name, write in (("direct", direct_module), ("numba", numba_module)):
        monkeypatch.setenv("SATURA_CACHE", str(tmp_path / name))
        forget_kernels(monkeypatch)
        given.append(results(model, monkeypatch, write))
    assert given[0].keys() == given[1].keys()
    for name, result in given[0].items():
        assert result.tobytes() == given[1][name].tobytes(), name


def forget_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: no kernel is loaded."""
    monkeypatch.setattr(machine_code, "loader", cache(Loader))


REFUSED = {
    "a float with an integer": ["x = read_f32(args, 0) * 2"],
    "signs that differ": ["x = read_u64(args, 0) + read_i64(args, 0)"],
    "two types after a branch": ["if thread:", "    x = 1", "else:", "    x = f32(1)", "y = x"],
    "a type that the next round has": [
        "x = 1", "for i in range(3):", "    y = x", "    x = read_f32(args, 0)",
    ],
    "a break with another type": [
        "x = 1", "for i in range(3):", "    x = read_f32(args, 0)", "    if thread:",
        "        break", "    x = 2", "y = x",
    ],
    "no value": ["y = x"],
    "a tuple": ["x, y = 1, 2"],
    "a downward loop": ["for i in range(9, 0, -1):", "    pass"],
    "too few operands": ["store_int64(args, 0)"],
    "a float as an address": ["store_int64(args, read_f32(args, 0), 1)"],
    "nothing as a value": ["x = store_int64(args, 0, 1)"],
    "bool where one is needed": ["x = thread and threads"],
}  # fmt: skip


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED)
def test_other_text_is_refused(lines: list[str]) -> None:
    source = kernel(*lines)
    with pytest.raises(Untranslatable):
        translate_kernel(source.text, source.symbol, meaning)


def test_what_is_refused_numba_compiles() -> None:
    source = kernel("store_int64(args, 0, abs(-7))")
    with pytest.raises(Untranslatable):
        translate_kernel(source.text, source.symbol, meaning)
    compiled = translate.compile_kernel(source)
    assert isinstance(compiled, CompiledKernel)


def test_numba_compiles_a_name_of_several_types_but_not_a_value_of_them() -> None:
    """Numba would make a float of 64 bits with and without sign, which holds neither exactly."""
    numba_module(kernel("x = 1", "store_int64(args, 0, x)", "x = f32(2)", "write_f32(args, 1, x)"))
    signs = ["if thread:", "    v = read_i64(args, 0)", "else:", "    v = read_u64(args, 1)"]
    with pytest.raises(KernelError, match=r"'v\S*' is float64 and u?int64"):
        numba_module(kernel(*signs, "write_f64(args, 2, v)"))


def test_an_unknown_microkernel_is_an_error() -> None:
    with pytest.raises(KernelError, match="no microkernel tile_of_lead"):
        translate.compile_kernel(Microkernel("tile_of_lead", "microkernel tile_of_lead"))


def test_no_loops_around_microkernels_are_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    unrolled: list[bool] = []

    def optimise(
        module: llvm.ModuleRef, machine: llvm.TargetMachine, interleave: bool, unroll: bool
    ) -> None:
        unrolled.append(unroll)

    monkeypatch.setattr(translate, "_optimise", optimise)
    for line in ("store_int64(args, 0, 1)", "winograd_tile(args, args, args, args)"):
        translate.optimised_module(kernel(line))
    assert unrolled == [True, False]
