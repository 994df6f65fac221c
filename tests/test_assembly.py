"""Kernels use the widest vectors of the CPU that they are compiled for, and keep values in them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain, pairwise, product
from subprocess import PIPE
from typing import IO

import pytest

from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import COMPUTED, DType
from tests.assembly import HAVE_MATRICES, VECTOR_FUNCTIONS, assembly
from tests.tiers import deep_but

NEON = "aarch64-unknown-linux-gnu/neoverse-n1"
CPUS = {
    "skylake-avx512": 64, "icelake-server": 64, "sapphirerapids": 64, "znver4": 64, "znver5": 64,
    "haswell": 32, NEON: 16,
}  # fmt: skip
FEW = ["skylake-avx512", "haswell"]
FEW_VECTORS = [
    *((cpu, program) for cpu in FEW for program in ("elementwise", "contraction", "depthwise")),
    ("haswell", "winograd"),
    ("haswell", "places"),
    ("skylake-avx512", "doubles"),
]
REGISTERS = {64: "zmm", 32: "ymm"}
INSTRUCTIONS = {
    "elementwise": ["sqrtps"], "contraction": ["sqrtps", "fmadd"],
    "doubles": ["sqrtpd", r"fmadd\w*pd"],
    "winograd": ["addps", "subps", "fmadd"], "softmax": ["addps", "divps"],
    "depthwise": ["fmadd"], "planar": ["fmadd"], "groups": ["fmadd"], "pool": ["pmaxsd"],
    "images": ["fmadd", "cvtdq2ps"],
    "places": ["pmaxsd"], "attention": ["addps", "fmadd"],
    "channels": ["(?:perm|shuf|blend)"],
    "functions": ["fmadd", "sqrtps", "divps", "addps"], "quantized": ["divps", "addps", "minps"],
    "f32_as_i32": ["cvttps2dq", "minps"],
}  # fmt: skip
CALLS = re.compile(r"\t(?:call|bl)\w*\t(.*)")
PLANES = ["depthwise", "images", "planar", "groups"]
LIBRARY = {
    "sinh", "cosh", "asinh", "acosh", "fmod", "mod",
}  # fmt: skip
"""Functions of f32 that are the C library's, element by element."""


STARTED = ExitStack()
"""Ends the process that was started last."""


@pytest.fixture(scope="module", autouse=True)
def no_compiler_is_left() -> Iterator[None]:
    yield
    STARTED.close()
    compiler.cache_clear()


@lru_cache(maxsize=1)
def compiler(cpu: str) -> tuple[IO[str], IO[str]]:
    """Where a process that compiles for `cpu` reads and writes; the next one ends it."""
    STARTED.close()
    command = [sys.executable, "-m", "tests.assembly", cpu, str(CPUS.get(cpu, 64))]
    process = STARTED.enter_context(subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True))
    assert process.stdin is not None and process.stdout is not None
    return process.stdin, process.stdout


@cache
def assembly_for(cpu: str, program: str) -> str:
    asked, answered = compiler(cpu)
    print(program, file=asked, flush=True)
    return str(json.loads(answered.readline()))


def blocks(text: str) -> list[str]:
    """Straight-line pieces: what stands between two labels."""
    return re.split(r"\n(?=[.\w]+:)", text)


@pytest.mark.parametrize(
    "case",
    deep_but(FEW_VECTORS, [each for each in product(CPUS, INSTRUCTIONS) if each[0] != NEON]),
    ids="-".join,
)
def test_vectors_are_as_wide_as_the_cpu_has_them(case: tuple[str, str]) -> None:
    cpu, program = case
    text = assembly_for(cpu, program)
    for instruction in INSTRUCTIONS[program]:
        lines = re.findall(rf"\tv{instruction}\w*\t.*", text)
        registers = re.findall(r"[xyz]mm", " ".join(lines))
        assert max(registers) == REGISTERS[CPUS[cpu]]


@pytest.mark.parametrize("source", deep_but([DType.F32], COMPUTED), ids=str)
def test_elements_are_cast_in_vectors(source: DType) -> None:
    for target in COMPUTED:
        if target is not source:
            text = assembly_for(FEW[0], f"{source.value}_as_{target.value}")
            wide = [block for block in blocks(text) if re.search("[yz]mm", block)]
            assert wide and not CALLS.findall(text), target
            assert not re.search(r"\tvcvtt?(?:s[sd]2u?si|u?si2s[sd])", "".join(wide)), target


