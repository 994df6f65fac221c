"""The disk cache of compiled kernels: shared, private, and never trusted."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NoReturn

import pytest

from satura.backend.jit.cache import Cache, default_cache

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "kernels")


def test_what_was_stored_is_loaded(cache: Cache) -> None:
    cache.store(KEY, b"object code")
    assert cache.load(KEY) == b"object code"
    assert cache.load(OTHER) is None
    assert cache.statistics().entries == 1


def test_the_folder_and_its_entries_are_private(cache: Cache) -> None:
    cache.store(KEY, b"object code")
    assert cache.folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in cache.folder.iterdir())


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used(cache: Cache, mode: int) -> None:
    cache.store(KEY, b"object code")
    cache.folder.chmod(mode)
    assert cache.load(KEY) is None
    cache.store(OTHER, b"object code")
    assert not cache.statistics().usable
    cache.folder.chmod(0o700)
    assert cache.load(OTHER) is None
    assert cache.load(KEY) == b"object code"


def test_a_folder_that_cannot_be_read_is_not_used(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache.store(KEY, b"object code")

    def refuse(*asked: object) -> NoReturn:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(asked[0]))

    # modes do not hold for root
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.R_OK)
    monkeypatch.setattr(Path, "iterdir", refuse)
    monkeypatch.setattr(Path, "exists", refuse)
    assert cache.load(KEY) is None and cache.file(KEY) is None
    cache.store(OTHER, b"object code")
    cache.store_file(OTHER, 1, lambda file: file.write(b"x"))
    assert cache.statistics().entries == cache.clear() == 0
    assert cache.statistics().fault == "it cannot be read"
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "is not used, nothing is kept there: it cannot be read" in warning


def test_what_is_not_a_folder_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    device = Cache(Path("/dev/null"))
    device.store(KEY, b"object code")
    assert device.load(KEY) is None and device.statistics().fault == "it is not a folder"
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "/dev/null is not used, nothing is kept there: it is not a folder;" in warning


def test_what_belongs_to_somebody_else_is_not_trusted(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(KEY, b"object code")
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody_else)
    assert cache.load(KEY) is None
    assert not cache.statistics().usable


def test_a_link_in_place_of_an_entry_is_not_followed(cache: Cache, tmp_path: Path) -> None:
    cache.store(KEY, b"object code")
    entry = next(cache.folder.iterdir())
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert cache.load(KEY) is None


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "grown", "renamed"])
def test_a_damaged_entry_counts_as_absent(cache: Cache, damage: str) -> None:
    cache.store(KEY, bytes(range(256)) * 8)
    entry = next(cache.folder.iterdir())
    data = entry.read_bytes()
    if damage == "renamed":
        entry.rename(entry.with_name(entry.name.replace(KEY, OTHER)))
        assert cache.load(OTHER) is None
        return
    damaged = {
        "truncated": data[:-1],
        "flipped": data[:1000] + bytes([data[1000] ^ 1]) + data[1001:],
        "empty": b"",
        "grown": data + b"x",
    }[damage]
    entry.write_bytes(damaged)
    assert cache.load(KEY) is None
    cache.store(KEY, b"again")
    assert cache.load(KEY) == b"again"


def damage(cache: Cache, key: str) -> Path:
    cache.store(key, b"object code")
    entry = cache.folder / f"{key}.kernel"
    entry.write_bytes(b"damaged")
    return entry


def test_a_damaged_entry_in_a_folder_that_cannot_be_written_counts_as_absent(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = damage(cache, KEY)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert cache.load(KEY) is None
    assert entry.exists()


@pytest.mark.parametrize("kind", ["fifo", "device", "folder"])
def test_an_entry_that_is_not_a_file_counts_as_absent(cache: Cache, kind: str) -> None:
    cache.folder.mkdir(mode=0o700)
    entry = cache.folder / f"{KEY}.kernel"
    if kind == "fifo":
        os.mkfifo(entry, 0o600)
    elif kind == "device":
        entry.symlink_to("/dev/zero")
    else:
        entry.mkdir(mode=0o700)
    assert cache.load(KEY) is None
    cache.store(KEY, b"object code")
    assert cache.load(KEY) == (None if kind == "folder" else b"object code")


def test_each_warning_appears_once(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    for key in (KEY, OTHER):
        damage(cache, key)
        cache.load(key)
    assert [record.getMessage() for record in caplog.records] == [
        f"{cache.folder} has damaged entries; what they held is made anew"
    ]
    caplog.clear()
    for key in (KEY, OTHER):
        (cache.folder / f"{key}.kernel").mkdir()
        cache.store(key, b"object code")
        cache.store(key, b"object code")
    unwritable = Cache(cache.folder / f"{KEY}.kernel" / "file" / "kernels")
    (cache.folder / f"{KEY}.kernel" / "file").touch()
    unwritable.store(KEY, b"object code")
    unwritable.store(OTHER, b"object code")
    assert [record.getMessage() for record in caplog.records] == [
        *(
            f"{cache.folder / key}.kernel is a folder: remove it, as its entry is not kept"
            for key in (KEY, OTHER)
        ),
        f"{unwritable.folder} cannot be written, nothing is kept there: Not a directory",
    ]


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kernels", limit=3500)
    for age, name in enumerate("abc"):
        cache.store(name * 64, bytes(1000))
        os.utime(cache.folder / f"{name * 64}.kernel", (age, age))
    assert cache.load("a" * 64) is not None  # now the most recently used
    cache.store("d" * 64, bytes(1000))
    present = [name for name in "abcd" if cache.load(name * 64) is not None]
    assert present == ["a", "c", "d"]


def test_the_limit_holds_though_entries_are_not_counted_at_every_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = 0
    evict = Cache._evict

    def counted(cache: Cache) -> None:
        nonlocal counts
        counts += 1
        evict(cache)

    monkeypatch.setattr(Cache, "_evict", counted)
    cache = Cache(tmp_path / "kernels", limit=64_000)
    for number in range(200):
        cache.store(f"{number:064}", bytes(500))
    assert 60_000 < cache.statistics().size <= 64_000 * 33 / 32
    assert counts <= 51


def test_clear_removes_entries_and_leftovers(cache: Cache) -> None:
    cache.store(KEY, b"object code")
    (cache.folder / f".{KEY}.kernel.0123abcd.tmp").write_bytes(b"half an ent")
    assert cache.clear() == 1
    assert list(cache.folder.iterdir()) == []


def test_what_killed_writers_left_counts_and_goes(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kernels", limit=3000)
    cache.store(KEY, bytes(1000))
    alone = cache.statistics().size
    left, written = (cache.folder / f".{OTHER}.kernel.{each}.tmp" for each in (1, 2))
    for path in (left, written):
        path.write_bytes(bytes(1000))
    assert cache.statistics().size == alone + 2000
    os.utime(left, (0, 0))
    cache.store(OTHER, bytes(500))
    assert not left.exists() and written.exists()
    assert cache.load(KEY) is not None  # there was room without what was left


def test_the_users_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "here"))
    default_cache().store(KEY, b"object code")
    assert default_cache().statistics().folder == tmp_path / "here"
    assert default_cache().statistics().entries == 1
    assert default_cache().clear() == 1


def test_a_relative_folder_stays_where_it_was_first_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SATURA_CACHE", "relative_to_the_first")
    default_cache().store(KEY, b"object code")
    monkeypatch.chdir("other")
    assert default_cache().load(KEY) == b"object code"
    assert default_cache("program").folder == tmp_path / "relative_to_the_first"


COMPILE = textwrap.dedent(
    """
    import sys
    from satura.backend.jit.machine_code import KernelSource, kernel_address
    text = "def kernel(args, thread, threads):\\n    store_int64(args, 0, {number})\\n"
    for number in range(40):
        print(number, flush=True)
        address = kernel_address(KernelSource("number", text.format(number=number)))
    """
)


@pytest.mark.deep
def test_a_killed_compile_hurts_no_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "kernels"))
    for delay in (0.0, 0.03, 0.11):
        with subprocess.Popen([sys.executable, "-c", COMPILE], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
    script = COMPILE.replace("range(40)", "range(3)") + textwrap.dedent(
        """
        import ctypes
        from satura.backend.jit.machine_code import kernel_function
        word = ctypes.c_int64()
        for number in range(3):
            source = KernelSource("number", text.format(number=number))
            kernel_function(kernel_address(source))(ctypes.addressof(word), 0, 1)
            assert word.value == number
        """
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_a_warm_start_imports_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "kernels"))
    script = (
        COMPILE.replace("range(40)", "range(2)")
        + 'print("satura.backend.jit.lowering" in sys.modules)\n'
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [run.stdout.split()[-1] for run in runs] == ["True", "False"]


def test_damaged_object_code_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "kernels"))
    script = (
        COMPILE.replace("range(40)", "range(1)")
        + 'print("satura.backend.jit.lowering" in sys.modules)\n'
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
    entry = next((tmp_path / "kernels").iterdir())
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 255
    entry.write_bytes(data)
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert run.stdout.split()[-1] == "True"
