"""Files that are written appear complete or not at all, with the rights that they should have."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from satura.rewrite.system import files
from satura.rewrite.system.files import atomic_file, open_regular, output_file


@pytest.fixture(params=[0o022, 0o002], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("mode", [0o666, 0o600], ids=oct)
def test_a_file_appears_when_it_is_complete(tmp_path: Path, umask: int, mode: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_file(path, mode) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode & ~umask
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("before", "mode", "after"),
    [
        (0o600, 0o666, 0o600),
        (0o400, 0o666, 0o400),
        (0o666, 0o666, 0o666),
        (0o755, 0o666, 0o755),
        (0o600, 0o644, 0o600),
        (0o664, 0o644, 0o644),
    ],
)
def test_a_file_that_is_replaced_keeps_its_permissions(
    tmp_path: Path, before: int, mode: int, after: int
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before")
    path.chmod(before)
    with output_file(path, mode) as file:
        file.write(b"after")
        (unfinished,) = tmp_path.glob(".x.*")
        assert unfinished.stat().st_mode & 0o777 == after
    assert path.read_bytes() == b"after" and path.stat().st_mode & 0o777 == after


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["disk", "key"])
def test_what_is_not_completed_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    def write(path: Path) -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise error

    old = tmp_path / "old"
    old.write_bytes(b"old")
    for path in (old, tmp_path / "new"):
        with pytest.raises(type(error)):
            write(path)
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_bytes() == b"old"


def write(path: Path, content: bytes) -> None:
    with output_file(path) as file:
        file.write(content)


@pytest.mark.parametrize("there", [True, False], ids=["file", "nothing yet"])
def test_links_are_followed(tmp_path: Path, there: bool) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    if there:
        target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(Path("folder") / "target")
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list((tmp_path / "folder").iterdir()) == [target]


@pytest.mark.parametrize("through_link", [False, True], ids=["itself", "by a link"])
def test_a_fifo_is_written_into(tmp_path: Path, through_link: bool) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
    reader.start()
    write(link if through_link else fifo, b"new")
    reader.join(10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_fifo_that_nobody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_TIMES_TO_WAIT", 2)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="a FIFO that nobody reads"):
        write(tmp_path / "fifo", b"new")


def test_a_device_is_written_into(tmp_path: Path) -> None:
    """A pseudo-terminal, which any user can make."""
    controller, terminal = os.openpty()
    link = tmp_path / "link"
    link.symlink_to(os.ttyname(terminal))
    write(link, b"new")
    assert os.read(controller, 3) == b"new"
    assert stat.S_ISCHR(link.stat().st_mode)
    os.close(controller)
    os.close(terminal)


@pytest.mark.parametrize("name", ["missing/file", "folder", "circle", "a\0b", "x" * 300])
def test_errors_name_the_target(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError) as caught:
        write(tmp_path / name, b"new")
    assert caught.value.filename == str(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path, tmp_path / "none"):
        with pytest.raises(OSError) as caught:
            open_regular(path)
        assert caught.value.filename == str(path)
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"content"
