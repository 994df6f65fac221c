"""`python -m benchmarks memory`: what a model takes in memory, from loading it to its calls.

Each model is compiled in a process of its own, and opened in another one from the file in which it
was saved. MiB of the process are resident ones, mapped files and libraries included.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import onnx

from benchmarks.models import MODELS
from benchmarks.models.encoder import Encoder, bert
from satura.commands.terminal import print_line, print_table

SIZES = {"batch": 1, "seq": 128}
DEFAULT = ("light_resnet50", "light_vgg19", "bert_base", "encoder_600")
POINTS = (
    "imported", "loaded", "searched", "compiled", "peak", "called", "afterwards", "opened", "shared"
)  # fmt: skip
_MIB = 1 << 20
_LARGE = Encoder(layers=12, hidden=1024, heads=16, inner=4096, vocabulary=1000)


@dataclass(frozen=True)
class Footprint:
    """MiB at the points of a model's life. `shared` is what others can share of `opened`.

    The bounds are 2.2 times the weights beside the imports at the peak, and 1.15 times the weights
    beside arena and 150 MiB afterwards.
    """

    model: str
    weights: float
    arena: float
    packed: float
    mib: dict[str, float]

    @property
    def most_at_peak(self) -> float:
        return 2.2 * self.weights + self.mib["imported"]

    @property
    def most_afterwards(self) -> float:
        return 1.15 * self.weights + self.arena + 150


def models() -> dict[str, Callable[[], onnx.ModelProto]]:
    """The models by name; `encoder_600` has 600 MB of weights."""
    return {**MODELS, "encoder_600": partial(bert, _LARGE)}


def resident(field: str) -> float:
    """A number of this process in MiB, as Linux states it: VmRSS, VmHWM, RssFile."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024
    raise KeyError(field)


def memory(names: list[str], threads: int) -> None:
    """Measure each model and print a table."""
    found: list[Footprint] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.onnx"
            _in_process("build", name, path, threads)
            compiled = json.loads(_in_process("compile", name, path, threads))
            opened = json.loads(_in_process("open", name, path, threads))
        found.append(Footprint(**{**compiled, "mib": {**compiled["mib"], **opened}}))
    rows = [
        [each.model, *(f"{value:.0f}" for value in (each.weights, each.packed, each.arena)),
         *(f"{each.mib[point]:.0f}" for point in POINTS),
         f"{each.most_at_peak:.0f}", f"{each.most_afterwards:.0f}"]
        for each in found
    ]  # fmt: skip
    titles = ["model", "weights", "packed", "arena", *POINTS, "bound: peak", "bound: afterwards"]
    print_table("memory in MiB", titles, rows)


def _in_process(step: str, name: str, path: Path, threads: int) -> str:
    """The last line that a step prints in a process of its own."""
    command = [sys.executable, "-m", "benchmarks", "memory", name, "--threads", str(threads)]
    command += ["--alone", step, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1] if done.stdout else ""


def memory_alone(step: str, name: str, path: Path, threads: int) -> None:
    """One step on one model, its numbers as JSON."""
    saved = path.with_suffix(".satura")
    if step == "build":
        onnx.save(models()[name](), path)
    elif step == "compile":
        print_line(json.dumps(asdict(footprint(name, path, saved, threads))))
    else:
        print_line(json.dumps(opened_footprint(saved)))


def footprint(name: str, path: Path, saved: Path, threads: int) -> Footprint:
    """Of the model at `path`, which is compiled, called and saved here."""
    # What a compile imports is imported first, to be counted apart: nothing here names it.
    import satura
    from satura.pipeline import compiled as _compiled  # noqa: F401
    from satura.pipeline import stages as _stages  # noqa: F401
    from satura.pipeline.inputs import random_inputs
    from satura.rewrite.onnx import load as _load  # noqa: F401

    found = {"imported": resident("VmRSS")}
    after = {"recall": "loaded", "kernels": "searched"}  # what is done when a phase starts

    def progress(phase: str, done: float) -> None:
        if not done and phase in after:
            found.setdefault(after[phase], resident("VmRSS"))

    compiled = satura.compile(path, threads, progress=progress)
    symbols = compiled.source.symbols
    sizes = {symbol: SIZES.get(symbol, 16) for symbol in symbols}
    compiled.prepare([sizes] if symbols else [])
    found["compiled"] = resident("VmRSS")
    found["peak"] = resident("VmHWM")
    compiled.run(random_inputs(compiled.source, sizes))
    found["called"] = resident("VmRSS")
    gc.collect()
    found["afterwards"] = resident("VmRSS")
    nodes = compiled.source.nodes
    constants = {node.constant for node in nodes if node.op.name == "constant"}
    weights = sum(constant.nbytes for constant in constants) / _MIB
    statistics = compiled.statistics
    arena, packed = statistics["transient-memory-size"], statistics["constant-size"]
    compiled.save(saved, [sizes] if symbols else [])
    return Footprint(name, weights, arena / _MIB, packed / _MIB, found)


def opened_footprint(saved: Path) -> dict[str, float]:
    """Of a saved model that is opened and called here."""
    import satura
    from satura.pipeline.inputs import random_arguments

    opened = satura.open(saved, trust=True)
    types = opened.inputs.values()
    symbols = frozenset[str]().union(*(type_.symbols for type_ in types))
    opened.run(random_arguments(opened.inputs, {name: SIZES.get(name, 16) for name in symbols}))
    return {"opened": resident("VmRSS"), "shared": resident("RssFile")}
