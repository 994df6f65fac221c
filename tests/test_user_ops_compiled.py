"""Ops that users declare, compiled: on every element type they take, fused, on the host, cached."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import satura
from satura.ops import Axis, Count, DType, Scalar, TensorType, UserOp, local_ops, op, refuse_unless
from satura.rewrite.check.user_ops import draw_operands
from satura.rewrite.ops import USER_OPS, Kind
from satura.rewrite.ops.draw import Draw
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array
from tests import random_programs
from tests.random_programs import RandomProgram, compare, random_program
from tests.tiers import deep_but
from tests.user_ops import Shift, UserOps

HALF = Scalar.of(0.5, DType.F32)


def agree(program: Program, arguments: dict[str, Array], threads: int = 2) -> satura.Compiled:
    """Compile `program`; its outputs are those of the interpreter, special values included."""
    compiled = satura.compile(program, threads=threads)
    with np.errstate(all="ignore"):
        expected, got = interpret(program, arguments), compiled.run(arguments)
    found = {name: compare(expected[name], got[name], exact=False) for name in expected}
    assert not any(found.values()), f"{found}\n{program}"
    return compiled


def signatures(declared: UserOp) -> list[tuple[tuple[DType, ...], DType]]:
    """Element types of operands and result."""
    assert declared.user is not None
    return list(declared.user.signatures)


TAKEN = {  # element types that are compiled: of ops that are lowered alike, all of one only
    "softsign": slice(0, 4),
    "hypotenuse": slice(1, 3),
    "lerp": slice(0, 12, 2),
    "elu": slice(1, 3),
    "dequantize": slice(0, 2),
}


@pytest.mark.parametrize("name", deep_but(["lerp"], TAKEN))
def test_every_element_type_is_computed_as_the_reference_does(name: str, ops: UserOps) -> None:
    declared: UserOp = getattr(ops, name)
    random, draw = np.random.default_rng(0), Draw(Random(0))
    attributes: dict[type, Attribute] = {Scalar: HALF, Count: Count(1)}
    build = Builder()
    outputs: dict[str, int] = {}
    arguments: dict[str, Array] = {}
    for number, (dtypes, result) in enumerate(signatures(declared)[TAKEN[name]]):
        shape = ((3, 7), (5,), (1, 2, 9), (), (0, 4))[number % 5]
        operands = []
        for position, dtype in enumerate(dtypes):
            key = f"x{number}_{position}"
            operands.append(build.input(key, dtype, shape))
            special = draw.array(TensorType(dtype, shape), moderate=bool(random.integers(2)))
            arguments[key] = special
        made = build.add(declared, operands, *(attributes[sort] for sort in declared.attributes))
        assert build.type(made).dtype is result
        outputs[f"y{number}"] = made
    agree(build.program(outputs), arguments)


@pytest.mark.deep
def test_every_op_is_drawn_inferred_run_and_compiled_alike(ops: UserOps) -> None:
    """The walk over all declared ops: generator, type rule, reference and kernel agree."""
    build = Builder()
    outputs: dict[str, int] = {}
    arguments: dict[str, Array] = {}
    for declared in USER_OPS.values():
        if declared is ops.rolled or declared.user is None or declared.user.function:
            continue  # has no generator; is drawn by `unary` or `binary`
        draw = Draw(Random(7))
        for number in range(2):
            result = TensorType(DType.F32, draw.shape(2))
            given = (None,) * len(declared.attributes)
            types, attributes = draw_operands(declared, draw, result, given, (None,) * len(given))
            keys = [f"{declared.name}{number}_{at}" for at in range(len(types))]
            operands = [
                build.input(key, type_.dtype, type_.shape)
                for key, type_ in zip(keys, types, strict=True)
            ]
            arguments |= {
                key: draw.array(type_, True) for key, type_ in zip(keys, types, strict=True)
            }
            made = build.add(declared, operands, *attributes)
            assert build.type(made) == result
            outputs[f"{declared.name}{number}"] = made
            again = draw_operands(declared, draw, result, attributes, (None,) * len(given))
            assert again[1] == attributes, "what the pattern decided stays"
    agree(build.program(outputs), arguments)


@pytest.mark.deep
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_half_types_are_rounded_after_each_op_even_where_nothing_is_stored(dtype: DType) -> None:
    with local_ops():
        scaled = op(formula="x * 0.1")(_scaled)
        build = Builder()
        x, tenth = (build.input(name, dtype, (64,)) for name in ("x", "tenth"))
        same = build.binary("eq", build.add(scaled, (x,)), tenth)
        values = np.arange(1, 65).astype(dtype.numpy)
        rounded = np.multiply(values.astype(np.float32), np.float32(0.1)).astype(dtype.numpy)
        compiled = satura.compile(build.program({"same": same}), threads=1)
        assert compiled.run({"x": values, "tenth": rounded})["same"].all()
        assert count(compiled, "dispatch-count") == 1


# Fusion


def count(compiled: satura.Compiled, key: str) -> int:
    return compiled.statistics[key]


def test_a_chain_of_them_is_one_dispatch(ops: UserOps) -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (33, 5)) for name in "xy")
    bent = build.add(ops.elu, (build.add(ops.softsign, (x,)),), HALF)
    mixed = build.add(ops.lerp, (bent, build.unary("exp", y), build.add("hypotenuse", (x, y))))
    program = build.program({"y": build.unary("tanh", mixed)})
    random = np.random.default_rng(0)
    arguments: dict[str, Array] = {
        name: random.standard_normal((33, 5)).astype(np.float32) for name in "xy"
    }
    compiled = agree(program, arguments)
    assert count(compiled, "dispatch-count") == 1 and count(compiled, "host-count") == 0
    assert count(compiled, "flops") == 33 * 5 * (6 + 14 + 3 + 10 + 7 + 12)


def test_they_are_epilogues_of_contractions_and_parts_of_rows(ops: UserOps) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (4, 6))
    random = np.random.default_rng(0)
    w = build.constant(random.standard_normal((6, 9)).astype(np.float32))
    product = build.add(ops.elu, (build.add(ops.softsign, (build.matmul(x, w),)),), HALF)
    rows = build.add(ops.softsign, (build.input("r", DType.F32, (4, 9)),))
    least = build.broadcast(build.reduce("min", rows, [1]), (4, 9))
    spread = build.add(ops.lerp, (rows, least, rows))
    program = build.program({"product": product, "spread": spread})
    arguments: dict[str, Array] = {
        "x": random.standard_normal((4, 6)).astype(np.float32),
        "r": random.standard_normal((4, 9)).astype(np.float32),
    }
    assert count(agree(program, arguments), "dispatch-count") == 2


def test_equal_kernels_are_shared_whatever_the_numbers_are(ops: UserOps) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (7, 3))
    outputs = {f"y{k}": build.add(ops.elu, (x,), Scalar.of(k, DType.F32)) for k in range(3)}
    values: Array = np.linspace(-2, 2, 21, dtype=np.float32).reshape(7, 3)
    compiled = agree(build.program(outputs), {"x": values})
    assert count(compiled, "dispatch-count") == 3 and count(compiled, "executable-count") == 1


def test_a_changed_formula_is_another_kernel() -> None:
    """The kernels' cache knows what a kernel computes, not what its op is called."""
    values: Array = np.arange(8, dtype=np.float32)
    results = []
    for formula in ("2 * x", "3 * x"):
        with local_ops():
            scaled = op(formula=formula)(_scaled)
            build = Builder()
            x = build.input("x", DType.F32, (8,))
            program = build.program({"y": build.add(scaled, (x,))})
            compiled = satura.compile(program, threads=1)
            results.append(compiled(values))
    assert np.array_equal(results[0], 2 * values) and np.array_equal(results[1], 3 * values)


