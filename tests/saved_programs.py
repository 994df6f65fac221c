"""Programs saved as ONNX and compared with the interpreter, and arguments of all kinds for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType
from tests.onnxruntime_reference import assert_close, kept_by_pools, run

FLOATS = (DType.F32, DType.F64, DType.F16, DType.BF16)
INTEGERS = tuple(dtype for dtype in COMPUTED if dtype.is_integer)
TOLERANCE = {DType.F64: 1e-12, DType.F32: 2e-6, DType.F16: 2e-3, DType.BF16: 2e-2}
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e30, -1e-30, 300.7)


def check(program: Program, *valuations: dict[str, Array], tolerance: float | None = None) -> None:
    """Save `program`, check the model, compare onnxruntime with the interpreter."""
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    for arguments in valuations:
        expected = interpret(program, arguments)
        kept = kept_by_pools(program, arguments, expected)
        for (name, wanted), found in zip(expected.items(), run(model, arguments), strict=True):
            assert found.shape == wanted.shape, name
            got = np.where(kept[name], found, wanted).astype(found.dtype)
            dtype = DType.of(wanted.dtype)
            if dtype.is_float:
                bound = TOLERANCE[dtype] if tolerance is None else tolerance
                assert_close(got, wanted, bound, name)
            else:
                np.testing.assert_array_equal(got, wanted, err_msg=name)


def values(dtype: DType, shape: Sequence[int], seed: int = 0, special: bool = True) -> Array:
    """Random values; with `special` also NaN, infinities, zeros and the extremes of integers."""
    random = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return np.asarray(random.random(shape) < 0.5)
    drawn: Array
    if dtype.is_float:
        drawn = np.asarray(random.standard_normal(shape) * 2)
        pool: Sequence[float] = SPECIAL
    else:
        bits = 8 * dtype.itemsize
        most = 2 ** (bits - dtype.is_signed) - 1
        least = -most - 1 if dtype.is_signed else 0
        drawn = np.asarray(random.integers(max(least, -9), 10, shape))
        pool = (0, 1, 2, 3, most, most - 1, least, least + 1, most // 2**31, most // 2**33)
    chosen = random.random(shape) < (0.4 if special else 0.0)
    mixed = np.array(drawn, object)
    for place in np.argwhere(chosen):
        mixed[tuple(place)] = pool[int(random.integers(len(pool)))]
    with np.errstate(all="ignore"):
        if dtype.is_float:
            return mixed.astype(np.float64).astype(dtype.numpy)
        return mixed.astype(dtype.numpy)


def arguments_of(
    program: Program, seed: int = 0, special: bool = True, **sizes: int
) -> dict[str, Array]:
    """Random arguments for `program` at the given sizes."""
    result = {}
    for position, index in enumerate(program.inputs):
        node = program.nodes[index]
        type_ = node.type.concrete(sizes)
        shape = list(map(static, type_.shape))
        result[node.input_name] = values(type_.dtype, shape, seed + position, special)
    return result
