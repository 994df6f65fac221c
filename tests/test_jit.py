"""Compilation of kernels: errors, sharing, and many at once."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from satura.backend import workers
from satura.backend.cache import statistics
from satura.backend.jit import (
    KernelError,
    KernelSource,
    compile_all,
    is_compiled,
    kernel_address,
    kernel_function,
)


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "kernels"))


def number(value: int) -> KernelSource:
    return KernelSource(
        f"number {value}",
        f"def kernel(args, thread, threads):\n    store_int64(args, 0, {value})\n",
    )


def written(address: int) -> int:
    word = ctypes.c_int64()
    kernel_function(address)(ctypes.addressof(word), 0, 1)
    return word.value


@pytest.mark.parametrize(
    "command",
    ["from satura.backend.workers import serve; serve()", "raise SystemExit(1)", "print('x' * 99)"],
    ids=["helpers", "helpers that die", "helpers that babble"],
)
def test_many_kernels_compile_at_once(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_COMMAND", command)
    monkeypatch.setenv("SATURA_COMPILERS", "1")
    base = 1000 * len(command)
    sources = [number(base + i) for i in range(9)]
    sources.append(sources[3])
    seen: list[tuple[int, int]] = []
    addresses = compile_all(sources, lambda done, count: seen.append((done, count)))
    assert [written(address) for address in addresses] == [base + i for i in (*range(9), 3)]
    assert seen == [(done, 9) for done in range(10)]
    assert statistics().entries == 9


def test_one_wrong_kernel_among_many_is_named() -> None:
    wrong = KernelSource("odd one", "def kernel(args, thread, threads):\n    nowhere(1)\n")
    with pytest.raises(KernelError, match="kernel odd one does not compile"):
        compile_all([*map(number, range(10)), wrong])


def test_equal_texts_share_their_code() -> None:
    first = number(77)
    twin = KernelSource("twin", first.text)
    assert not is_compiled(first)
    assert kernel_address(first) == kernel_address(twin)
    assert is_compiled(twin)


def test_a_kernel_with_an_unknown_helper_is_named() -> None:
    text = "def kernel(args, thread, threads):\n    no_such_helper(args)\n"
    with pytest.raises(KernelError, match="kernel broken does not compile"):
        kernel_address(KernelSource("broken", text))


def test_a_kernel_that_allocates_is_refused() -> None:
    text = "def kernel(args, thread, threads):\n    np.zeros(threads)[thread] += 1\n"
    with pytest.raises(KernelError, match="kernel zeros does not compile"):
        kernel_address(KernelSource("zeros", text))
