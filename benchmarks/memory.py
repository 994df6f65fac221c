"""`python -m benchmarks memory`: what a model takes in memory, from loading it to its calls.

Each model is compiled in a process of its own, with nothing in the cache, and opened in another one
from the file in which it was saved. MiB of the process are resident ones, mapped files and
libraries included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import onnx

from benchmarks.models import MODELS
from benchmarks.models.encoder import Encoder, bert
from satura.commands.terminal import print_table

DEFAULT = ("light_resnet50", "light_vgg19", "bert_base", "encoder_600")
POINTS = (
    "weights", "packed", "arena", "imported", "loaded", "searched", "compiled", "peak", "called",
    "afterwards", "opened", "shared",
)  # fmt: skip
_LARGE = Encoder(layers=12, hidden=1024, heads=16, inner=4096, vocabulary=1000)


@dataclass(frozen=True)
class Footprint:
    """MiB at the points of a model's life. `shared` is what others can share of `opened`.

    The bounds are 2.2 times the weights beside the imports at the peak, and 1.15 times the weights
    beside arena and 150 MiB afterwards.
    """

    model: str
    mib: dict[str, float]

    @property
    def most_at_peak(self) -> float:
        return 2.2 * self.mib["weights"] + self.mib["imported"]

    @property
    def most_afterwards(self) -> float:
        return 1.15 * self.mib["weights"] + self.mib["arena"] + 150


def models() -> dict[str, Callable[[], onnx.ModelProto]]:
    """The models by name; `encoder_600` has 600 MB of weights."""
    return {**MODELS, "encoder_600": partial(bert, _LARGE)}


def memory(names: list[str], threads: int) -> None:
    """Measure each model and print a table."""
    found: list[Footprint] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.onnx"
            onnx.save(models()[name](), path)
            compiled = _in_process("compile", path, threads)
            opened = _in_process("open", path, threads)
        found.append(Footprint(name, {**compiled, **opened}))
    rows = [
        [each.model,
         *(f"{each.mib[point]:.0f}" for point in POINTS),
         f"{each.most_at_peak:.0f}", f"{each.most_afterwards:.0f}"]
        for each in found
    ]  # fmt: skip
    titles = ["model", *POINTS, "bound: peak", "bound: afterwards"]
    print_table("memory in MiB", titles, rows)


def _in_process(step: str, path: Path, threads: int) -> dict[str, float]:
    """What a process of its own states of a step."""
    command = [sys.executable, "-m", "benchmarks.footprint", step, str(path), str(threads)]
    environment = {**os.environ, "SATURA_CACHE": str(path.parent / "cache")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