@pytest.mark.parametrize("cpu", deep_but(FEW[:1], [cpu for cpu in CPUS if cpu != NEON]))
@pytest.mark.parametrize("program", deep_but(["planar"], [*PLANES, "upsampled", "channels"]))
def test_windows_move_no_single_elements(cpu: str, program: str) -> None:
    """What they step over or store between is a matter of shuffles."""
    assert not re.search(r"\tvp?(?:gather|scatter)", assembly_for(cpu, program))


@pytest.mark.parametrize(
    "cpu", deep_but(FEW[:1], [cpu for cpu, width in CPUS.items() if width == 64])
)
def test_dear_functions_have_vectors_whatever_the_stride(cpu: str) -> None:
    """And not only where both strides are 1, for which LLVM would ask."""
    text = assembly_for(cpu, "strided")
    assert re.search(r"\tvp?gather.*zmm", text) and re.search(r"\tvp?scatter.*zmm", text)
    assert not re.search(r"\txorq\t\$1,", text)


@pytest.mark.deep
def test_vectors_of_an_arm_cpu() -> None:
    for program in ("contraction", "functions", "softmax", "doubles"):
        lanes = "2d" if program == "doubles" else "4s"
        found = re.findall(rf"\tfmla\tv\d+\.{lanes}", assembly_for(NEON, program))
        assert len(found) > 4, program


@pytest.mark.parametrize("cpu", deep_but(FEW[:1], CPUS))
def test_functions_are_no_calls(cpu: str) -> None:
    assert not CALLS.findall(assembly_for(cpu, "functions"))
    assert not CALLS.findall(assembly_for(cpu, "softmax"))


@pytest.mark.parametrize("cpu", deep_but(FEW, CPUS))
@pytest.mark.parametrize(
    "program",
    deep_but(["contraction"], ["contraction", "doubles", "few_columns", "full_groups", "images"]),
)
def test_microkernels_keep_their_sums_in_registers(cpu: str, program: str) -> None:
    steps = [
        block
        for block in blocks(assembly_for(cpu, program))
        if len(re.findall(r"\t(?:vfmadd|fmla)", block)) > 4
    ]
    assert steps
    for step in steps:
        assert not re.search(r"[xyz]mm.*\(%rsp\)|\(%rsp\).*[xyz]mm|\tst[rp]\tq.*\[sp", step)


@pytest.mark.parametrize("cpu", deep_but(FEW, [cpu for cpu in CPUS if cpu != NEON]))
def test_what_follows_full_panels_is_vectors_alone(cpu: str) -> None:
    text = assembly_for(cpu, "contraction")
    assert "sqrtps" in text
    assert "sqrtss" not in text


@pytest.mark.deep
def test_constants_of_short_loops_are_spread_once() -> None:
    """What an epilogue's function needs stays in vectors, if only on the stack."""
    blocks_of_exp = [b for b in blocks(assembly_for("haswell", "activated")) if "vdivps" in b]
    assert blocks_of_exp
    for block in blocks_of_exp:
        assert len(re.findall(r"\tvbroadcastss", block)) < 6


OCTETS = {
    "skylake-avx512": (r"\tvpmaddwd\t.*zmm", 24), "icelake-server": (r"\tvpdpbusd\t.*zmm", 24),
    "znver4": (r"\tvpdpbusd\t.*zmm", 24), "znver5": (r"\tvpdpbusd\t.*zmm", 24),
    "haswell": (r"\tvpmaddwd\t.*ymm", 12),
    NEON: (r"\tmla\tv\d+\.4s", 48),
}  # fmt: skip


@pytest.mark.parametrize("cpu", deep_but(FEW, OCTETS))
def test_octets_are_multiplied_in_registers_and_never_saturate(cpu: str) -> None:
    instruction, least = OCTETS[cpu]
    text = assembly_for(cpu, "octets")
    steps = [block for block in blocks(text) if len(re.findall(instruction, block)) >= least]
    assert steps
    assert not re.search(r"vpdpbusds|vpmaddubsw|vpdpwssds|pmaddubsw", text)
    if cpu != NEON:  # where rows and columns are taken apart in registers
        assert not any(re.search(r"[xyz]mm.*\(%rsp\)|\(%rsp\).*[xyz]mm", step) for step in steps)


MATRICES = {"octets": ("tdpbusd", [(1, 4)]), "split": ("tdpbf16ps", [(6, 14)])}
"""The instruction, and for each pass how many there are per register of sums, and the loads."""


