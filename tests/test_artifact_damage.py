"""A saved program that is not as it was written is refused before anything of it runs."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.artifact import opened, ready
from satura.artifact.container import _HEAD, _START, VERSION, Container
from satura.artifact.sums import SUMS, WORDS, by_kernel, by_numpy
from satura.backend.jit.machine_code import objects_of
from satura.pipeline.inputs import random_inputs
from satura.rewrite.errors import ArtifactError, CallError
from tests.saved_dense import dense
from tests.saved_dense import saved as saved
from tests.tiers import seeds


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", [[0, 1 << 40]]),
        ("outputs", [99] * 4),
        ("computed", 1 << 61),
        ("facts", [["3", "==", True]]),
        ("calls", [["f", "os system", []]]),
        ("dims", ["n"]),
    ],
)
def test_a_class_of_sizes_that_is_not_as_it_was_written_is_refused(
    key: str, value: object, tmp_path: Path
) -> None:  # fmt: skip
    program, path = dense("n"), tmp_path / "sized.satura"
    satura.compile(program, threads=1, rules="none").save(path, {"n": 2})
    change = rewritten(lambda header: header["programs"][0]["classes"][0].update({key: value}))  # type: ignore[index]
    path.write_bytes(change(path.read_bytes()))
    program_there = satura.open(path)
    with pytest.raises(ArtifactError, match=r"sized\.satura is damaged: .*; save it again"):
        program_there.run(random_inputs(program, {"n": 7}))


def no_code(kernels: object) -> list[int]:
    raise AssertionError("code was loaded")


def rewritten(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    """A file whose header is changed, and whose digest is right."""

    def changed(data: bytes) -> bytes:
        magic, version, length, size = _HEAD.unpack(data[: _HEAD.size])
        header = json.loads(data[_START : _START + length])
        change(header)
        text = json.dumps(header, separators=(",", ":")).encode().ljust(length)
        assert len(text) <= length
        head = _HEAD.pack(magic, version, length, size)
        return head + hashlib.sha256(head + text).digest() + text + data[_START + length :]

    return changed


def routine_with(key: str, value: object) -> Callable[[bytes], bytes]:
    return rewritten(lambda header: header["programs"][0]["routines"][0].update({key: value}))  # type: ignore[index]


def kernel_with(entry: int | None) -> Callable[[bytes], bytes]:
    """A file whose first kernel starts elsewhere."""

    def change(header: dict[str, object]) -> None:
        header["kernels"][0][2] = entry  # type: ignore[index]

    return rewritten(change)


def launched_again() -> Callable[[bytes], bytes]:
    """A file with a launch that reads the arguments of the one before."""

    def change(header: dict[str, object]) -> None:
        launches = header["programs"][0]["routines"][0]["launches"]  # type: ignore[index]
        launches.append(launches[-1])

    return rewritten(change)


def output_with(region: int, dtype: str) -> Callable[[bytes], bytes]:
    """A file whose output y is in another region, or of another element type."""

    def change(header: dict[str, object]) -> None:
        outputs = header["programs"][0]["routines"][0]["outputs"]  # type: ignore[index]
        outputs["y"] = [region, [dtype, outputs["y"][1][1]]]

    return rewritten(change)


def decided_by_none() -> Callable[[bytes], bytes]:
    """A file whose program is for the value of an input that there is not."""

    def change(header: dict[str, object]) -> None:
        header["deciding"] = ["z"]
        header["programs"][0]["values"] = [["z", "<f4", [0], ""]]  # type: ignore[index]

    return rewritten(change)


def decided_by_more() -> Callable[[bytes], bytes]:
    """A file whose program is for all values of an input that decides."""

    def change(header: dict[str, object]) -> None:
        header["deciding"] = ["x"]

    return rewritten(change)


def large_output(extent: int) -> Callable[[bytes], bytes]:
    """A file whose output y is longer."""

    def change(header: dict[str, object]) -> None:
        header["programs"][0]["routines"][0]["outputs"]["y"][1][1][1] = extent  # type: ignore[index]

    return rewritten(change)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda data: b"", "is not a program"),
    "another file": (lambda data: b"\x08\x07" + data, "is not a program"),
    "its first bytes": (lambda data: data[:40], "ends in its first bytes"),
    "its first half": (lambda data: data[: len(data) // 2], r"has \d+ bytes, not \d+"),
    "more": (lambda data: data + b"\0", r"has \d+ bytes, not \d+"),
    "a newer version": (
        lambda data: data[:16] + bytes([VERSION + 1]) + data[17:],
        r"version \d+ of the format",
    ),
    "another digest": (lambda data: flipped(data, _HEAD.size + 3), "its header is not"),
    "another header": (lambda data: flipped(data, _START + 9), "its header is not"),
    "no sections": (rewritten(lambda header: header.pop("sections")), "header is not"),
    "huge sizes": (rewritten(lambda h: h.update(sections=[[1 << 70, ""]])), "header is not"),
    "a size below 0": (rewritten(lambda h: h.update(sections=[[-1, ""]])), "header is not"),
    "no sections but a head": (rewritten(lambda h: h.update(sections=[])), "table of sections"),
    "too many threads": (rewritten(lambda h: h.update(threads=1 << 40)), "out of range"),
    "a wrong type": (rewritten(lambda h: h.update(inputs=[1])), "should be a dict"),
    "a kernel that is not there": (routine_with("launches", [[99, 0, 1]]), "leaves its tables"),
    "a kernel that waits for others": (routine_with("launches", [[0, 0, 1]]), "leaves its tables"),
    "too many results": (routine_with("computed", 1 << 61), "leaves its tables"),
    "an arena beyond memory": (routine_with("arena", 1 << 61), "more memory than"),
    "an entry behind the code": (kernel_with(1 << 30), "no code where it starts"),
    "machine code for LLVM": (kernel_with(None), "no code where it starts"),
    "arguments again": (launched_again(), "leaves its tables"),
    "arguments outside": (routine_with("launches", [[0, 1 << 40, 1]]), "leaves its tables"),
    "too few regions": (routine_with("computed", 0), "leaves its tables"),
    "a section that is not there": (routine_with("numbers", 1 << 20), "table of sections"),
    "an output outside": (output_with(99, "f32"), "leaves its tables"),
    "an output of another type": (output_with(4, "f64"), "other outputs"),
    "no schedule": (rewritten(lambda h: h["programs"][0].pop("schedule")), "schedule"),  # type: ignore[index]
    "no classes": (rewritten(lambda h: h["programs"][0].pop("classes")), "classes"),  # type: ignore[index]
    "values of no input": (decided_by_none(), "values of what is no input"),
    "no values": (decided_by_more(), "for values of other inputs than it says"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_error_and_nothing_is_executed(
    damage: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "load_all", no_code)
    change, message = DAMAGE[damage]
    saved.write_bytes(change(saved.read_bytes()))
    with pytest.raises(ArtifactError, match=message) as caught:
        satura.open(saved)
    assert str(saved) in str(caught.value)


@pytest.mark.parametrize("rows", [0, 1, 5, 2_051])
def test_the_kernel_sums_what_numpy_sums(rows: int) -> None:
    words = np.random.default_rng(rows).integers(1 << 64, size=(rows, WORDS), dtype=np.uint64)
    (*_, kernel) = objects_of([SUMS])
    for found, expected in zip(by_kernel(kernel)(words), by_numpy(words), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, axis in zip(by_numpy(words), (1, 0), strict=True):
        np.testing.assert_array_equal(found, words.sum(axis=axis))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (large_output(1 << 44), r"output 'y' of type f32\[3, 17592186044416\] takes .*memory has"),
        (large_output(1 << 61), "output 'y' of type .* is too large for an array"),
        (routine_with("arena", 1 << 45), "at a time take 35,184,372,0.*memory has"),
        (routine_with("scratch", 1 << 45), "at a time take 35,184,372,0.*memory has"),
    ],
)
def test_what_memory_cannot_hold_is_refused_by_calls(
    change: Callable[[bytes], bytes], message: str, saved: Path
) -> None:
    """Not when the file is opened: it may be of a larger machine."""
    saved.write_bytes(change(saved.read_bytes()))
    opened = satura.open(saved)
    with pytest.raises(CallError, match=message):
        opened.run(random_inputs(dense()))


def test_each_section_is_checked_before_it_is_used(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "load_all", no_code)
    data = saved.read_bytes()
    whole = Container(saved)
    base = whole._bytes.ctypes.data
    (program,) = whole.header["programs"]
    used = {row[-1] for row in (*whole.header["kernels"], *program["constants"])}
    used |= {program["routines"][0][key] for key in ("numbers", "regions")}
    assert len(used) > 5
    for number in used:
        content = whole.section(number)
        at = int(content.ctypes.data) - base + content.size * number // (len(used) + 20)
        changed = saved.with_name("changed")
        changed.write_bytes(flipped(data, at))
        with pytest.raises(ArtifactError, match=f"section {number} is not as it was written"):
            satura.open(changed)


def test_code_of_others_is_not_run_without_trust(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = random_inputs(dense())
    expected = satura.open(saved).run(arguments)
    saved.chmod(0o666)
    assert satura.open(saved, trust=True).run(arguments).keys() == expected.keys()
    monkeypatch.setattr(ready, "load_all", no_code)
    with pytest.warns(UserWarning, match=r"somebody else .*compiled again"):
        again = satura.open(saved)
    for name, array in again.run(arguments).items():
        np.testing.assert_array_equal(array, expected[name])
    saved.chmod(0o600)
    monkeypatch.setattr(opened, "running", lambda: "another CPU")
    with pytest.warns(UserWarning, match=r"another CPU .*compiled again"):
        again = satura.open(saved)
    for name, array in again.run(arguments).items():
        np.testing.assert_array_equal(array, expected[name])


def test_what_is_compiled_again_is_checked(saved: Path) -> None:
    whole = Container(saved)
    data = saved.read_bytes()
    for section in (whole.header["programs"][0]["schedule"], whole.header["sources"][0][-1]):
        at = int(whole.section(section).ctypes.data) - whole._bytes.ctypes.data + 5
        changed = saved.with_name("changed")
        changed.write_bytes(flipped(data, at))
        changed.chmod(0o666)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = satura.open(changed)
        with pytest.raises(ArtifactError, match=f"section {section} is not as it was written"):
            again.run(random_inputs(dense()))


@pytest.mark.long
def test_mutants_are_refused_or_right(saved: Path) -> None:
    data = saved.read_bytes()
    arguments = random_inputs(dense())
    expected = satura.open(saved).run(arguments)
    refused = 0
    for seed in seeds(1000):
        random = np.random.default_rng(seed)
        mutant = bytearray(data)
        for at in random.integers(0, len(data), random.integers(1, 4)):
            mutant[at] ^= 1 << int(random.integers(8))
        if random.random() < 0.2:
            del mutant[int(random.integers(len(data))) :]
        saved.write_bytes(mutant)
        try:
            got = satura.open(saved).run(arguments)
        except ArtifactError:
            refused += 1
            continue
        for name, array in expected.items():  # what was hit is not read here, or padding
            np.testing.assert_array_equal(got[name], array)
    assert refused > 500
