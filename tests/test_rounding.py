"""Numbers that are rounded to 8 bits, as quantising does it: bit for bit as each op by itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from satura.backend.plan.compiled import compile_schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType
from tests.random_programs import compare
from tests.trivial_scheduler import one_dispatch

ZERO_POINTS = {
    DType.U8: (None, 0, 1, 117, 128, 255, -3, 0.5, 300), DType.I8: (None, 0, 1, -128, 127, 0.5),
}  # fmt: skip
CASES = [(dtype, zero) for dtype, zeros in ZERO_POINTS.items() for zero in zeros]


def numbers() -> NDArray[np.float32]:
    """Ties, what is next to them, and what is beyond any integer or not a number."""
    ties = np.arange(-700, 700, 0.5, dtype=np.float32)
    odd = np.array([0, 0.3, 1e-40, 2.0**22 + 0.5, 2.0**23 + 1, 2.0**31, 1e38, np.inf, np.nan])
    odd = odd.astype(np.float32)
    near = [np.nextafter(ties, np.float32(to)) for to in (-np.inf, np.inf)]
    return np.concatenate([ties, *near, odd, -odd])


@pytest.mark.parametrize("bounds", ["none", "the dtype's", "narrower", "wider", "one"])
@pytest.mark.parametrize(("dtype", "zero_point"), CASES)
def test_rounded_numbers(dtype: DType, zero_point: float | None, bounds: str) -> None:
    """As integers, as floats, and as floats less integers that are the zero point or another."""
    x = numbers()
    build = Builder()
    least, most = dtype.bounds

    def spread(value: float, of: DType) -> int:
        return build.broadcast(build.constant([value], of), x.shape)

    limits = {
        "none": (), "the dtype's": (("max", least), ("min", most)), "one": (("min", most),),
        "narrower": (("min", most - 7), ("max", least + 3)),
        "wider": (("max", least - 0.5), ("min", np.inf)),
    }[bounds]  # fmt: skip
    found = build.unary("round", build.input("x", DType.F32, x.shape))
    if zero_point is not None:
        found = build.binary("add", found, spread(zero_point, DType.F32))
    for function, bound in limits:
        found = build.binary(function, spread(bound, DType.F32), found)
    octets = build.cast(found, dtype)
    results = {"octets": octets, "floats": build.cast(octets, DType.F32)}
    for taken in (int(zero_point or 0), 5, -30000):
        less = build.binary("sub", build.cast(octets, DType.I16), spread(taken, DType.I16))
        results[f"less {taken}"] = build.cast(less, DType.F32)
    for name, result in results.items():
        program = build.program({"y": result})
        expected = interpret(program, {"x": x})["y"]
        got = compile_schedule(one_dispatch(program), 1).run({"x": x})["y"]
        assert compare(expected, got, exact=True) is None, name
