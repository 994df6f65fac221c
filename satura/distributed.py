"""One saved program on the workers of a Dask cluster (extra `distributed`).

    client = distributed.Client(n_workers=2)
    for outputs in satura.distributed.map(compiled, batches, client):
        ...

Workers open the program from its file, once per process: its weights are mapped, so that those on
one machine have them in memory once.
"""

from __future__ import annotations

import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from satura.rewrite.errors import CallError

if TYPE_CHECKING:
    from satura.artifact.opened import Opened
    from satura.pipeline.compiled import Compiled
    from satura.rewrite.types.tensor_type import Array

Batch = Mapping[str, object]
_IN_FLIGHT = 2  # batches per thread of the cluster: one runs while the next is on its way
_MOST_OPEN = 4  # programs per worker


class Future(Protocol):
    """A result that is computed on a worker."""

    def result(self) -> object:
        """The result; raises what was raised there."""

    def release(self) -> None:
        """Forget the result."""


class Client(Protocol):
    """What is used of `distributed.Client`."""

    def scatter(self, data: list[Batch], *, hash: bool) -> Sequence[Future]:
        """Send data to workers."""

    def submit(self, function: Callable[..., object], *given: object, pure: bool) -> Future:
        """Call a function on a worker."""

    def nthreads(self) -> Mapping[str, int]:
        """Threads by worker."""


def map(
    program: Compiled | str | Path,
    batches: Iterable[Batch],
    client: Client | None = None,
    trust: bool = False,
) -> Iterator[dict[str, Array]]:
    """Outputs by name for each of `batches`, which are arguments by name, in their order.

    `program` is compiled, or the file in which one was saved, at a path that every worker has. One
    that is compiled is saved to a temporary file for as long as this runs: workers must be on this
    machine. `client` is a `distributed.Client`, None the current one, and `trust` as for
    `satura.open`. Batches are taken as workers become free. Raises CallError where there is no
    client, and what a batch raises.
    """
    chosen = client or _current_client()
    if isinstance(program, str | Path):
        yield from _run(Path(program).resolve(), batches, chosen, trust)
        return
    with tempfile.TemporaryDirectory(prefix="satura-") as folder:
        path = Path(folder) / "program.satura"
        program.save(path)
        yield from _run(path, batches, chosen, trust)


def _run(
    path: Path, batches: Iterable[Batch], client: Client, trust: bool
) -> Iterator[dict[str, Array]]:
    status = path.stat()
    which = (str(path), status.st_mtime_ns, status.st_size, trust)
    running: deque[Future] = deque()
    for batch in batches:
        most = _IN_FLIGHT * max(1, sum(client.nthreads().values()))  # workers come and go
        while len(running) >= most:
            yield _taken(running.popleft())
        (sent,) = client.scatter([batch], hash=False)
        running.append(client.submit(run_there, which, sent, pure=False))
    while running:
        yield _taken(running.popleft())


def _taken(future: Future) -> dict[str, Array]:
    result: dict[str, Array] = future.result()  # type: ignore[assignment]
    future.release()
    return result


def _current_client() -> Client:
    try:
        from distributed import get_client
    except ImportError:
        raise CallError("map needs Dask: pip install 'satura[distributed]'") from None
    try:
        client: Client = get_client()
    except ValueError:
        raise CallError("there is no client: give one, client=distributed.Client()") from None
    return client


_opening = threading.Lock()  # the threads of a worker open a program once


def run_there(which: tuple[str, int, int, bool], batch: Batch) -> dict[str, Array]:
    """Outputs of a batch, on a worker."""
    with _opening:
        program = _opened(*which)
    return program.run(batch)


@lru_cache(maxsize=_MOST_OPEN)
def _opened(path: str, changed: int, size: int, trust: bool) -> Opened:
    from satura.artifact.opened import open_artifact

    return open_artifact(Path(path), trust)
