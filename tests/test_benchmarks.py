"""The benchmark commands: their models are models, and their statistics are right."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import satura
from benchmarks.compare import Comparison, write_csv
from benchmarks.models import build
from benchmarks.single_layers import DTYPES, layers
from benchmarks.single_ops import blocks
from benchmarks.sizes import FIXED, drawn, fixed, in_turns
from benchmarks.statistics import geometric_mean, time_in_turns
from satura.commands import timing
from satura.commands.timing import ratio
from tests.tiers import deep_but


@pytest.mark.parametrize("dtype", deep_but(["f32"], DTYPES))
def test_layers_are_models(dtype: str) -> None:
    names = set()
    for name, model, arguments in layers(dtype):
        onnx.checker.check_model(model, full_check=True)
        (source,) = model.graph.input
        (given,) = arguments.values()
        assert (
            onnx.helper.tensor_dtype_to_np_dtype(source.type.tensor_type.elem_type) == given.dtype
        )
        names.add(name)
    assert len(names) > 30


_BLOCKS = {name: (model, arguments) for name, model, arguments in blocks()}
_QUICK = ["softmax, causal", "dynamic quantisation", "detector's head"]


@pytest.mark.parametrize("name", deep_but(_QUICK, _BLOCKS))
def test_blocks_compute_what_onnxruntime_does(name: str) -> None:
    model, arguments = _BLOCKS[name]
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, arguments)[0]
    got = satura.compile(model, threads=1).run(arguments)[model.graph.output[0].name]
    assert got.dtype == expected.dtype and got.shape == expected.shape
    step = 1.0 if got.dtype.kind == "u" else 1e-4 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-3, atol=step)


def test_the_interval_holds_the_ratio() -> None:
    random = np.random.default_rng(0)
    ours, theirs = random.uniform(1, 1.2, 40), random.uniform(2, 2.4, 40)
    middle, low, high = ratio(ours, theirs)
    assert low <= middle <= high and low > 1.8 and high < 2.2
    assert ratio(ours, theirs) == (middle, low, high)
    drift = 2.0 ** random.integers(-3, 3, 40)
    assert ratio(ours * drift, theirs * drift) == (middle, low, high)


def test_candidates_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn begins when the peer's threads sleep: its runs take 0.07 s by this clock."""
    calls: list[str] = []
    monkeypatch.setattr(timing, "perf_counter", lambda: 0.07 * len(calls))

    def runner(name: str) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
        calls.append(name)
        return {}

    found = time_in_turns({"a": lambda: runner("a"), "b": lambda: runner("b")}, 2)
    assert calls == (["a"] * 4 + ["b"] * 4) * 2
    assert {name: len(seconds) for name, seconds in found.items()} == {"a": 2, "b": 2}


def test_geometric_means() -> None:
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert geometric_mean([]) == 1


def test_the_csv_has_a_line_per_model(tmp_path: Path) -> None:
    found = Comparison(
        "m", 1, {"satura": 1.0, "openvino": 2.0}, {"satura": 3.0, "openvino": 0.1}, "openvino",
        2.0, 1.9, 2.1, 100.0,
    )  # fmt: skip
    write_csv([found], tmp_path / "all.csv")
    (row,) = csv.DictReader((tmp_path / "all.csv").read_text().splitlines())
    assert row["model"] == "m" and row["openvino ms"] == "2.0" and row["ratio"] == "2.0"
    assert "onnxruntime ms" not in row and row["cpu"] and row["satura"]


def test_new_sizes_of_known_classes_make_nothing() -> None:
    every = drawn(500)
    assert len({each["seq"] for each in every}) == 500
    assert {each["batch"] for each in every} == {1, 2, 3, 4}
    model = build("tiny_rope_attention")
    turns = in_turns(satura.compile(model, 1, rules="none"), every[:4])
    assert turns.classes and (turns.kernels, turns.dispatches) == (0, 0)
    assert turns.seconds.shape == (2, 2, 4) and turns.seconds.min() > 0
    assert not satura.load(fixed(model, FIXED[0])).symbols
