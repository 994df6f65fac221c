"""Tensors that memory cannot hold are refused before any of them is allocated."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from satura.rewrite.errors import CallError, SaturaError
from satura.rewrite.system.files import open_regular
from satura.rewrite.types.dims import static
from satura.rewrite.types.shown import kind_of
from satura.rewrite.types.tensor_type import Array, TensorType

if TYPE_CHECKING:
    from satura.rewrite.program.program import Program

_ANY_MACHINE = 1 << 26  # bytes that every machine has
_GROUP_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def memory_bytes() -> int:
    """Bytes that this process may have: the machine's, or a lower limit that is set for it."""
    limits = [sys.maxsize]
    with suppress(AttributeError, ValueError, OSError):  # the platform does not say
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _GROUP_LIMITS:
        # no such group, or the word "max"
        with suppress(OSError, ValueError), open_regular(file) as text:
            limits.append(int(text.read()))
    with suppress(ImportError):  # not on Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        limits.append(limit if limit != resource.RLIM_INFINITY else sys.maxsize)
    return min(limits)


def tensor_bytes(type_: TensorType) -> int:
    """Bytes of a tensor whose extents are known."""
    return static(type_.size) * type_.dtype.itemsize


def refuse_beyond_memory(
    total: int, tensors: Iterable[tuple[str, TensorType]], error: type[SaturaError]
) -> None:
    """Raise `error` where `total` bytes are more than memory has.

    It names the largest of `tensors`, which take these bytes together.
    """
    if total <= _ANY_MACHINE or total <= (memory := memory_bytes()):
        return
    name, largest = max(tensors, key=lambda named: tensor_bytes(named[1]))
    raise error(
        f"{name} of type {largest} takes {tensor_bytes(largest):,} bytes, all tensors that are"
        f" needed at a time take {total:,}: memory has {memory:,}"
    )


def refuse_copy_beyond_memory(name: str, array: Array) -> None:
    """Raise CallError where memory cannot hold all elements of an argument one after the other, as
    those of a view that repeats a few."""
    size = array.nbytes
    if size > _ANY_MACHINE and size > (memory := memory_bytes()):
        raise CallError(
            f"input {name!r} of type {kind_of(array)} takes {size:,} bytes where a view of it is"
            f" copied: memory has {memory:,}; give a smaller one"
        )


def named_types(program: Program, nodes: Iterable[int]) -> Iterator[tuple[str, TensorType]]:
    """Names for messages and types of `nodes`."""
    outputs = {index: name for name, index in program.outputs}
    for index in nodes:
        node = program.nodes[index]
        if node.op.name == "input":
            name = f"input {node.input_name!r}"
        elif index in outputs:
            name = f"output {outputs[index]!r}"
        else:
            name = f"%{index} ({node.op.name})"
        yield name, node.type
