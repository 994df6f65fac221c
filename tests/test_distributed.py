"""Calls from elsewhere: from an event loop, and on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import satura
from satura.commands.cli import main
from satura.errors import CallError, FileError, SaturaError
from satura.experiments import Trial, trials
from satura.pipeline.distributed import Client, each_on_workers, run_there
from satura.pipeline.rule_file import load_rules
from satura.pipeline.rule_sets import rule_set
from satura.rewrite.extract.greedy import tree_greedy
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType


def product() -> Program:
    """x · w for a constant w."""
    build = Builder()
    w = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    x = build.input("x", DType.F32, (symbol("n"), 64))
    return build.program({"y": build.matmul(x, build.constant(w))})


def batches(count: int) -> list[dict[str, np.ndarray]]:
    return [{"x": np.full((1 + at % 3, 64), at, np.float32)} for at in range(count)]


def test_an_event_loop_goes_on_during_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = satura.compile(product())
    went_on = threading.Event()
    run = compiled.run

    def slow(given: dict[str, np.ndarray], out: None) -> dict[str, np.ndarray]:
        assert went_on.wait(20), "the event loop waits for the call"
        return run(given, out=out)

    monkeypatch.setattr(compiled, "run", slow)

    async def serve() -> dict[str, np.ndarray]:
        call = asyncio.ensure_future(compiled.run_async(batches(2)[1]))
        await asyncio.sleep(0)
        went_on.set()
        return await call

    assert np.array_equal(asyncio.run(serve())["y"], run(batches(2)[1])["y"])


def test_mapping_without_a_cluster_says_what_to_do() -> None:
    with pytest.raises(CallError, match=r"satura\[distributed\]|client=distributed"):
        next(satura.distributed.map(satura.compile(product()), batches(1)))


@pytest.mark.parametrize(
    ("program", "given", "error", "message"),
    [
        ("none.satura", [{}], FileError, "cannot open 'none.satura': No such file"),
        (Path("/"), [{}], FileError, "cannot open '/': "),
        ("a\0b", [{}], FileError, "cannot open"),
        (5, [{}], CallError, "the path of one that was saved, not int"),
        ("none.satura", 5, CallError, "batches are dicts of arguments, not one int"),
        ("none.satura", {"x": 1}, CallError, "batches are dicts of arguments, not one dict"),
    ],
)
def test_what_cannot_be_mapped_is_one_clear_error(
    program: object, given: object, error: type[SaturaError], message: str
) -> None:
    with pytest.raises(error, match=message):
        next(satura.distributed.map(program, given, object()))  # type: ignore[arg-type]


def test_the_address_of_a_cluster_is_no_client() -> None:
    with pytest.raises(CallError, match=r"client is an object, distributed\.Client\('tcp://x'\)"):
        next(satura.distributed.map(satura.compile(product()), batches(1), "tcp://x"))  # type: ignore[arg-type]


def test_a_file_that_a_worker_does_not_have_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot open .*No such file"):
        run_there((str(tmp_path / "none.satura"), 0, 0, False), {})


@contextmanager
def two_workers(distributed: ModuleType) -> Iterator[Client]:
    """A client of a cluster of two processes, which are gone afterwards."""
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as client:
        yield client


RULE = """
from satura.language import Law, Tensor, binary, rewrites, rule


@rule
def doubled(x: Tensor) -> Law:
    \"""x + x = 2 x\"""
    return rewrites(binary("add", x, x), binary("mul", x, 2.0))
"""


@pytest.mark.deep
def test_trials_on_two_processes_are_those_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    distributed = pytest.importorskip("distributed", reason="needs satura[distributed]")
    build = Builder()
    x = build.input("x", DType.F32, (8, 8))
    added = build.unary("exp", build.binary("add", x, x))
    program = build.program({"y": build.transpose(build.transpose(added, (1, 0)), (1, 0))})
    satura.save(program, tmp_path / "twice.onnx")
    (tmp_path / "mine.py").write_text(RULE)
    mine = RuleSet(*load_rules(tmp_path / "mine.py"), rule_set("default")["compose_transposes"])

    def sweep(client: Client | None) -> list[Trial]:
        found = trials(
            {"file": tmp_path / "twice.onnx", "program": program}, {"none": "none", "mine": mine},
            {"user's": lambda graph: tree_greedy(graph)}, client=client,
        )  # fmt: skip
        return [replace(each, saturation_seconds=0, candidates_seconds=0, extractor_seconds=0)
                for each in found]  # fmt: skip

    here = sweep(None)
    assert here[1].enodes > here[0].enodes
    with two_workers(distributed) as client:
        assert sweep(client) == here
        address = client.scheduler.address  # type: ignore[attr-defined]
        command = ["experiment", str(tmp_path / "twice.onnx"), "--cluster", address, "--json"]
        with pytest.raises(SystemExit, match="0"):
            main(command)
        assert json.loads(capsys.readouterr().out)[0]["dispatches"] == here[0].dispatches
        with pytest.raises(SaturaError, match="workers of the cluster ended"):
            list(each_on_workers(os._exit, [1], client))
        (tmp_path / "mine.py").unlink()
        with pytest.raises(CallError, match="rule 'doubled' cannot be sent to a cluster"):
            sweep(client)


@pytest.mark.deep
def test_two_processes_map_one_program(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs satura[distributed]")
    compiled = satura.compile(product(), threads=1)
    saved = tmp_path / "product.satura"
    compiled.save(saved, [{"n": 1}, {"n": 2}])
    with two_workers(distributed) as client:
        given = batches(24)
        found = list(satura.distributed.map(saved, iter(given), client))
        assert len(found) == len(given)
        for batch, outputs in zip(given, found, strict=True):
            assert np.array_equal(outputs["y"], compiled.run(batch)["y"])
        processes = set(client.run(os.getpid).values())  # type: ignore[attr-defined]
        assert len(processes) == 2 and os.getpid() not in processes
        maps = [Path(f"/proc/{process}/maps") for process in processes]
        if all(each.exists() for each in maps):
            assert all(str(saved) in each.read_text() for each in maps)
        (again,) = satura.distributed.map(compiled, given[1:2], client)
        assert np.array_equal(again["y"], compiled.run(given[1])["y"])
        with pytest.raises(CallError, match="no input 'z'"):
            list(satura.distributed.map(saved, [{"z": given[0]["x"]}], client))