@pytest.mark.parametrize("program", MATRICES)
@pytest.mark.parametrize("cpu", deep_but(HAVE_MATRICES[:1], HAVE_MATRICES))
def test_matrices_are_multiplied_in_registers(cpu: str, program: str) -> None:
    """Evenly spaced rows where they lie, without a move through memory or other registers."""
    text = assembly_for(cpu, program)
    instruction, passes = MATRICES[program]
    _, *splitting = re.split(r"\n(?=satura_microkernel_split_\w+:)", text)
    for function in splitting:
        function, _ = function.split("\n.Lfunc_end", 1)
        text = text.replace(function, "")
    found = [re.findall(rf"\t{instruction}\t(.*)", block) for block in blocks(text)]
    steps = [block for block, each in zip(blocks(text), found, strict=True) if each]
    in_place = [step for step in steps if not re.search(r"[xyz]mm", step)]
    seen = {
        Fraction(*(len(re.findall(rf"\t{name}\t", step)) for name in (instruction, "tileloadd")))
        for step in in_place  # which LLVM may repeat
    }
    assert seen == {Fraction(4 * products, loads) for products, loads in passes}
    # No register is taken for another: their sizes are set for sums, rows and panels.
    of = {
        "%tmm6, %tmm4, %tmm0",
        "%tmm7, %tmm4, %tmm1",
        "%tmm6, %tmm5, %tmm2",
        "%tmm7, %tmm5, %tmm3",
    }
    assert set(chain.from_iterable(found)) == of
    for name in ("ldtilecfg", "tilerelease"):
        assert len(re.findall(rf"\t{name}", text)) == 1, name
    assert text.index("\tldtilecfg") < text.index("\ttilerelease")


@pytest.mark.parametrize("cpu", deep_but(HAVE_MATRICES[:1], HAVE_MATRICES))
def test_a_chunk_is_split_between_the_products_of_another(cpu: str) -> None:
    (split,) = re.findall(
        r"\nsatura_microkernel_split_\w+:.*?\n.Lfunc_end", assembly_for(cpu, "split"), re.S
    )
    (step,) = (block for block in blocks(split) if block.count("\tvsubps") >= 4 * 32)
    products = [match.start() for match in re.finditer(r"\ttdpbf16ps", step)]
    assert 23 <= len(products) <= 24  # LLVM may put the last one behind this step and another
    between = [step[start:end].count("\tvsubps") for start, end in pairwise(products)]
    assert max(between) <= 8 and sum(between) >= 4 * 32 - 8
    assert not re.search(r"zmm.*\(%rsp\)|\(%rsp\).*zmm", step), "no vector waits in memory"


@pytest.mark.parametrize(
    ("cpu", "program", "instruction", "least"),
    [
        ("haswell", "small_octets", r"\tvpmaddubsw\t.*ymm", 8),
        pytest.param(
            "skylake-avx512", "small_octets", r"\tvpmaddubsw\t.*zmm", 16, marks=pytest.mark.deep
        ),
        pytest.param(
            "haswell", "few_small_octets", r"\tvpmaddubsw\t.*ymm", 6, marks=pytest.mark.deep
        ),
        pytest.param("znver5", "small_octets", r"\tvpdpbusd\t.*zmm", 24, marks=pytest.mark.deep),
    ],
)
def test_octets_whose_sums_fit_16_bits_are_added_in_them(
    cpu: str, program: str, instruction: str, least: int
) -> None:
    pieces = [piece for block in blocks(assembly_for(cpu, program)) for piece in block.split("\tj")]
    assert any(len(re.findall(instruction, piece)) >= least for piece in pieces)
    for piece in pieces:
        if re.search(r"\tvpmadd|\tvpdp", piece):
            assert not re.search(r"[yz]mm.*\(%rsp\)|\(%rsp\).*[yz]mm", piece)


@pytest.mark.parametrize(("program", "instruction"), [
    ("few_columns", r"\tvfmadd.*ymm"), ("few_octets", r"\tvpmaddwd\t.*ymm"),
])  # fmt: skip
def test_three_vectors_fit_sixteen_registers(program: str, instruction: str) -> None:
    found = blocks(assembly_for("haswell", program))
    counts = [len(re.findall(instruction, block)) for block in found]
    assert any(counts)
    for count, block in zip(counts, found, strict=True):
        assert count % 3 == 0
        assert not count or not re.search(r"ymm.*\(%rsp\)|\(%rsp\).*ymm", block)


@pytest.mark.deep
def test_functions_that_are_the_librarys_are_known() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1000,))
    others = {
        name
        for table in (UNARY, BINARY)
        for name, function in table.items()
        if DType.F32 in function.dtypes and not function.to_bool and name not in VECTOR_FUNCTIONS
    }
    for name in sorted(others):
        result = build.unary(name, x) if name in UNARY else build.binary(name, x, x)
        calls = CALLS.findall(assembly(build.program({"y": result})))
        assert bool(calls) == (name in LIBRARY), name
