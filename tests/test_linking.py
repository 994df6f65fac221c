"""Images of kernels: they do what LLVM's loading of the same object code does, or are refused."""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from pathlib import Path
from random import Random

import llvmlite.binding as llvm
import pytest

import satura
from benchmarks.models import TINY, build, example_inputs
from satura.backend.jit import loading, machine_code, translate
from satura.backend.jit.cache import default_cache
from satura.backend.jit.kernel import CompiledKernel, KernelError
from satura.backend.jit.linking import Image, Unlinkable, linked
from satura.backend.jit.loading import Loader, copied
from satura.backend.target import host_target
from tests.tiers import deep_but

CALLER = """
declare i64 @abs(i64)
define i64 @caller(i64 %x) {
    %y = call i64 @abs(i64 %x)
    %z = add i64 %y, 1
    ret i64 %z
}
"""


def object_of(text: str, triple: str | None = None) -> bytes:
    module = llvm.parse_assembly(text)
    if triple is None:
        return bytes(host_target().machine().emit_object(module))
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(opt=3, reloc="pic", codemodel="small")
    return bytes(machine.emit_object(module))


def image_of(text: str, symbol: str) -> CompiledKernel:
    image = linked(object_of(text), symbol)
    return CompiledKernel(symbol, image.externals, image.entry, image.content)


def answer(address: int, number: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(number))


def results(model: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Of a model whose kernels are loaded anew."""
    monkeypatch.setattr(machine_code, "loader", cache(Loader))
    built = build(model)
    found = satura.compile(built, threads=1).run(example_inputs(built, {"batch": 2, "seq": 20}))
    return {name: array.tobytes() for name, array in found.items()}


@pytest.mark.parametrize("model", deep_but((), TINY, ["tiny_mobilenet", "tiny_resnet_qdq"]))
def test_images_do_what_llvm_loads(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects: dict[str, bytes] = {}

    def kept(code: bytes, symbol: str) -> Image:
        objects[symbol] = code
        return linked(code, symbol)

    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SATURA_COMPILERS", "0")
    monkeypatch.setattr(translate, "linked", kept)
    got = results(model, monkeypatch)
    entries = default_cache()
    keys = [path.stem for path in entries.folder.glob("*.kernel")]
    assert len(keys) == len(objects) > 3
    for key in keys:
        kernel = CompiledKernel.unpacked(entries.load(key) or b"")
        assert kernel.entry is not None
        for_llvm = kernel._replace(entry=None, code=objects[kernel.symbol])
        entries.store(key, for_llvm.packed())
    monkeypatch.setattr(loading, "copied", None)
    assert results(model, monkeypatch) == got


def test_each_kind_of_code_calls_the_other() -> None:
    own = image_of("define i64 @own(i64 %x) { %y = add i64 %x, 5  ret i64 %y }", "own")
    text = CALLER.replace("abs", "own").replace("caller", "by_llvm")
    by_llvm = CompiledKernel("by_llvm", ("own",), None, object_of(text))
    again = image_of(CALLER.replace("abs", "by_llvm"), "caller")
    _, _, address = Loader().load([own, by_llvm, again])
    assert answer(address, 10) == 17


def test_code_is_never_writable() -> None:
    (address,) = Loader().load([image_of(CALLER, "caller")])
    assert answer(address, -3) == 4
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        pages, flags, *_ = line.split()
        first, last = (int(end, 16) for end in pages.split("-"))
        found += [flags] if first <= address < last else []
    assert found == ["r-xp"]


@pytest.mark.parametrize("entry", [0, 7, 1 << 20])
def test_code_starts_behind_its_table(entry: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_pages", None)  # nothing gets as far
    kernel = image_of(CALLER, "caller")
    with pytest.raises(KernelError, match="start inside its code"):
        copied([CompiledKernel("caller", kernel.externals, entry, kernel.code)], {})
    with pytest.raises(KernelError, match="calls no_such_function, which no library here has"):
        copied([image_of(CALLER.replace("abs", "no_such_function"), "caller")], {})


DATA = {
    "data to write to": "@d = global i64 7\ndefine ptr @f() { ret ptr @d }",
    "an address": "@d = constant ptr @f\ndefine ptr @f() { ret ptr @d }",
    "data of others": "@d = external global i64\ndefine ptr @f() { ret ptr @d }",
    "another name": "define void @g() { ret void }",
}


@pytest.mark.parametrize("text", DATA.values(), ids=DATA)
def test_what_is_more_than_distances_is_refused(text: str) -> None:
    with pytest.raises(Unlinkable):
        linked(object_of(text), "f")


def test_damaged_object_code_is_refused_or_stays_inside() -> None:
    code = object_of(CALLER)
    draw = Random(7)
    refused = 0
    for _ in range(400):
        changed = bytearray(code[: draw.choice([len(code), draw.randrange(len(code))])])
        for _ in range(draw.choice([0, 1, 8])):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        try:
            image = linked(bytes(changed), "caller")
        except Unlinkable:
            refused += 1
        else:
            assert image.entry <= len(image.content) < 2 * len(code)
    assert 100 < refused < 400


def test_references_within_pages_of_another_processor() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    number = "<float 1.0, float 2.0, float 3.0, float 4.0>"
    stores = "\n".join(f"store volatile i32 {each}, ptr %p" for each in range(3000))
    text = f"define <4 x float> @f() {{ ret <4 x float> {number} }}\n"
    text += f"define void @far(ptr %p) {{\n{stores}\nret void\n}}"
    image = linked(object_of(text, "aarch64-unknown-linux-gnu"), "f")
    page, load = struct.unpack_from("<II", image.content, image.entry)
    assert page & 0x9F000000 == 0x90000000 and load & 0xFFC00000 == 0x3DC00000  # adrp, ldr q
    assert len(image.content) > 3 * 4096
    at = ((page >> 29 & 3) + (page >> 5 << 2 & 0x1FFFFC)) * 4096 + (load >> 10 & 0xFFF) * 16
    assert struct.unpack_from("<4f", image.content, at) == (1, 2, 3, 4)
