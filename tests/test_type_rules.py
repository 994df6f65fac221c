"""Type rules: what does not fit is an error that says why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from satura.rewrite.errors import ProgramError
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Axis, Count, ReduceFn
from satura.rewrite.types.tensor_type import DType

build = Builder()
X = build.input("x", DType.F32, (2, 3))
Y = build.input("y", DType.F32, (2, 4))
INDICES = build.input("i", DType.I32, (2, 3))
IMAGE = build.input("image", DType.F32, (1, 5, 5, 4))
KERNEL = build.input("kernel", DType.F32, (3, 3, 3, 4))
PIXELS = build.input("pixels", DType.I32, (1, 5, 5, 4))
WINDOW = build.window(DType.F32, (3, 3))
NARROW = build.window(DType.F32, (3, 1))
STRIDED = build.window(DType.F32, (3, 3), (1, 2))
DILATED = build.window(DType.F32, (3, 3), None, (2, 1))

MISFITS: dict[str, tuple[Callable[[], int], str]] = {
    "binary": (lambda: build.binary("add", X, Y), "types differ"),
    "binary of two dtypes": (lambda: build.binary("add", X, INDICES), "types differ"),
    "select": (lambda: build.select(X, X, X), "condition is"),
    "transpose": (lambda: build.transpose(X, (0, 0)), "does not permute"),
    "reshape": (lambda: build.reshape(X, (2, 4)), "has 6 elements"),
    "broadcast": (lambda: build.broadcast(X, (4, 3)), "does not broadcast"),
    "broadcast to another rank": (lambda: build.broadcast(X, (1, 2, 3)), "another rank"),
    "slice": (lambda: build.slice(X, (0, 1), (2, 3)), "reaches outside"),
    "slice without a step": (lambda: build.slice(X, (0, 0), (2, 3), (1, 0)), "a step is 0"),
    "slice backwards": (lambda: build.slice(X, (0, 1), (2, 3), (1, -1)), "reaches outside"),
    "pad": (lambda: build.pad(X, (0, -1), (0, 0)), "negative"),
    "concat": (lambda: build.concat([X, Y], 0), "differ in axis 1"),
    "concat of two dtypes": (lambda: build.concat([X, INDICES], 0), "do not concatenate"),
    "gather": (lambda: build.gather(X, INDICES, 2), "out of range"),
    "gather by floats": (lambda: build.gather(X, X, 0), "indices are f32"),
    "arg_reduce": (
        lambda: build.add("arg_reduce", (X,), ReduceFn("max"), Axis(0), Count(2)),
        "last is 2, and not 0 or 1",
    ),
    "first_places": (
        lambda: build.add("first_places", (X,), Count(1), Count(-1)),
        "largest is -1, and not 0 or 1",
    ),
    "matmul": (lambda: build.matmul(X, Y), "inner extents"),
    "pool": (lambda: build.pool("max", X, build.window(DType.F32, (4, 1))), "does not fit"),
    "conv": (lambda: build.conv(IMAGE, KERNEL, WINDOW), "4 channels, 1 groups"),
    "attention of other depths": (lambda: build.attention(X, X, X, X), "inner extents"),
    "attention of integers": (lambda: build.attention(*(INDICES,) * 4), "only f32"),
    "winograd": (lambda: build.winograd(IMAGE, KERNEL, WINDOW), "4 channels, 1 groups"),
    "winograd of integers": (lambda: build.winograd(PIXELS, PIXELS, WINDOW), "only f32"),
    "winograd in steps": (lambda: build.winograd(IMAGE, KERNEL, STRIDED), "steps of more"),
    "winograd with gaps": (lambda: build.winograd(IMAGE, KERNEL, DILATED), "is dilated"),
    "winograd of other windows": (lambda: build.winograd(IMAGE, KERNEL, NARROW), "not 3×3"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_an_error(misfit: str) -> None:
    add, reason = MISFITS[misfit]
    with pytest.raises(ProgramError, match=reason):
        add()
