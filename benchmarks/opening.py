"""`python -m benchmarks opening`: a saved model against onnxruntime's session of the same model.

Seconds are those of a process of its own from its first line on: imports, and opening the file or
making the session, which optimises nothing. Processes take turns, and the first of each is not
counted. The ratio is that of the medians, ours to theirs, with its interval of 95 %.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx

import satura
from benchmarks.footprint import SIZES
from benchmarks.models import build
from benchmarks.statistics import Samples, ratio
from satura.commands.bench import needs_onnxruntime
from satura.commands.terminal import print_json, print_table, progress

_STARTED = "from time import perf_counter, process_time\na, b = perf_counter(), process_time()\n"
_ENDED = "print(process_time() - b, perf_counter() - a)"
_SATURA = "import sys, satura\nopened = satura.open(sys.argv[1], trust=True)\n"
_ONNXRUNTIME = """\
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = int(sys.argv[2]), 1
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
opened = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""


@dataclass(frozen=True)
class Opening:
    """Least milliseconds of a model, on the CPU and by the clock, and the ratio of each."""

    model: str
    satura_cpu: float
    onnxruntime_cpu: float
    cpu_ratio: tuple[float, float, float]
    satura_wall: float
    onnxruntime_wall: float
    wall_ratio: tuple[float, float, float]


def opening(names: list[str], threads: int, rounds: int, is_json: bool) -> None:
    """Measure each model; print a table, or JSON."""
    needs_onnxruntime("opening")
    found: list[Opening] = []
    with progress("opening") as phase:
        for at, name in enumerate(names):
            phase(name, at / len(names))
            found.append(_of_model(name, threads, rounds))
    if is_json:
        print_json({"threads": threads, "rounds": rounds, "models": list(map(asdict, found))})
        return
    header = [
        "model",
        *(
            f"{clock} {column}"
            for clock in ("CPU", "wall")
            for column in ("satura ms", "onnxruntime ms", "ratio", "low", "high")
        ),
    ]
    rows = [
        [each.model,
         *(f"{value:.0f}" for value in (each.satura_cpu, each.onnxruntime_cpu)),
         *(f"{value:.2f}" for value in each.cpu_ratio),
         *(f"{value:.0f}" for value in (each.satura_wall, each.onnxruntime_wall)),
         *(f"{value:.2f}" for value in each.wall_ratio)]
        for each in found
    ]  # fmt: skip
    print_table("imports and opening", header, rows)


def _of_model(name: str, threads: int, rounds: int) -> Opening:
    with tempfile.TemporaryDirectory() as folder:
        model, saved = Path(folder) / "model.onnx", Path(folder) / "model.satura"
        onnx.save(build(name), model)
        compiled = satura.compile(model, threads)
        symbols = compiled.source.symbols
        sizes = {symbol: SIZES.get(symbol, 16) for symbol in symbols}
        compiled.save(saved, [sizes] if symbols else [])
        ours, theirs = [], []
        for _ in range(rounds + 1):
            ours.append(_seconds(_SATURA, saved, threads))
            theirs.append(_seconds(_ONNXRUNTIME, model, threads))
    (our_cpu, our_wall), (their_cpu, their_wall) = _clocks(ours), _clocks(theirs)
    return Opening(
        name,
        our_cpu.min() * 1e3, their_cpu.min() * 1e3, ratio(their_cpu, our_cpu),
        our_wall.min() * 1e3, their_wall.min() * 1e3, ratio(their_wall, our_wall),
    )  # fmt: skip


def _clocks(seconds: list[list[float]]) -> tuple[Samples, Samples]:
    """On the CPU and by the clock, without the first: it writes byte code, and reads from disk."""
    cpu, wall = np.array(seconds[1:]).T
    return cpu, wall


def _seconds(script: str, path: Path, threads: int) -> list[float]:
    """What a process says that the script took."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", _STARTED + script + _ENDED, str(path), str(threads)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(each) for each in done.stdout.split()]
