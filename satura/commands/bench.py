"""`satura bench`: a model in satura and in other runtimes, in one process, taking turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import isfinite
from pathlib import Path

import onnx

import satura
from satura.backend.target import threads_for
from satura.commands.compiling import Compiling
from satura.commands.failures import complain, results_of
from satura.commands.models import file_or_light, refuse_missing
from satura.commands.terminal import counted, measured, print_json, print_table, progress
from satura.commands.timing import medians
from satura.commands.values import with_values
from satura.light import NAMES
from satura.pipeline.inputs import parse_sizes, random_inputs_of, sizes_text
from satura.pipeline.phases import Progress
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.files import read_model
from satura.rewrite.onnx.inputs import declared_inputs
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.sequence_type import member
from satura.rewrite.types.tensor_type import Array

Runner = Callable[[], dict[str, Array]]
Result = dict[str, str | float | None]


@dataclass(frozen=True)
class Case:
    """A model and what to run it on."""

    name: str
    model: onnx.ModelProto
    arguments: dict[str, Array]
    sizes: str = ""


def bench(
    models: list[str],
    sizes: list[str],
    values: list[str],
    rounds: int,
    compiling: Compiling,
    json: bool,
) -> None:
    """Median milliseconds of each model in each runtime, and satura's time over onnxruntime's.

    A model that fails is told of and left out, and the exit code is 1; a runtime that does not run
    it is told of, too, and has no time.
    """
    needs_onnxruntime("bench")
    count = threads_for(compiling.threads)
    given, chosen, names = parse_sizes(sizes), replace(compiling, threads=count), models or NAMES
    refuse_missing(*models)

    def result(name: str) -> Result:
        (found,) = compare([case_of(name, given, values, len(models) > 1)], rounds, chosen)
        return found

    results = results_of(names, result)
    if json:
        finite = [{key: _finite(value) for key, value in each.items()} for each in results]
        print_json({"threads": count, "rounds": rounds, "models": finite})
    elif results:
        print_results(results, count, rounds)
    if len(results) < len(names):
        sys.exit(1)


def compare(cases: Iterable[Case], rounds: int, compiling: Compiling) -> list[Result]:
    """One result per case; a case is made when its turn comes."""
    results = []
    with progress("bench") as phase:
        for case in cases:
            phase(case.name, 0)
            results.append(_measure(case, rounds, compiling, phase))
    return results


def print_results(results: list[Result], threads: int, rounds: int) -> None:
    """A table with a line per model."""
    runtimes = [key.removesuffix("-ms") for key in results[0] if key.endswith("-ms")]
    measures = [*(f"{runtime} ms" for runtime in runtimes), "time / onnxruntime", "error"]
    has_sizes = any(result["sizes"] for result in results)
    header = ["model", *(["sizes (--size)"] if has_sizes else []), *measures]
    rows = [
        [
            str(result["model"]),
            *([str(result["sizes"])] if has_sizes else []),
            *(_cell(result[f"{runtime}-ms"], measured) for runtime in runtimes),
            _cell(result["ratio"], "{:.2f}".format),
            _cell(result["error"], "{:.1e}".format),
        ]
        for result in results
    ]
    print_table(
        f"median of {rounds} interleaved rounds on {counted(threads, 'thread')}", header, rows
    )


def case_of(
    name: str, sizes: dict[str, int], values: Sequence[str] = (), others: bool = False
) -> Case:
    """A file, or a light model of that name, with random arguments of these sizes.

    `values` are of its inputs, with `others` also of those of other models.
    """
    model = read_model(with_values(file_or_light(name), values, others))
    try:
        types = satura.load(model).input_types
    except OpenExtents:  # it runs in parts, which take what the model declares
        types = declared_inputs(model.graph)
    arguments, full = random_inputs_of(model, types, sizes, others=True)
    return Case(Path(name).stem, model, arguments, sizes_text(full))


def _measure(case: Case, rounds: int, compiling: Compiling, phase: Progress) -> Result:
    """Milliseconds per runtime, satura's over onnxruntime's, and the largest error; None for what a
    runtime that does not run the model leaves unknown."""
    compiled = compiling.compile(case.model, phase)
    runners: dict[str, Runner] = {"satura": lambda: compiled.run(case.arguments)}
    results = {"satura": runners["satura"]()}
    peers = [name for name in PEERS if find_spec(name) is not None]
    serialized = case.model.SerializeToString()
    for name in peers:
        try:
            runner = PEERS[name](serialized, compiled.threads, case.arguments)
            results[name] = runner()
        except Exception as error:  # each runtime has classes of its own
            complain(f"warning: {case.name}: {name} is not timed: {error or type(error).__name__}")
        else:
            runners[name] = runner
    others = results.get("onnxruntime")
    difference = None if others is None else relative_error(results["satura"], others)
    seconds = medians(runners, rounds)
    times = {name: seconds[name] * 1e3 if name in seconds else None for name in ("satura", *peers)}
    return {
        "model": case.name,
        "sizes": case.sizes,
        **{f"{name}-ms": value for name, value in times.items()},
        "ratio": None if others is None else seconds["satura"] / seconds["onnxruntime"],
        "error": difference,
    }


def _cell(value: str | float | None, shown: Callable[[float], str]) -> str:
    return "-" if value is None else shown(float(value))


def _finite(value: str | float | None) -> str | float | None:
    """A value as JSON has it: None for an infinite error."""
    return None if isinstance(value, float) and not isfinite(value) else value


def needs_onnxruntime(what: str) -> None:
    """Raise CallError where onnxruntime, with which `what` compares, is not installed."""
    if find_spec("onnxruntime") is None:
        raise CallError(f"{what} compares with onnxruntime: pip install 'satura[bench]'")


def onnxruntime_runner(
    model: bytes | Path | onnx.ModelProto, threads: int, arguments: dict[str, Array]
) -> Runner:
    """onnxruntime with its own optimisations on `threads` threads."""
    import onnxruntime

    given = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    with _refusals("onnxruntime"):
        session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run() -> dict[str, Array]:
        return _tensors(zip(names, session.run(names, arguments), strict=True))

    return _guarded("onnxruntime", run)


def openvino_runner(model: bytes, threads: int, arguments: dict[str, Array]) -> Runner:
    """openvino in f32 on `threads` threads, tuned for the latency of one request."""
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    with _refusals("openvino"):
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(model), "CPU", settings)
        request = compiled.create_infer_request()
        names = [output.get_any_name() for output in compiled.outputs]

    def run() -> dict[str, Array]:
        request.infer(arguments)
        return {name: request.get_tensor(name).data for name in names}

    return _guarded("openvino", run)


PEERS: dict[str, Callable[[bytes, int, dict[str, Array]], Runner]] = {
    "onnxruntime": onnxruntime_runner,
    "openvino": openvino_runner,
}


@contextmanager
def _refusals(runtime: str) -> Iterator[None]:
    """Raise ModelError for whatever a runtime raises: its errors have classes of its own."""
    try:
        yield
    except Exception as error:
        raise ModelError(f"{runtime} refuses the model: {error}") from error


def _guarded(runtime: str, run: Runner) -> Runner:
    """The runner that raises ModelError for whatever its runtime raises."""

    def guarded() -> dict[str, Array]:
        try:  # a context manager would take a microsecond of each run
            return run()
        except Exception as error:
            raise ModelError(f"{runtime} refuses the inputs: {error}") from error

    return guarded


def _tensors(outputs: Iterable[tuple[str, Array | list[Array] | None]]) -> dict[str, Array]:
    """Outputs as satura names them: each tensor of a sequence is one, an absent optional none."""
    found: dict[str, Array] = {}
    for name, value in outputs:
        if isinstance(value, list):
            found |= {member(name, at): each for at, each in enumerate(value)}
        elif value is not None:
            found[name] = value
    return found
