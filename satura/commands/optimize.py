"""`satura optimize`: rewrite a model and write it as ONNX again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto

from satura.backend.target import threads_for
from satura.commands.bench import Runner, onnxruntime_runner
from satura.commands.changed import changed, kept_names, stayed
from satura.commands.compiling import Compiling
from satura.commands.terminal import counted, measured, print_json, print_line, progress
from satura.commands.timing import ratio, sampled
from satura.commands.values import with_values
from satura.pipeline.inputs import random_inputs_of, sizes_text
from satura.pipeline.models import open_inputs
from satura.pipeline.optimized import optimized
from satura.rewrite.onnx.files import read_apart
from satura.rewrite.onnx.write.parts import write_model
from satura.rewrite.onnx.write.save import refuse_other, save
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.program.equal_sizes import warn_of_equal_sizes
from satura.rewrite.types.tensor_type import Array, TensorType


def optimize(
    name: str, model: Path | ModelProto, output: Path, values: list[str], compiling: Compiling,
    text: bool, timing: Timing | None, json: bool,
) -> None:  # fmt: skip
    """Write the cheapest program found for `model`, which is called so, to `output`, and time both
    where asked to; nodes whose result sizes depend on data stay as they are."""
    refuse_other(output)
    source = with_values(model, values)
    with progress(f"optimizing {Path(name).name}") as phase:
        how = compiling.rules, compiling.limits, phase, False, compiling.cost, compiling.dims
        found = optimized(open_inputs(source, compiling.inputs), *how)
    made = found.made
    before = read_apart(source).proto.graph  # `output` may be the same file
    written, _ = write_model(made)
    change = changed(before, written.graph)
    if change.is_wired_alike or timing is None:
        comparison = None
    else:
        comparison = timing.of(source, found.inputs)
    save(made, output)
    warn_of_equal_sizes(made.taken, str(output))
    measures = None if comparison is None else comparison.with_written(output)
    if json:
        kinds = {"parts": len(found.searches), "kept": kept_names(made)}
        shown = {"text": str(made)} if text else {}
        times = None if measures is None else measures.as_json()
        print_json(
            {"file": str(output), **change.as_json(),
             "cheaper": found.is_cheaper and not change.is_wired_alike, **kinds, "timing": times,
             **shown}
        )  # fmt: skip
        return
    if text:
        print_line(str(made))
    ending = "" if found.is_cheaper else "; no rule made the program cheaper"
    print_line(f"{output}: {change}{stayed(made)}{ending}")
    if measures is not None:
        print_line(str(measures))
    elif timing is not None:
        print_line("not timed: both files have the same nodes")


@dataclass(frozen=True)
class Timing:
    """How a model and what was made of it are timed in onnxruntime: in pairs of runs."""

    sizes: Mapping[str, int]
    threads: int | None
    rounds: int = 15

    def of(self, model: Path | ModelProto, inputs: Mapping[str, TensorType]) -> Comparison:
        """The comparison of `model`, whatever becomes of its file, on random inputs.

        Raises CallError for sizes that what was made of it is not for.
        """
        arguments, sizes = random_inputs_of(model, inputs, self.sizes)
        sizes_of(inputs, arguments)
        threads = threads_for(self.threads)
        runner = onnxruntime_runner(model, threads, arguments)
        return Comparison(runner, arguments, sizes, threads, self.rounds)


@dataclass(frozen=True)
class Comparison:
    """A model in onnxruntime, to be compared with what is made of it."""

    before: Runner
    arguments: dict[str, Array]
    sizes: Mapping[str, int]
    threads: int
    rounds: int

    def with_written(self, path: Path) -> Measures:
        """What both take, in turns."""
        after = onnxruntime_runner(path, self.threads, self.arguments)
        with progress("timing"):
            found = sampled({"before": self.before, "after": after}, self.rounds)
        seconds = {name: np.array(each) for name, each in found.items()}
        medians = {name: float(np.median(each)) for name, each in seconds.items()}
        share = ratio(seconds["before"], seconds["after"])
        return Measures(medians, share, self.sizes, self.threads, self.rounds)


@dataclass(frozen=True)
class Measures:
    """Median seconds before and after, and the median share of a run's time over its pair's, with
    the limits of its interval."""

    medians: Mapping[str, float]
    share: tuple[float, float, float]
    sizes: Mapping[str, int]
    threads: int
    rounds: int

    def __str__(self) -> str:
        share, low, high = self.share
        first, second = (measured(each * 1e3) for each in self.medians.values())
        is_settled = not low <= 1 <= high
        timed = f"timed at {sizes_text(self.sizes)} (see --size)\n" if self.sizes else ""
        return (
            f"{timed}in onnxruntime, {counted(self.threads, 'thread')}, {self.rounds} rounds in"
            f" turn: medians {first} ms before, {second} ms after; run against run,"
            f" {share:.2f} of the time"
            f" ({low:.2f} to {high:.2f}{'' if is_settled else ': not settled which is faster'})"
        )

    def as_json(self) -> dict[str, object]:
        """The medians in milliseconds, and the share with its limits."""
        times = {f"{name}-ms": each * 1e3 for name, each in self.medians.items()}
        share = dict(zip(("share", "low", "high"), self.share, strict=True))
        return {"sizes": dict(self.sizes), "threads": self.threads, **times, **share}
