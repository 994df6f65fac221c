"""Files that are written appear complete or not at all, with the rights that they should have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from satura.rewrite.files import atomic_file


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
