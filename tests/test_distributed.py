"""Calls from elsewhere: from an event loop, and on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import satura
import satura.distributed
from satura.errors import CallError
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


@pytest.mark.deep
def test_two_processes_map_one_program(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs satura[distributed]")
    compiled = satura.compile(product(), threads=1)
    saved = tmp_path / "product.satura"
    compiled.save(saved, [{"n": 1}, {"n": 2}])
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        given = batches(24)
        found = list(satura.distributed.map(saved, iter(given), client))
        assert len(found) == len(given)
        for batch, outputs in zip(given, found, strict=True):
            assert np.array_equal(outputs["y"], compiled.run(batch)["y"])
        processes = set(client.run(os.getpid).values())
        assert len(processes) == 2 and os.getpid() not in processes
        maps = [Path(f"/proc/{process}/maps") for process in processes]
        if all(each.exists() for each in maps):
            assert all(str(saved) in each.read_text() for each in maps)
        (again,) = satura.distributed.map(compiled, given[1:2], client)
        assert np.array_equal(again["y"], compiled.run(given[1])["y"])
        with pytest.raises(CallError, match="no input 'z'"):
            list(satura.distributed.map(saved, [{"z": given[0]["x"]}], client))