def _scaled(x: TensorType) -> TensorType:
    """Some multiple of x."""
    return x


def test_conversions_in_a_formula_round() -> None:
    def coarse(x: TensorType) -> TensorType:
        """x as an f16 holds it, and cut to a whole number where it is large."""
        refuse_unless(x.dtype is DType.F32)
        return x

    with local_ops():
        declared = op(formula="f32(f16(x)) if x < 8 else f32(i8(x))")(coarse)
        build = Builder()
        x = build.input("x", DType.F32, (5,))
        program = build.program({"y": build.add(declared, (x,))})
        values: Array = np.array([0.1, 1 / 3, 7.999, 9.5, 1000], np.float32)
        half = values[:3].astype(np.float16).astype(np.float32).tolist()
        agree(program, {"x": values})
        assert interpret(program, {"x": values})["y"].tolist() == [*half, 9, 127]
        assert satura.compile(program, threads=1).run({"x": values})["y"].tolist()[:3] == half


def test_a_formula_may_call_another_op() -> None:
    def halved(x: TensorType) -> TensorType:
        """x / 2"""
        return x

    def around(x: TensorType, y: TensorType) -> TensorType:
        """The middle of x and y, wherever one is not infinite."""
        return x

    with local_ops():
        op(formula="x * 0.5")(halved)
        middle = op(formula="halved(x + y) if -inf < x < inf else y")(around)
        build = Builder()
        x, y = (build.input(name, DType.BF16, (4,)) for name in "xy")
        arguments: dict[str, Array] = {
            "x": np.array([1, np.inf, np.nan, -3]).astype(DType.BF16.numpy),
            "y": np.array([2, 5, 6, np.inf]).astype(DType.BF16.numpy),
        }
        program = build.program({"z": build.add(middle, (x, y))})
        agree(program, arguments)
        expected = interpret(program, arguments)["z"].astype(np.float32)
        assert expected.tolist() == [1.5, 5.0, 6.0, np.inf]


