"""Kernels use the widest vectors of the CPU that they are compiled for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.tiers import deep_but

CPUS = {
    "skylake-avx512": 64, "icelake-server": 64, "sapphirerapids": 64, "znver5": 64, "haswell": 32,
}  # fmt: skip
REGISTERS = {64: "zmm", 32: "ymm"}


@pytest.mark.parametrize("cpu", deep_but(["skylake-avx512", "haswell"], CPUS))
@pytest.mark.parametrize(
    ("program", "instructions"), [("elementwise", ["sqrt"]), ("contraction", ["sqrt", "fmadd"])]
)
def test_vectors_are_as_wide_as_the_cpu_has_them(
    program: str, instructions: list[str], cpu: str
) -> None:
    command = [sys.executable, "-m", "tests.assembly", cpu, str(CPUS[cpu]), program]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for instruction in instructions:
        lines = re.findall(rf"\tv{instruction}\w*ps\t.*", text)
        registers = re.findall(r"[xyz]mm", " ".join(lines))
        assert max(registers) == REGISTERS[CPUS[cpu]]
