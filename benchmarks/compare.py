"""`python -m benchmarks compare`: every model in satura and in its peers, in one process each.

A model runs in a process of its own, so that the peak of its memory is its own, too. Peers run on
the same threads and in turns; the ratio is that of the best peer's time to satura's in the same
round, the median with its interval.
"""

from __future__ import annotations

import csv
import json
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.models import build, example_inputs, example_sizes
from benchmarks.peers import OPENVINO_HINT, runners, versions
from benchmarks.statistics import geometric_mean, time_in_turns
from satura.backend.target import host_target
from satura.commands.bench import Runner
from satura.commands.terminal import print_line, print_table
from satura.commands.timing import ratio

PEERS = ("onnxruntime", "openvino", "torch")


@dataclass(frozen=True)
class Comparison:
    """One model: medians in ms and seconds to prepare by runtime, and how the best peer compares.

    `ratio` is the best peer's time over satura's, between `low` and `high` with 95 % confidence.
    `peak_mib` is the memory that the process had at most when only satura had run.
    """

    model: str
    threads: int
    medians: dict[str, float]
    prepared: dict[str, float]
    best_peer: str
    ratio: float
    low: float
    high: float
    peak_mib: float


def compare_model(name: str, threads: int, rounds: int) -> Comparison:
    """Measure one model here."""
    model = build(name)
    arguments = example_inputs(model, example_sizes(name))
    ready: dict[str, Runner] = {}
    prepared: dict[str, float] = {}
    peak = 0.0
    for runtime, run, seconds in runners(model, threads, arguments, ("satura", *PEERS)):
        ready[runtime], prepared[runtime] = run, seconds
        peak = peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    samples = time_in_turns(ready, rounds)
    medians = {runtime: float(np.median(each)) * 1e3 for runtime, each in samples.items()}
    best = min((each for each in medians if each != "satura"), key=medians.__getitem__)
    middle, low, high = ratio(samples["satura"], samples[best])
    return Comparison(name, threads, medians, prepared, best, middle, low, high, peak)


def compare(names: Sequence[str], threads: int, rounds: int, csv_file: Path | None) -> None:
    """Measure each model in a process of its own and print all of them."""
    found: list[Comparison] = []
    for name in names:
        command = [sys.executable, "-m", "benchmarks", "compare", name, "--alone"]
        command += ["--threads", str(threads), "--rounds", str(rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print_line(f"{name} failed")
            continue
        found.append(Comparison(**json.loads(done.stdout.splitlines()[-1])))
        print_line(_line(found[-1]))
    if not found:
        return
    _print(found, threads, rounds)
    if csv_file is not None:
        write_csv(found, csv_file)
        plot(found, csv_file.with_suffix(".png"))


def compare_alone(name: str, threads: int, rounds: int) -> None:
    """Measure one model here and print it as JSON."""
    print_line(json.dumps(asdict(compare_model(name, threads, rounds))))


def write_csv(found: Sequence[Comparison], path: Path) -> None:
    """A line per model, with what is needed to repeat the measurement."""
    runtimes = ["satura", *(peer for peer in PEERS if any(peer in c.medians for c in found))]
    stated = {"cpu": host_target().cpu, "python": platform.python_version(), **versions()}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["model", "threads", *(f"{r} ms" for r in runtimes),
             *(f"{r} prepared s" for r in runtimes),
             "best peer", "ratio", "low", "high", "peak MiB", *stated]
        )  # fmt: skip
        for each in found:
            writer.writerow(
                [each.model, each.threads, *(each.medians.get(r, "") for r in runtimes),
                 *(each.prepared.get(r, "") for r in runtimes), each.best_peer, each.ratio,
                 each.low, each.high, each.peak_mib, *stated.values()]
            )  # fmt: skip


def plot(found: Sequence[Comparison], path: Path) -> None:
    """Ratios with their intervals, as an image; nothing where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.3 * len(found)))
    ordered = sorted(found, key=lambda each: each.ratio)
    middles = [each.ratio for each in ordered]
    spread = [
        [max(0.0, each.ratio - each.low) for each in ordered],
        [max(0.0, each.high - each.ratio) for each in ordered],
    ]
    axes.barh([each.model for each in ordered], middles, xerr=spread)
    axes.axvline(1.0, color="black")
    axes.set_xlabel("time of the best peer / time of satura")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _print(found: Sequence[Comparison], threads: int, rounds: int) -> None:
    runtimes = list(dict.fromkeys(runtime for each in found for runtime in each.medians))
    header = ["model", *(f"{runtime} ms" for runtime in runtimes), "ratio", "95 %", "prepared s",
              "peak MiB"]  # fmt: skip
    rows = [
        [
            each.model, *(_cell(each.medians, runtime) for runtime in runtimes),
            f"{each.ratio:.2f}", f"{each.low:.2f} to {each.high:.2f}",
            f"{each.prepared['satura']:.1f}", f"{each.peak_mib:.0f}",
        ]
        for each in found
    ]  # fmt: skip
    print_table(f"medians of {rounds} rounds in turns on {threads} threads", header, rows)
    mean = geometric_mean([each.ratio for each in found])
    print_line(f"geometric mean of the best peer's time over satura's: {mean:.2f}")
    stated = ", ".join(f"{name} {number}" for name, number in versions().items())
    print_line(f"{stated}; openvino's inference precision hint: {OPENVINO_HINT}")
    on = [name[1:] for name in host_target().features.split(",") if name.startswith("+")]
    print_line(f"{host_target().cpu}: {' '.join(on)}")


def _cell(medians: Mapping[str, float], runtime: str) -> str:
    return f"{medians[runtime]:.2f}" if runtime in medians else "-"


def _line(each: Comparison) -> str:
    times = ", ".join(f"{name} {ms:.2f} ms" for name, ms in each.medians.items())
    return f"{each.model}: {times}; {each.ratio:.2f} ({each.low:.2f} to {each.high:.2f})"
