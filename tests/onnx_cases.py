"""The onnx package's own backend tests, interpreted or compiled."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.backend.test.case import node
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

import satura
from satura.rewrite.errors import SaturaError, UnsupportedError
from satura.rewrite.onnx.inputs import declared_inputs
from satura.rewrite.onnx.load import load_for
from satura.rewrite.program.arguments import as_arrays, with_members
from satura.rewrite.program.host_call import missing_package
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.sequence_type import member
from satura.rewrite.types.tensor_type import Array

Arguments = Mapping[str, object]
DataSets = Sequence[tuple[Sequence[Array], Sequence[Array]]]
Execute = Callable[[ModelProto, Arguments], tuple[Program, dict[str, Array]]]
"""What loads and runs a model: its program for these arguments, and its results."""

SLOW = ("averagepool", "lppool", "maxpool")
"""Files of cases whose expected results loop over each window in Python, for seconds."""
STORED = ("simple", "pytorch-converted", "pytorch-operator")
"""Kinds of cases that the package holds as files."""
RANDOM = ("Bernoulli", "RandomUniformLike")
HANGS = 300.0  # seconds after which a case is given up


@dataclass(frozen=True)
class Outcome:
    """What became of one case: the ops it runs on the host, or why it was refused or is wrong."""

    name: str
    host: tuple[str, ...] = ()
    refused: str = ""
    wrong: str = ""


def outcome_of(case: TestCase, execute: Execute) -> Outcome:
    """What became of the case as it is."""
    try:
        return _run(case, _model(case), execute)
    except UnsupportedError as error:
        return Outcome(case.name, refused=str(error))
    except SaturaError as error:
        return Outcome(case.name, wrong=str(error))


def _model(case: TestCase) -> ModelProto:
    assert case.model is not None
    return case.model


def _value(value: object) -> object:
    """An argument: an array, a list of them, or None for an optional without an element."""
    if isinstance(value, list):
        return [_array(each) for each in value if each is not None]
    return None if value is None else _array(value)


def _array(value: object) -> Array:
    if isinstance(value, TensorProto):
        return np.asarray(numpy_helper.to_array(value))
    return np.asarray(value)


def _run(case: TestCase, model: ModelProto, execute: Execute) -> Outcome:
    host: tuple[str, ...] = ()
    for inputs, outputs in case.data_sets or []:
        constants = {each.name for each in model.graph.initializer}
        names = [info.name for info in model.graph.input]
        pairs = zip(names, inputs, strict=False)
        given = {name: _value(value) for name, value in pairs if name not in constants}
        program, results = execute(model, given)
        host = tuple(sorted({call.op_type for call in _host_calls(program)}))
        if not any(op in RANDOM for op in host):
            flat: dict[str, object] = {}
            for info, value in zip(model.graph.output, outputs, strict=True):
                if isinstance(value, list):
                    flat |= {member(info.name, at): each for at, each in enumerate(value)}
                else:
                    flat[info.name] = value
            wrong = _difference(case, [results[name] for name in flat], [*flat.values()])
            if wrong:
                return Outcome(case.name, host, wrong=wrong)
    return Outcome(case.name, host)


def _host_calls(program: Program) -> list[HostCall]:
    attributes = [node.attributes[0] for node in program.nodes if node.attributes]
    return [call for call in attributes if isinstance(call, HostCall)]


def _difference(case: TestCase, results: list[Array], outputs: Sequence[object]) -> str:
    for result, output in zip(results, outputs, strict=True):
        expected = _array(output)
        if (result.dtype, result.shape) != (expected.dtype, expected.shape):
            return f"{result.dtype}{result.shape}, expected {expected.dtype}{expected.shape}"
        narrow = expected.dtype.itemsize <= 2 and expected.dtype.kind not in "iub"
        relative, absolute = (1e-2, 1e-2) if narrow else (max(case.rtol, 1e-3), 1e-6)
        a, b = result.astype(np.float64), expected.astype(np.float64)
        if not np.allclose(a, b, relative, absolute, equal_nan=True):
            return f"largest difference {np.nanmax(np.abs(a - b))}"
    return ""


@cache
def cases() -> dict[str, TestCase]:
    """All cases with a model, by name, but those that need a package that is not installed."""
    return _collect_but(()) | {case.name: case for kind in STORED for case in _stored(kind)}


def _stored(kind: str) -> Iterable[TestCase]:
    for case in load_model_tests(kind=kind):
        folder = Path(case.model_dir or "")
        model = onnx.load(folder / "model.onnx")
        sets = [
            tuple(
                [_stored_value(path / f"{word}_{i}.pb", info) for i, info in enumerate(infos)]
                for word, infos in (("input", model.graph.input), ("output", model.graph.output))
            )
            for path in sorted(folder.glob("test_data_set*"))
        ]
        # The package's own sets hold tensors and lists, too, whatever their type says.
        yield replace(case, model=model, data_sets=cast(DataSets, sets))


def _stored_value(path: Path, info: ValueInfoProto) -> object:
    """A tensor; a list for a sequence, and for an initializer, which has no file."""
    if not info.type.HasField("tensor_type") or not path.exists():
        return []
    return TensorProto.FromString(path.read_bytes())


@cache
def sample() -> dict[str, TestCase]:
    """Every twelfth case, none of `SLOW`."""
    found = _collect_but(SLOW)
    return {name: found[name] for name in sorted(found)[::12]}


def _collect_but(files: Sequence[str]) -> dict[str, TestCase]:
    """The cases with a model, without those of `files` that are not imported yet."""
    names = {f"{node.__name__}.{file}" for file in files} - sys.modules.keys()
    sys.modules.update({name: ModuleType(name) for name in names})
    try:
        with np.errstate(all="ignore"):
            found = node.collect_testcases(None)
    finally:
        for name in names:
            del sys.modules[name]
    return {case.name: case for case in found if _is_possible(case)}


def _is_possible(case: TestCase) -> bool:
    nodes = [] if case.model is None else case.model.graph.node
    return case.model is not None and not any(missing_package(node.op_type) for node in nodes)


def interpreted(model: ModelProto, arguments: Arguments) -> tuple[Program, dict[str, Array]]:
    """The model's program for these arguments, run by the interpreter."""
    arrays = as_arrays(with_members(arguments, declared_inputs(model.graph)))
    program, bound = load_for(model, arrays)
    return program, interpret(program, {n: x for n, x in arrays.items() if n not in bound})