# Sizes, hosts and whole programs


def test_symbolic_sizes(ops: UserOps) -> None:
    build = Builder()
    n = symbol("n")
    x, y = (build.input(name, DType.F32, (n, 3)) for name in "xy")
    ordered = build.add(ops.sorted_rows, (build.add(ops.lerp, (x, y, x)),), Axis(0))
    program = build.program({"y": build.add(ops.elu, (ordered,), HALF)})
    random = np.random.default_rng(0)
    for size in (4, 0):
        agree(
            program, {name: random.standard_normal((size, 3)).astype(np.float32) for name in "xy"}
        )


def test_an_op_without_a_formula_runs_on_the_host(ops: UserOps) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    ordered = build.add(ops.sorted_rows, (build.unary("neg", x),), Axis(1))
    moved = build.add(ops.rolled, (build.unary("exp", ordered),), Shift(1, 1))
    program = build.program({"y": build.unary("relu", moved), "ordered": ordered})
    values: Array = np.array([[3, 1, 2], [-1, np.inf, 0]], np.float32)
    compiled = agree(program, {"x": values})
    assert count(compiled, "host-count") == 2
    assert np.array_equal(compiled.run({"x": values})["ordered"], np.sort(np.negative(values), 1))


def test_verification_covers_them(ops: UserOps) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    program = build.program({"y": build.add(ops.elu, (build.add(ops.softsign, (x,)),), HALF)})
    satura.compile(program, verify=True)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0])
def test_random_programs(seed: int, ops: UserOps, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(program: RandomProgram) -> None:
        node = program.pick(lambda v: program.dtype(v).is_float)
        if node is None:
            return
        node = program.tamed(node)
        other, bound = program.tamed(program.like(node)), program.bound[node]
        kind, build = int(program.random.integers(4)), program.build
        if kind == 0:
            program.keep(build.add(ops.softsign, (node,)), False, 1.0)
        elif kind == 1:
            program.keep(build.add(ops.elu, (node,), HALF), False, bound)
        elif kind == 2:
            program.keep(build.add(ops.hypotenuse, (node, other)), False, 2 * bound + 20)
        else:
            ramp = build.unary("sigmoid", other)
            program.keep(build.add(ops.lerp, (node, other, ramp)), False, 2 * bound + 20)

    monkeypatch.setattr(random_programs, "STEPS", (*random_programs.STEPS, (step, 12.0)))
    program, arguments, _ = random_program(seed)
    assert any(node.op.user for node in program.nodes)
    assert all(node.op.kind is not Kind.HOST for node in program.nodes)
    agree(program, arguments)
