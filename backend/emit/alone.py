"""Kernels of one op each: what they need to know of tensors in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satura.backend.emit.code import Code
from satura.backend.emit.text import kernel_text
from satura.backend.lower.body import Argument, Pointer
from satura.backend.lower.walk import strides_of
from satura.rewrite.extract.schedule import Home, Schedule
from satura.rewrite.types.dims import static


def tensor_words(title: str, schedule: Schedule, node: int) -> dict[str, Argument]:
    """The address of a tensor, called `title`, and as `title_0`, `title_1` … how many bytes its
    elements stand apart along each axis but the last."""
    own = Home(node, (0,) * schedule.program.nodes[node].type.rank)
    home = schedule.homes.get(node, own)
    size = schedule.program.nodes[home.buffer].type.dtype.itemsize
    strides = [stride * size for stride in map(static, strides_of(schedule, home))]
    start = sum(static(at) * stride for at, stride in zip(home.start, strides, strict=True))
    found: dict[str, Argument] = {title: Pointer(("buffer", home.buffer), start)}
    return found | {f"{title}_{axis}": stride for axis, stride in enumerate(strides[:-1])}


def named_code(
    name: str, given: Mapping[str, Argument], lines: Sequence[str], work: int, scratch: int = 0
) -> Code:
    """A kernel of `lines`, in which the words of its table have the names of `given`."""
    read = [f"{title} = load_int64(args, {word})" for word, title in enumerate(given)]
    return Code(name, kernel_text([*read, *lines]), tuple(given.values()), work, scratch)
