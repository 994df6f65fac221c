"""`satura bench`: what it times, and what it leaves out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from satura.rewrite.types.tensor_type import Array
from tests.command_files import model as model
from tests.command_files import settles_at_once as settles_at_once
from tests.command_line import cli
from tests.onnx_models import make_model, node


@pytest.mark.deep
def test_bench_compares_with_onnxruntime(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("bench", model, "--rounds", "1", "--threads", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["threads"] == 1
    (row,) = found["models"]
    assert row["model"] == "model"
    assert row["ratio"] == pytest.approx(row["satura-ms"] / row["onnxruntime-ms"])
    assert row["error"] == 0
    assert row["sizes"] == "rows=16"


@pytest.mark.usefixtures("settles_at_once")
@pytest.mark.parametrize("peer", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("is_late", [False, True])
def test_bench_leaves_out_a_runtime_that_refuses_a_model(
    model: Path, peer: str, is_late: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def refusing(*given: object) -> Callable[[], dict[str, Array]]:
        def run() -> dict[str, Array]:
            raise RuntimeError("Exception from core.cpp:105:\nno such op")

        return run if is_late else run()  # type: ignore[return-value]

    import satura.commands.bench as bench

    monkeypatch.setattr(bench, "PEERS", {**dict.fromkeys(bench.PEERS, refusing)})
    monkeypatch.setattr(bench, "find_spec", lambda name: name in (peer, "onnxruntime") or None)
    assert cli("bench", model, "--rounds", "1", "--threads", "1", "--json") == 0
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["models"]
    assert row["satura-ms"] > 0 and row[f"{peer}-ms"] is None
    assert row["ratio"] is None and row["error"] is None
    assert f"satura: warning: model: {peer} is not timed: Exception from core.cpp:105: no" in err
    assert err.count("\n") == len({peer, "onnxruntime"})
    assert cli("bench", model, "--rounds", "1", "--threads", "1") == 0
    assert "-" in capsys.readouterr().out


@pytest.mark.usefixtures("settles_at_once")
@pytest.mark.parametrize("json_too", [False, True])
def test_bench_tells_of_a_model_that_fails_and_times_the_others(
    model: Path, json_too: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = model.with_name("broken.onnx")
    broken.write_bytes(model.read_bytes()[:-20])
    flags = ["--json"] if json_too else []
    assert cli("bench", broken, model, "--rounds", "1", "--threads", "1", *flags) == 1
    out, err = capsys.readouterr()
    assert err.startswith("satura: ") and err.count("\n") == 1 and "broken.onnx" in err
    assert "rows=16" in out and "broken" not in out
    assert json_too or ("sizes (--size)" in out and "on 1 thread " in out)


@pytest.mark.usefixtures("settles_at_once")
@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_bench_times_models_that_run_in_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = make_model([node("NonZero", "x", "i"), node("Neg", "i")], {"x": ["n"]})
    onnx.save(found, path := tmp_path / "model.onnx")
    assert cli("bench", path, "--rounds", "1", "--threads", "1", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["models"]
    assert row["ratio"] > 0 and row["error"] == 0 and row["sizes"] == "n=16"
