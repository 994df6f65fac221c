"""`satura bench`: a model in satura and in other runtimes, in one process, taking turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import onnx

import satura
from satura.backend.target import threads_for
from satura.commands.compiling import Compiling
from satura.commands.failures import results_of
from satura.commands.models import file_or_light, refuse_missing
from satura.commands.terminal import counted, measured, print_json, print_table, progress
from satura.commands.timing import medians
from satura.commands.values import with_values
from satura.light import NAMES
from satura.pipeline.inputs import parse_sizes, random_inputs_of, sizes_text
from satura.pipeline.phases import Progress
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.onnx.files import read_model
from satura.rewrite.program.interpreter import bind_sizes
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.tensor_type import Array

Runner = Callable[[], dict[str, Array]]
Result = dict[str, str | float]


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

    A model that fails is told of and left out, and the exit code is 1.
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
        print_json({"threads": count, "rounds": rounds, "models": results})
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
            *(measured(float(result[f"{runtime}-ms"])) for runtime in runtimes),
            f"{result['ratio']:.2f}",
            f"{result['error']:.1e}",
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
    program = satura.load(model)
    arguments = random_inputs_of(model, program.input_types, sizes, others=True)
    return Case(Path(name).stem, model, arguments, sizes_text(bind_sizes(program, arguments)))


def _measure(case: Case, rounds: int, compiling: Compiling, phase: Progress) -> Result:
    """Milliseconds per runtime, satura's over onnxruntime's, and the largest error."""
    compiled = compiling.compile(case.model, phase)
    threads = compiled.threads
    serialized = case.model.SerializeToString()
    runners: dict[str, Runner] = {
        "satura": lambda: compiled.run(case.arguments),
        "onnxruntime": onnxruntime_runner(serialized, threads, case.arguments),
    }
    if find_spec("openvino") is not None:
        runners["openvino"] = openvino_runner(serialized, threads, case.arguments)
    error = relative_error(runners["satura"](), runners["onnxruntime"]())
    seconds = medians(runners, rounds)
    return {
        "model": case.name,
        "sizes": case.sizes,
        **{f"{runtime}-ms": value * 1e3 for runtime, value in seconds.items()},
        "ratio": seconds["satura"] / seconds["onnxruntime"],
        "error": error,
    }


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
    try:
        session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no class of their own
        raise ModelError(f"onnxruntime refuses the model: {error}") from error
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(names, arguments), strict=True))


def openvino_runner(model: bytes, threads: int, arguments: dict[str, Array]) -> Runner:
    """openvino in f32 on `threads` threads, tuned for the latency of one request."""
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    request = compiled.create_infer_request()
    names = [output.get_any_name() for output in compiled.outputs]

    def run() -> dict[str, Array]:
        request.infer(arguments)
        return {name: request.get_tensor(name).data for name in names}

    return run
