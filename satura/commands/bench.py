"""`satura bench`: a model in satura and in other runtimes, in one process, taking turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import onnx

import satura
from satura.backend.target import threads_for
from satura.commands.compiling import Compiling
from satura.commands.models import existing_file
from satura.commands.terminal import print_json, print_table, progress
from satura.commands.timing import medians
from satura.commands.values import with_values
from satura.light import NAMES, light
from satura.pipeline.inputs import parse_sizes, random_inputs_of
from satura.pipeline.phases import Progress
from satura.rewrite.errors import CallError
from satura.rewrite.onnx.files import read_model
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


def bench(
    models: list[str],
    sizes: list[str],
    values: list[str],
    rounds: int,
    compiling: Compiling,
    json: bool,
) -> None:
    """Median milliseconds of each model in each runtime, and satura's time over onnxruntime's."""
    needs_onnxruntime("bench")
    count = threads_for(compiling.threads)
    given = parse_sizes(sizes)

    def cases() -> Iterator[Case]:
        for name in models or NAMES:
            yield case_of(name, given, values, len(models) > 1)

    results = compare(cases(), rounds, replace(compiling, threads=count))
    if json:
        print_json({"threads": count, "rounds": rounds, "models": results})
    else:
        print_results(results, count, rounds)


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
    header = ["model", *(f"{runtime} ms" for runtime in runtimes), "time / onnxruntime", "error"]
    rows = [
        [
            str(result["model"]),
            *(f"{result[f'{runtime}-ms']:.2f}" for runtime in runtimes),
            f"{result['ratio']:.2f}",
            f"{result['error']:.1e}",
        ]
        for result in results
    ]
    print_table(f"median of {rounds} interleaved rounds on {threads} threads", header, rows)


def case_of(
    name: str, sizes: dict[str, int], values: Sequence[str] = (), others: bool = False
) -> Case:
    """A file, or a light model of that name, with random arguments of these sizes.

    `values` are of its inputs, with `others` also of those of other models.
    """
    model = light(name) if name in NAMES else onnx.load(existing_file(name))
    model = read_model(with_values(model, values, others))
    program = satura.load(model)
    return Case(Path(name).stem, model, random_inputs_of(model, program, sizes, others=True))


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
        **{f"{runtime}-ms": value * 1e3 for runtime, value in seconds.items()},
        "ratio": seconds["satura"] / seconds["onnxruntime"],
        "error": error,
    }


def needs_onnxruntime(what: str) -> None:
    """Raises CallError where onnxruntime, with which `what` compares, is not installed."""
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
    session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
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
