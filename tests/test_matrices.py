"""Products of matrices by instructions that this CPU may lack: see `matrix_model`."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from satura.backend import target
from satura.backend.contraction.tile import (
    Products,
    chunk_of,
    multiplies_as_matrices,
    tile_of,
)  # fmt: skip
from satura.backend.target import Target, host_target, named_by_system
from tests.tiers import deep_but

CPU = """\
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
stepping\t: 8
flags\t\t: fpu avx2 fma avx512f avx512vl avx512_vnni amx_bf16 amx_tile amx_int8
"""


@pytest.fixture
def has_matrices(tmp_path: Path) -> Target:
    """A CPU of the generation Sapphire Rapids, as Linux describes it."""
    path = tmp_path / "cpuinfo"
    path.write_text(CPU)
    found = named_by_system(path)
    if found is None or found.vector_bytes < 64:
        pytest.skip("not on x86_64, or vectors are narrowed")
    return found


@pytest.mark.parametrize("first", deep_but([0], range(0, 100, 25)))
def test_products_of_matrices_are_the_interpreters(first: int, tmp_path: Path) -> None:
    count = 25 if first else 5
    command = [sys.executable, "-m", "tests.matrix_model", str(first), str(count)]
    environment = {**os.environ, "SATURA_CACHE": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("permits", [True, False])
def test_matrices_are_multiplied_where_the_system_permits_it(
    permits: bool, has_matrices: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "named_by_system", lambda: has_matrices)
    monkeypatch.setattr(target, "_permits_matrices", lambda: permits)
    found = host_target.__wrapped__()
    assert found.multiplies_matrices is permits
    assert found.sums_four_products and (found == has_matrices) is permits


@pytest.mark.parametrize("answer", [0, -1])
def test_permission_is_asked_of_the_system(answer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Library:
        def __init__(self, name: None) -> None:
            pass

        def syscall(self, *operands: ctypes.c_long) -> int:
            asked.extend(operand.value for operand in operands)
            return answer

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert target._permits_matrices() is (answer == 0)
    assert asked == [158, 0x1023, 18]  # arch_prctl, ARCH_REQ_XCOMP_PERM, the tiles' data


def test_a_tile_of_matrices_has_groups_of_equal_size() -> None:
    for rows in range(1, 200):
        (tallest,) = tile_of(2, rows, Products.MATRICES).rows
        assert 2 <= tallest <= 32 and tallest % 2 == 0
        tiles = -(-rows // 32)
        assert rows <= tiles * tallest < rows + 2 * tiles  # none is much larger than it need be


def test_chunks_share_a_depth_evenly(has_matrices: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [chunk_of(words) for words in (1, 6, 16, 17, 24, 36, 37, 40, 64)] == [
        1, 6, 16, 1, 12, 12, 1, 10, 16,
    ]  # fmt: skip
    monkeypatch.setattr("satura.backend.contraction.tile.host_target", lambda: has_matrices)
    assert multiplies_as_matrices(None, 17, 24) and multiplies_as_matrices(8, 40, 4)
    assert not multiplies_as_matrices(64, 64, 37) and not multiplies_as_matrices(7, 64, 64)
    assert not multiplies_as_matrices(64, 16, 64)
    narrow = has_matrices._replace(vector_bytes=32)
    monkeypatch.setattr("satura.backend.contraction.tile.host_target", lambda: narrow)
    assert not multiplies_as_matrices(64, 64, 64)