def compiled(model: ModelProto, arguments: Arguments) -> tuple[Program, dict[str, Array]]:
    """The model's program for these arguments, run by kernels."""
    result = satura.compile(model, threads=1)
    results = result.run(arguments)
    result = result.parts[0]
    result = result.for_values(arguments)
    return result.source, results


def compiled_outcomes(names: Iterable[str]) -> dict[str, Outcome]:
    """What becomes of the cases in another process, of which a new one follows one that dies."""
    context = get_context("spawn")
    found: dict[str, Outcome] = {}
    worker = None
    for name in names:
        if worker is None:
            ours, theirs = context.Pipe()
            worker = context.Process(target=_answer, args=(theirs,), daemon=True)
            worker.start()
            theirs.close()
        try:
            ours.send(name)
            reason = "" if ours.poll(HANGS) else f"no answer in {HANGS} s"
            found[name] = ours.recv() if not reason else Outcome(name, wrong=reason)
        except (EOFError, BrokenPipeError):
            worker.join()
            reason = f"its process died with exit code {worker.exitcode}"
            found[name] = Outcome(name, wrong=reason)
        if reason:
            worker.kill()
            worker = None
    if worker is not None:
        ours.send(None)
        worker.join()
    return found


def _answer(names: Connection) -> None:
    """Run the cases that are asked for until None comes."""
    os.environ.setdefault("SATURA_COMPILERS", "0")
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    while (name := names.recv()) is not None:
        try:
            outcome = outcome_of(cases()[name], compiled)
        except Exception:  # whatever is not one of satura's own errors is a fault
            outcome = Outcome(name, wrong=traceback.format_exc())
        names.send(outcome)
