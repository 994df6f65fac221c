"""`python -m benchmarks saved`: models and what `satura optimize` makes of them, in onnxruntime.

Nodes are counted in the file and after onnxruntime's own optimisations. Milliseconds are the CPU's
on one thread, the least of the rounds, in which both take turns; a ratio above 1 says that the
saved model is faster.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import onnx

from benchmarks.models import build, example_inputs, example_sizes
from satura.commands.bench import Runner, needs_onnxruntime, onnxruntime_runner
from satura.commands.terminal import print_json, print_table, progress
from satura.pipeline.written import rewrite_for_file
from satura.rewrite.onnx.write.save import save

DEFAULT = (
    "light_bvlc_alexnet", "light_densenet121", "light_inception_v1", "light_inception_v2",
    "light_resnet50", "light_shufflenet", "light_squeezenet", "light_vgg19", "light_zfnet512",
    "bert_base", "minilm", "rope_attention", "swin", "segformer",
)  # fmt: skip


@dataclass(frozen=True)
class Saved:
    """A model as it was and as it is saved: its nodes, those that onnxruntime makes of them, and
    milliseconds."""

    model: str
    nodes: tuple[int, int]
    nodes_there: tuple[int, int]
    milliseconds: tuple[float, float]

    @property
    def ratio(self) -> float:
        """The original's time in the saved one's."""
        return self.milliseconds[0] / self.milliseconds[1]


def saved(names: list[str], rounds: int, is_json: bool) -> None:
    """Measure each model; print a table, or JSON."""
    needs_onnxruntime("saved")
    found = []
    with progress("saving") as phase:
        for at, name in enumerate(names):
            phase(name, at / len(names))
            found.append(_of_model(name, rounds))
    if is_json:
        print_json([{**asdict(each), "ratio": each.ratio} for each in found])
        return
    header = ["model", "nodes", "saved", "there", "saved", "ms", "saved", "original / saved"]
    rows = [
        [
            each.model, *map(str, (*each.nodes, *each.nodes_there)),
            *(f"{x:.2f}" for x in (*each.milliseconds, each.ratio)),
        ]
        for each in found
    ]  # fmt: skip
    print_table(f"saved models in onnxruntime, 1 thread, least of {rounds}", header, rows)


def _of_model(name: str, rounds: int) -> Saved:
    model = build(name)
    arguments = example_inputs(model, example_sizes(name))
    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder) / "original.onnx", Path(folder) / "saved.onnx")
        onnx.save(model, paths[0])
        save(rewrite_for_file(model, "default").schedule.program, paths[1])
        runners = [onnxruntime_runner(path, 1, arguments) for path in paths]
        milliseconds = _least(runners, rounds)
        first, second = (_count(path) for path in paths)
        there = _count_there(paths[0]), _count_there(paths[1])
    return Saved(name, (first, second), there, milliseconds)


def _least(runners: list[Runner], rounds: int) -> tuple[float, float]:
    """The least CPU milliseconds of both, which take turns."""
    least = [float("inf")] * 2
    for turn in range(rounds):
        order = (0, 1) if turn % 2 else (1, 0)
        for at in order:
            started = process_time()
            runners[at]()
            least[at] = min(least[at], (process_time() - started) * 1e3)
    return least[0], least[1]


def _count(path: Path) -> int:
    """The nodes of a file, without constants."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    return sum(each.op_type != "Constant" for each in nodes)


def _count_there(path: Path) -> int:
    """The nodes that onnxruntime makes of a file on this machine."""
    import onnxruntime

    optimised = path.with_suffix(".optimised.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns that the file is of this machine only
    options.optimized_model_filepath = str(optimised)
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_file_name", f"{optimised.stem}.bin"
    )
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return _count(optimised)
