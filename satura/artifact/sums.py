"""Sums of the rows and columns of words, which checksums of large sections are made of: by NumPy,
and by a kernel, which reads memory once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from satura.backend.jit.kernel import CompiledKernel, KernelSource
from satura.backend.jit.machine_code import kernel_function, load_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

WORDS = 512  # of a row
_BLOCK = 1 << 10  # rows that stay in a cache between two sums

Sums: TypeAlias = "Callable[[Words], tuple[Words, Words]]"
"""The sums of each row and of each column, modulo 2⁶⁴, of words in rows."""

SUMS = KernelSource("sums", f"""\
def kernel(args, thread, threads):
    words = load_int64(args, 0)
    rows = load_int64(args, 2)
    columns = load_int64(args, 3)
    for row in range(load_int64(args, 1)):
        total = 0
        for column in range({WORDS}):
            word = load_int64(words, {WORDS} * row + column)
            total += word
            store_int64(columns, column, load_int64(columns, column) + word)
        store_int64(rows, row, total)
""")  # fmt: skip


def by_numpy(words: Words) -> tuple[Words, Words]:
    """Sums, block by block."""
    rows, columns = np.zeros(len(words), np.uint64), np.zeros(WORDS, np.uint64)
    for start in range(0, len(words), _BLOCK):
        block = words[start : start + _BLOCK]
        columns += np.add.reduce(block, axis=0)
        np.add.reduce(block, axis=1, out=rows[start : start + _BLOCK])
    return rows, columns


def by_kernel(kernel: CompiledKernel) -> Sums:
    """Sums by the machine code of `SUMS`, which is loaded."""
    (address,) = load_all([kernel])
    run = kernel_function(address)

    def sums(words: Words) -> tuple[Words, Words]:
        rows, columns = np.zeros(len(words), np.uint64), np.zeros(WORDS, np.uint64)
        places = (words.ctypes.data, len(words), rows.ctypes.data, columns.ctypes.data)
        arguments = np.array(places, np.int64)
        run(arguments.ctypes.data, 0, 1)
        return rows, columns

    return sums
