"""`python -m benchmarks opening`: how soon a model that was compiled before can be called, against
onnxruntime's session of the same model.

A row is a way to start. "open" is `satura.open` of a saved program, against a session that
optimises nothing; "compile again" is `satura.compile` of a file that another process has compiled,
against a session with all optimisations. Seconds are those of a process of its own from its first
line on, imports included; to read the model's file, once in Python, is stated apart. Processes take
turns, and the first of each is not counted. The ratio is the median of ours to theirs in the same
round, with its interval of 95 %.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
import onnx

import satura
from benchmarks.footprint import SIZES
from benchmarks.models import build
from satura.commands.bench import needs_onnxruntime
from satura.commands.terminal import print_json, print_table, progress
from satura.commands.timing import Samples, ratio

_STARTED = "from time import perf_counter, process_time\na, b = perf_counter(), process_time()\n"
_ENDED = "print(process_time() - b, perf_counter() - a)"
_OPEN = "import sys, satura\nopened = satura.open(sys.argv[1], trust=True)\n"
_AGAIN = "import sys, satura\ncompiled = satura.compile(sys.argv[1], int(sys.argv[2]))\n"
_ONNXRUNTIME = """\
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = int(sys.argv[2]), 1
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.LEVEL
opened = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""


@dataclass(frozen=True)
class Clock:
    """Least milliseconds, and the ratio of theirs to ours with its interval."""

    satura: float
    onnxruntime: float
    ratio: tuple[float, float, float]


@dataclass(frozen=True)
class Opening:
    """A model and a way to start, on the CPU and by the clock; `reading` are the milliseconds to
    read its file."""

    model: str
    way: str
    reading: float
    cpu: Clock
    wall: Clock


def opening(names: list[str], threads: int, rounds: int, is_json: bool) -> None:
    """Measure each model; print a table, or JSON."""
    needs_onnxruntime("opening")
    found: list[Opening] = []
    with progress("opening") as phase:
        for at, name in enumerate(names):
            phase(name, at / len(names))
            found += _of_model(name, threads, rounds)
    if is_json:
        print_json({"threads": threads, "rounds": rounds, "models": list(map(asdict, found))})
        return
    header = [
        "model",
        "way",
        "reading ms",
        *(
            f"{clock} {column}"
            for clock in ("CPU", "wall")
            for column in ("satura ms", "onnxruntime ms", "ratio", "low", "high")
        ),
    ]
    rows = []
    for each in found:
        row = [each.model, each.way, f"{each.reading:.0f}"]
        for clock in (each.cpu, each.wall):
            row += [f"{value:.0f}" for value in (clock.satura, clock.onnxruntime)]
            row += [f"{value:.2f}" for value in clock.ratio]
        rows.append(row)
    print_table("from the start to the first call", header, rows)


def _of_model(name: str, threads: int, rounds: int) -> list[Opening]:
    with tempfile.TemporaryDirectory() as folder:
        model, saved = Path(folder) / "model.onnx", Path(folder) / "model.satura"
        onnx.save(build(name), model)
        compiled = satura.compile(model, threads)
        symbols = compiled.source.symbols
        sizes = {symbol: SIZES.get(symbol, 16) for symbol in symbols}
        compiled.save(saved, [sizes] if symbols else [])
        reading = min(_reading(model) for _ in range(3))
        return [
            Opening(name, way, reading, *_compared((script, path), (level, model), threads, rounds))
            for way, script, path, level in (
                ("open", _OPEN, saved, "ORT_DISABLE_ALL"),
                ("compile again", _AGAIN, model, "ORT_ENABLE_ALL"),
            )
        ]


def _reading(path: Path) -> float:
    """Milliseconds to read a file."""
    start = process_time()
    path.read_bytes()
    return (process_time() - start) * 1e3


def _compared(
    our: tuple[str, Path], their: tuple[str, Path], threads: int, rounds: int
) -> tuple[Clock, Clock]:
    """Our script with its file against a session of this level, on the CPU and by the clock."""
    (script, path), (level, model) = our, their
    ours, theirs = [], []
    for _ in range(rounds + 1):
        ours.append(_seconds(script, path, threads))
        theirs.append(_seconds(_ONNXRUNTIME.replace("LEVEL", level), model, threads))
    cpu, wall = (
        Clock(mine.min() * 1e3, other.min() * 1e3, ratio(other, mine))
        for mine, other in zip(_clocks(ours), _clocks(theirs), strict=True)
    )
    return cpu, wall


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
