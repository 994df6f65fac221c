"""Remembered results: the same model is not searched twice, and never takes another's result."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import satura
from benchmarks.models import build
from satura.backend.jit.cache import Cache, default_cache
from satura.language import Law, RuleSet, Tensor, rewrites, rule, unary
from satura.pipeline import remembered
from satura.pipeline.code import code_files
from satura.pipeline.inputs import random_inputs
from satura.pipeline.remembered import recall, remember, result_key, rewrite_once
from satura.pipeline.rewritten import Rewritten
from satura.pipeline.rule_sets import Rules, rules_identity
from satura.rewrite.egraph import prepared
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.errors import CallError
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.verify import verify
from satura.rewrite.onnx.load import load
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.host_call import HostFallbackWarning
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program, ProgramBuilder
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import Array, DType
from satura.rules import DEFAULT, EXACT, NONE
from tests.onnx_models import make_model
from tests.random_programs import compare, random_program
from tests.tiers import deep_but
from tests.user_ops import user_ops

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    return default_cache("schedule")


def scaled(*factors: float | Array, name: str = "x") -> Program:
    """relu(x · factor · …), each factor a constant."""
    build = Builder()
    x = build.input(name, DType.F32, (3, 4))
    for factor in factors:
        constant = build.constant(np.broadcast_to(factor, np.shape(factor) or (1, 1)), DType.F32)
        x = build.binary("mul", x, build.broadcast(constant, (3, 4)))
    return build.program({"y": build.unary("relu", x)})


def key_of(program: Program, rules: Rules = DEFAULT, limits: Limits | None = None) -> str:
    identity = rules_identity(rules)
    assert identity is not None
    key = result_key(program, identity, limits)
    assert key is not None
    return key


def test_a_second_compile_makes_no_search(cache: Cache) -> None:
    program = scaled(2.0, 0.5)
    first, second = satura.compile(program), satura.compile(program)
    assert (first.is_remembered, second.is_remembered) == (False, True)
    assert list(second.phases) == ["load", "recall", "kernels"]
    assert cache.statistics().entries == 1
    assert second.rewritten.schedule == first.rewritten.schedule
    assert second.report == first.report
    assert str(second.report) == str(first.report)
    arguments = random_inputs(program)
    assert relative_error(second.run(arguments), satura.interpret(program, arguments)) < 1e-6


def test_engines_are_freed_where_weights_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_kept", {})
    program = scaled(np.arange(12.0).reshape(3, 4))  # of 48 bytes
    for most, count in ((48, 1), (47, 0)):
        monkeypatch.setattr(remembered, "_LARGE", most)
        rewrite_once(program, "exact", Limits(rounds=most))
        assert len(prepared._kept) == count


@pytest.mark.deep
def test_another_process_needs_no_e_graph(tmp_path: Path) -> None:
    satura.save(scaled(2.0, 0.5), tmp_path / "model.onnx")
    script = textwrap.dedent(
        """
        import sys
        import satura
        compiled = satura.compile(sys.argv[1], threads=1)
        print(compiled.is_remembered, "egglog" in sys.modules, compiled.program, sep="\\n")
        """
    )
    compiled = satura.compile(tmp_path / "model.onnx", threads=1)
    found = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "model.onnx"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "1"},
        stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    assert found == f"True\nFalse\n{compiled.program}\n"


@pytest.mark.deep
def test_a_model_with_large_constants_is_remembered() -> None:
    program = satura.load(build("tiny_bert"))
    made, again = (rewrite_once(program, NONE) for _ in range(2))
    assert again.is_remembered
    assert again.schedule == made.schedule
    arrays = {id(node.constant.array) for node in program.nodes if node.op.name == "constant"}
    large = [node.constant for node in again.schedule.program.nodes if node.op.name == "constant"]
    assert any(each.label is not None for each in large)
    assert all(id(each.array) in arrays for each in large if each.label is not None)


def test_a_model_with_a_host_call_is_remembered_and_no_other_call_is_made(cache: Cache) -> None:
    determinant = helper.make_node("Det", ["x"], ["y"])
    with pytest.warns(HostFallbackWarning):
        program = load(make_model([determinant], {"x": (3, 3)}))
    made, again = (rewrite_once(program, DEFAULT) for _ in range(2))
    assert again.is_remembered
    assert again.schedule == made.schedule
    key = key_of(program)
    content = cache.load(key)
    assert content is not None
    cache.store(key, content.replace(b"Det", b"Dot"))
    assert recall(key, program) is None


def test_keys_tell_apart_all_that_a_search_depends_on() -> None:
    large = np.arange(12.0).reshape(3, 4)
    changed = large.copy()
    changed[2, 3] += 1
    start = scaled(large, 2.0)
    programs = [
        start, scaled(changed, 2.0), scaled(large, 2.5), scaled(large, -2.0), scaled(2.0, large),
        scaled(large, large), scaled(large, 2.0, name="z"),
        Program(start.nodes, start.inputs, (("z", start.outputs[0][1]),)),
    ]  # fmt: skip
    keys = [key_of(program) for program in programs]
    keys += [key_of(start, rules) for rules in (EXACT, RuleSet(), DEFAULT.without("fold"))]
    keys += [key_of(start, name) for name in ("none", "exact", "default")]
    keys += [key_of(start, limits=Limits(rounds=rounds)) for rounds in (1, 2)]
    assert len(set(keys)) == len(keys)
    assert key_of(scaled(large, 2.0)) == keys[0]


def test_the_order_of_inputs_matters() -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (2,)) for name in "xy")
    program = build.program({"z": build.binary("sub", x, y)})
    swapped = Program(program.nodes, program.inputs[::-1], program.outputs)
    assert key_of(program) != key_of(swapped)


@rule
def relu_twice(x: Tensor) -> Law:
    """relu(relu(x)) = relu(x)"""
    return rewrites(unary("relu", unary("relu", x)), unary("relu", x))


def test_what_rules_of_others_make_is_not_kept(cache: Cache) -> None:
    program = scaled(2.0)
    for _ in range(2):
        assert not satura.compile(program, rules=RuleSet(relu_twice)).is_remembered
    assert cache.statistics().entries == 0


def test_what_a_cost_model_of_others_chose_is_not_kept(cache: Cache) -> None:
    class Mine(CostModel):
        """A subclass has the rates of its parent, and other seconds."""

    program = load(build("tiny_rope"))
    rewrite_once(program, "exact", cost=lambda _: CostModel())
    assert not rewrite_once(program, "exact", cost=lambda _: Mine()).is_remembered
    assert rewrite_once(program, "exact", cost=lambda _: CostModel()).is_remembered


def test_programs_with_ops_of_others_are_not_kept(cache: Cache) -> None:
    with user_ops() as ops:
        build = Builder()
        x = build.input("x", DType.F32, (2, 3))
        program = build.program({"y": build.add(ops.softsign, (x,))})
        for _ in range(2):
            assert not rewrite_once(program, DEFAULT).is_remembered
    assert cache.statistics().entries == 0


def with_another_constant(program: Program, random: np.random.Generator) -> Program | None:
    """The program with one constant changed: in an element, or to another of its constants."""
    constants = [i for i, node in enumerate(program.nodes) if node.op.name == "constant"]
    constants = [i for i in constants if program.nodes[i].constant.array.size]
    if not constants:
        return None
    chosen = int(random.choice(constants))
    array = np.array(program.nodes[chosen].constant.array)
    same = [
        program.nodes[i].constant.array
        for i in constants
        if program.nodes[i].type == program.nodes[chosen].type and i != chosen
    ]
    if same and random.random() < 0.3:
        array = same[int(random.integers(len(same)))]
    else:
        at = int(random.integers(array.size))
        values = random.permutation(4).astype(array.dtype)
        array.flat[at] = next(value for value in values if value != array.flat[at])
    builder, places = ProgramBuilder(), list[int]()
    for index, node in enumerate(program.nodes):
        attributes = (Constant(array),) if index == chosen else node.attributes
        operands = [places[operand] for operand in node.operands]
        places.append(builder.add(node.op, operands, *attributes))
    changed = builder.program({name: places[index] for name, index in program.outputs})
    return None if str(changed) == str(program) else changed


def pairs(count: int) -> Iterator[tuple[int, Program, Program, dict[str, Array], dict[str, bool]]]:
    """Programs that differ in one constant, with arguments, and which outputs are exact."""
    seed = 0
    while count:
        seed += 1
        program, arguments, exact = random_program(seed)
        other = with_another_constant(program, np.random.default_rng(seed))
        if other is not None and is_defined(other, arguments):
            count -= 1
            yield seed, program, other, arguments, exact


def is_defined(program: Program, arguments: dict[str, Array]) -> bool:
    """Whether no index of the program leaves its axis."""
    try:
        meaning(program, arguments)
    except CallError:
        return False
    return True


def meaning(program: Program, arguments: dict[str, Array]) -> dict[str, Array]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return interpret(program, arguments)


def assert_means(
    made: Rewritten, program: Program, arguments: dict[str, Array], exact: dict[str, bool]
) -> None:
    expected, got = meaning(program, arguments), meaning(made.schedule.program, arguments)
    for name in expected:
        assert compare(expected[name], got[name], exact[name]) is None, program.python()


@pytest.mark.parametrize("count", deep_but([1], [1, 8, 200], [8]))
def test_models_that_differ_in_one_constant_keep_their_meaning(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, program, other, arguments, exact in pairs(count):
        for order in ((program, other), (other, program)):
            folder = tmp_path / f"{seed} {order[0] is program}"
            monkeypatch.setenv("SATURA_CACHE", str(folder))
            for each in (*order, *order):
                assert_means(rewrite_once(each, DEFAULT), each, arguments, exact)
            assert default_cache("schedule").statistics().entries == 2


@pytest.mark.parametrize("factors", deep_but([(0.0, 1.0)], [(1.0, 2.0), (0.0, 1.0), (2.0, 0.5)]))
def test_kernels_of_models_that_differ_in_one_constant_compute_their_own(
    factors: tuple[float, float],
) -> None:
    for factor in (*factors, *factors):
        program = scaled(2.0, factor)
        arguments = random_inputs(program)
        got = satura.compile(program, threads=1).run(arguments)
        assert relative_error(got, satura.interpret(program, arguments)) < 1e-6


def mutations(data: bytes, count: int) -> Iterator[bytes]:
    """Truncations, flipped bits, and runs of bytes that are doubled, left out or overwritten."""
    random = np.random.default_rng(0)
    for number in range(count):
        at = int(random.integers(len(data)))
        end = at + 1 + int(random.integers(40))
        changed = bytearray(data)
        changed[at] ^= 1 << int(random.integers(8))
        yield (
            bytes(changed), data[:at], data[:at] + data[end:], data[:end] + data[at:],
            data[:at] + bytes(reversed(data[at:end])) + data[end:],
        )[0 if number % 2 else number // 2 % 5]  # fmt: skip


@pytest.fixture
def kept(cache: Cache) -> tuple[str, Rewritten]:
    """A model with its key, under which its result is kept."""
    program = scaled(np.arange(12.0).reshape(3, 4), 1.0, 2.0)
    key = key_of(program)
    return key, rewrite_once(program, DEFAULT)


COUNTS = deep_but([20], [20, 200, 1000], [200])


@pytest.mark.parametrize("count", COUNTS)
def test_a_damaged_entry_counts_as_absent(
    kept: tuple[str, Rewritten], cache: Cache, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    key, made = kept
    (entry,) = cache.folder.iterdir()
    whole = entry.read_bytes()
    for damaged in mutations(whole, count):
        entry.write_bytes(damaged)
        if damaged == whole:
            continue
        assert recall(key, made.source) is None
        remember(key, made)
        assert recall(key, made.source) == (made.schedule, made.report)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("count", COUNTS)
def test_a_forged_entry_is_refused_or_can_run(
    kept: tuple[str, Rewritten], cache: Cache, count: int
) -> None:
    """Whoever writes a checksum can write another program, but none that cannot run.

    The folder of the rules' files is left out, so that all machines change the same bytes.
    """
    key, made = kept
    content = cache.load(key)
    assert content is not None
    content = content.replace(str(Path(__file__).parents[1]).encode(), b"")
    refused = 0
    for forged in mutations(content, count):
        cache.store(key, forged)
        found = recall(key, made.source)
        if found is None:
            refused += 1
            continue
        verify(found[0])
        found[0].program.verify()
    assert refused > count // 2


@pytest.mark.parametrize("change", ["x", "shape", "y"])
def test_an_entry_of_another_interface_is_refused(
    kept: tuple[str, Rewritten], cache: Cache, change: str
) -> None:
    key, made = kept
    content = cache.load(key)
    assert content is not None
    text = content.decode()
    old, new = {"x": ('"x"', '"z"'), "shape": ("3, 4]", "4, 3]"), "y": ('"y"', '"z"')}[change]
    assert old in text
    cache.store(key, text.replace(old, new).encode())
    assert recall(key, made.source) is None


def test_an_entry_that_is_refused_is_made_anew(
    kept: tuple[str, Rewritten], cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    key, made = kept
    cache.store(key, b"\xff nonsense")
    found = [rewrite_once(made.source, DEFAULT).is_remembered for _ in range(2)]
    assert found == [False, True]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_folder_that_cannot_be_written_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "file" / "cache"))
    for factor in (2.0, 3.0):
        for _ in range(2):
            assert not rewrite_once(scaled(factor), DEFAULT).is_remembered
    assert len(caplog.records) == 1


def test_results_are_those_of_all_code_before_the_kernels() -> None:
    files = code_files()
    assert {"pipeline/stages.py", "rewrite/extract/cost.py", "rules/transpose.py"} <= files.keys()
    assert all(Path(path).is_file() for path in files.values())
