"""One saved program, or any work, on the workers of a Dask cluster (extra `distributed`).

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
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from satura.rewrite.errors import CallError, SaturaError, brief, file_errors
from satura.rewrite.program.arguments import as_path, check_flags
from satura.rewrite.system.files import open_regular

if TYPE_CHECKING:
    from satura.artifact.opened import Opened
    from satura.pipeline.compiled import Compiled
    from satura.rewrite.types.tensor_type import Array

Batch = Mapping[str, object]
Item = TypeVar("Item")
Made = TypeVar("Made")
_IN_FLIGHT = 2  # items per thread of the cluster: one runs while the next is on its way
_MOST_OPEN = 4  # programs per worker
_LOST = ("KilledWorker", "FutureCancelledError")  # how Dask says that a worker is gone


class Future(Protocol):
    """A result that is computed on a worker."""

    def result(self) -> object:
        """The result; raises what was raised there."""

    def release(self) -> None:
        """Forget the result."""


class Client(Protocol):
    """What is used of `distributed.Client`."""

    def scatter(self, data: list[object], *, hash: bool) -> Sequence[Future]:
        """Send data to workers."""

    def submit(self, function: Callable[..., object], /, *given: object, pure: bool) -> Future:
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
    client, and for what is no program, FileError where there is no such file, and what a batch
    raises.
    """
    from satura.pipeline.compiled import Compiled

    check_flags(trust=trust)
    if not isinstance(batches, Iterable) or isinstance(batches, Mapping):
        raise CallError(f"batches are dicts of arguments, not one {type(batches).__name__}")
    if not isinstance(program, Compiled | str | PathLike):
        raise CallError(
            "a program to map is a compiled one, or the path of one that was saved, not"
            f" {type(program).__name__}"
        )
    chosen = client or _current_client()
    if not isinstance(program, Compiled):
        with file_errors("open", program):
            open_regular(as_path(program)).close()
        yield from _run(as_path(program).resolve(), batches, chosen, trust)
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
    yield from each_on_workers(partial(run_there, which), batches, client)


def each_on_workers(
    work: Callable[[Item], Made], items: Iterable[Item], client: Client
) -> Iterator[Made]:
    """What `work` makes of each of `items`, in their order; items are taken as workers become free.

    Raises what it raises, CallError for what is no client, and SaturaError where a worker ends
    before its work does.
    """
    if not all(hasattr(client, each) for each in ("nthreads", "scatter", "submit")):
        address = brief(client) if isinstance(client, str) else ""
        raise CallError(f"client is an object, distributed.Client({address}), not {brief(client)}")
    running: deque[Future] = deque()
    try:
        for item in items:
            most = _IN_FLIGHT * max(1, sum(client.nthreads().values()))  # workers come and go
            while len(running) >= most:
                yield cast("Made", _take(running.popleft()))
            (there,) = client.scatter([item], hash=False)
            running.append(client.submit(work, there, pure=False))
        while running:
            yield cast("Made", _take(running.popleft()))
    finally:
        for future in running:
            future.release()  # what nobody waits for is not begun


def _take(future: Future) -> object:
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ not in _LOST:
            raise
        raise SaturaError(
            "workers of the cluster ended without a word, perhaps for want of memory"
        ) from None
    finally:
        future.release()


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
        program = _open(*which)
    return program.run(batch)


@lru_cache(maxsize=_MOST_OPEN)
def _open(path: str, changed: int, size: int, trust: bool) -> Opened:
    from satura.artifact.opened import open_artifact
    from satura.pipeline.again import search_again

    with file_errors("open", path):
        return open_artifact(Path(path), trust, search_again)
