"""Types of less than 8 bits and floats of 8: stored and moved as they are, and cast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import satura
from satura.rewrite.errors import ProgramError
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import COMPUTED, NARROW, Array, DType
from tests.onnxruntime_reference import run
from tests.tiers import deep_but


def all_codes(dtype: DType) -> Array:
    """An element of each code; bits that a code does not have are 0."""
    bits = {"8": 8, "4": 4, "2": 2}[dtype.value[1]]
    return np.arange(1 << bits, dtype=np.uint8).view(dtype.numpy)


def numbers(target: DType) -> Array:
    """Numbers around every value of `target`, and far from them."""
    near = all_codes(target).astype(np.float32)
    near = near[np.isfinite(near)]
    middle = (near[:, None] + near[None, :]).ravel() / 2
    random = np.random.default_rng(0).standard_normal(5000) * np.exp2(np.arange(5000) % 50 - 30.0)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, -1e38, 1e-45, -3e-39])
    exact = np.concatenate([near, middle, random, special]).astype(np.float32)
    return np.concatenate([exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)])


def argument(source: DType, target: DType) -> Array:
    if source.is_narrow:
        return all_codes(source)
    with np.errstate(all="ignore"):
        if source.is_float:
            return numbers(target).astype(source.numpy)
    return np.arange(-200, 200).astype(source.numpy)


def codes(array: Array) -> Array:
    """The bits of an array, those of all NaNs alike."""
    bits = array.view(f"u{array.dtype.itemsize}").astype(np.int64)
    if DType.of(array.dtype).is_float:
        bits[np.isnan(array.astype(np.float32))] = -1
    return bits


SAMPLE = (DType.F8E4M3,)
PAIRS = [(a, b) for a in NARROW for b in DType] + [(a, b) for a in COMPUTED for b in NARROW]


@pytest.mark.parametrize("target", deep_but(SAMPLE, DType), ids=str)
def test_casts_give_the_same_bits(target: DType) -> None:
    """All pairs with one target are outputs of one program."""
    build = Builder()
    outputs, arguments = {}, {}
    for source, wanted in PAIRS:
        if wanted is target:
            arguments[source.value] = argument(source, target)
            x = build.input(source.value, source, arguments[source.value].shape)
            outputs[f"from {source}"] = build.cast(x, target)
    program = build.program(outputs)
    with np.errstate(all="ignore"):
        expected = interpret(program, arguments)
        results = satura.compile(program, threads=1).run(arguments)
    for name, result in results.items():
        assert result.dtype == target.numpy
        differ = codes(result) != codes(expected[name])
        given = arguments[name.removeprefix("from ")][differ][:5]
        assert not differ.any(), (name, given, result[differ][:5], expected[name][differ][:5])


def test_casts_round_once() -> None:
    """A number beside a tie is not on it, however long it is."""
    build = Builder()
    ties = {DType.I32: (257 << 20, 1), DType.I64: (257 << 50, 1), DType.U64: (257 << 53, 1)}
    outputs, arguments, expected = {}, {}, {}
    for source, (tie, step) in {**ties, DType.F64: (1.0625, 2.0**-40)}.items():
        target = DType.F8E4M3 if source is DType.F64 else DType.BF16
        signs = (1, -1) if source.is_signed else (1,)
        x = np.array([s * (tie + n * step) for s in signs for n in (-1, 0, 1)], source.numpy)
        step = 0.0625 if source is DType.F64 else tie // 257
        near = [s * (tie + n * step) for s in signs for n in (-1, -1, 1)]
        arguments[source.value], expected[source.value] = x, np.array(near, np.float64)
        y = build.cast(build.input(source.value, source, x.shape), target)
        outputs[f"{source} out"] = build.cast(y, DType.F64)
    program = build.program(outputs)
    both = interpret(program, arguments), satura.compile(program, threads=1).run(arguments)
    for results in both:
        for name, wanted in expected.items():
            np.testing.assert_array_equal(results[f"{name} out"], wanted, name)


@pytest.mark.parametrize("dtype", deep_but(NARROW[::4], NARROW), ids=str)
def test_movement_keeps_every_bit(dtype: DType) -> None:
    x = np.resize(all_codes(dtype), (4, 64)).view(dtype.numpy)
    build = Builder()
    moved = build.transpose(build.reshape(build.input("x", dtype, (4, 64)), (8, 32)), (1, 0))
    program = build.program({"y": build.slice(moved, (1, 2), (20, 5))})
    result = satura.compile(program, threads=1).run({"x": x})["y"]
    expected = x.reshape(8, 32).T[1:21, 2:7]
    assert np.array_equal(result.view(np.uint8), expected.copy().view(np.uint8))
    assert result.dtype == dtype.numpy


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_nothing_computes_with_them(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (4,))
    with pytest.raises(ProgramError):
        build.binary("add", x, x)
    with pytest.raises(ProgramError):
        build.unary("neg", x)
    with pytest.raises(ProgramError):
        build.reduce("max", x, (0,))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_saved_programs_mean_the_same(dtype: DType, tmp_path: Path) -> None:
    build = Builder()
    x, code = build.input("x", DType.F32, (40,)), build.input("code", dtype, (4,))
    outputs = {"code": build.cast(x, dtype), "x": build.cast(code, DType.F32)}
    program = build.program({f"{name} out": index for name, index in outputs.items()})
    path = tmp_path / "model.onnx"
    satura.save(program, path)
    near = np.resize(all_codes(dtype).astype(np.float32), 40)
    arguments = {"x": np.where(np.isfinite(near), near, 0), "code": all_codes(dtype)[:4]}
    expected = interpret(program, arguments)
    for name, result in interpret(satura.load(path), arguments).items():
        assert np.array_equal(codes(result), codes(expected[name])), name


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_saved_movement_is_valid(dtype: DType) -> None:
    """ONNX moves no narrow elements by Gather, Slice, Concat, Expand and ScatterND."""
    build = Builder()
    given = build.input("x", DType.F32, (2, 8))
    x, at = build.cast(given, dtype), build.input("at", DType.I64, (3,))
    moved = {
        "gather": build.gather(x, at, 1),
        "slice": build.slice(build.transpose(x, (1, 0)), (1, 0), (4, 2)),
        "concat": build.concat([x, x], 0),
        "broadcast": build.broadcast(build.slice(x, (0, 0), (1, 8)), (3, 8)),
        "pad": build.pad(x, (0, 1), (1, 0)),
    }
    program = build.program({name: build.cast(y, DType.F32) for name, y in moved.items()})
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    arguments = {"x": np.array([[0, 1, 1, 0] * 2] * 2, np.float32), "at": np.array([1, 4, -1])}
    expected = interpret(program, arguments)
    if dtype not in (DType.F4E2M1, DType.I2, DType.U2):  # those onnxruntime has not
        for result, name in zip(run(model, arguments), moved, strict=True):
            np.testing.assert_array_equal(result, expected[name], name)


def test_casts_by_way_of_others_are_merged_only_where_that_changes_nothing() -> None:
    """Every pair of casts between narrow and usual types: rewritten programs give the same bits."""
    for source in (DType.F8E4M3, DType.F4E2M1, DType.I4, DType.U2, DType.I8, DType.F16):
        build = Builder()
        given = argument(source, DType.F8E4M3)
        x = build.input("x", source, given.shape)
        outputs = {}
        for between in (DType.F16, DType.I32, DType.I8, DType.U4, DType.F8E5M2):
            for target in (DType.F32, DType.I64, DType.I2, DType.F8E4M3Z, DType.F4E2M1):
                outputs[f"{between} {target}"] = build.cast(build.cast(x, between), target)
        program = build.program(outputs)
        with np.errstate(all="ignore"):
            expected = interpret(program, {"x": given})
            results = interpret(satura.optimize(program), {"x": given})
        for name, result in results.items():
            assert np.array_equal(codes(result), codes(expected[name])), (source, name)
