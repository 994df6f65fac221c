"""Object code as LLVM writes it, linked so that it runs wherever it is copied to.

An *image* is one block of bytes: a table for the addresses of the functions of others that it
calls, a jump through the table for each of them, and the sections. What the sections have of each
other is a distance, and resolved here, where LLVM is at hand; to load an image is to copy it to the
start of a page and to fill in the table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from satura.backend.jit.kernel import ADDRESS_BYTES

_FILE = struct.Struct("<4sBB10xHH4xQQQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBxHQQ")
_RELOCATION = struct.Struct("<QQq")
_ALLOCATED, _EXECUTABLE = 2, 4
_WRITABLE_OR_OF_A_THREAD = 1 | 1 << 10
_CONTENT, _SYMBOLS, _RELOCATIONS = 1, 2, 4
_PAGE = 4096
_STUB_BYTES = 8


class Unlinkable(Exception):
    """Object code that has more to it than what is linked here."""


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    content: bytes
    target: int  # of relocations: the section that they change
    names: int  # of symbols: the section that has their names
    alignment: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: int  # 0 for what others define
    value: int


@dataclass(frozen=True)
class Image:
    """What a kernel runs as: its table is that of `externals`, it starts at byte `entry`."""

    externals: tuple[str, ...]
    entry: int
    content: bytes


@dataclass(frozen=True)
class _Reference:
    """Four bytes of a section that refer to a symbol, `more` bytes behind it."""

    section: int
    offset: int
    kind: int
    to: _Symbol
    more: int


def linked(code: bytes, symbol: str) -> Image:
    """The image of object code that starts at `symbol`.

    Raises Unlinkable for what is not ELF for a processor known here, and for what needs more than
    distances: data to write to, addresses, relocations of other kinds.
    """
    try:
        return _linked(code, symbol)
    except (struct.error, IndexError, KeyError, ValueError) as error:
        raise Unlinkable(f"it is damaged: {error!r}") from error


def _linked(code: bytes, symbol: str) -> Image:
    processor, sections = _sections(code)
    stub, kinds = _PROCESSORS[processor]
    (table,) = (section for section in sections if section.kind == _SYMBOLS)
    symbols = list(_symbols(table, sections[table.names].content))
    placed = {number for number, section in enumerate(sections) if _is_placed(section)}
    for named in symbols:
        if named.section in placed and named.value > len(sections[named.section].content):
            raise Unlinkable(f"'{named.name}' is outside its section")
    references = list(_references(sections, placed, symbols))
    externals = sorted({each.to.name for each in references if not each.to.section})
    image = bytearray(ADDRESS_BYTES * len(externals))
    stubs = {}
    for number, name in enumerate(externals):
        stubs[name] = len(image)
        image += stub(ADDRESS_BYTES * number - len(image))
    starts = {}
    for number in sorted(placed):
        image += bytes(-len(image) % max(sections[number].alignment, 1))
        starts[number] = len(image)
        image += sections[number].content
    for each in references:
        kind = kinds.get(each.kind)
        if kind is None or not (each.to.section or kind.is_call):
            raise Unlinkable(f"there is a relocation {each.kind} of '{each.to.name}'")
        name, section = each.to.name, each.to.section
        to = starts[section] + each.to.value if section else stubs[name]
        at = starts[each.section] + each.offset
        (word,) = struct.unpack_from("<I", image, at)
        struct.pack_into("<I", image, at, kind.word(word, at, to + each.more))
    (first,) = (each for each in symbols if each.name == symbol and each.section in placed)
    if not sections[first.section].flags & _EXECUTABLE:
        raise Unlinkable(f"'{symbol}' is not code")
    return Image(tuple(externals), starts[first.section] + first.value, bytes(image))


def _is_placed(section: _Section) -> bool:
    """Whether a section is part of the image. Raises Unlinkable where that cannot hold it."""
    if not section.flags & _ALLOCATED or section.name == ".eh_frame" or not section.content:
        return False
    if section.flags & _WRITABLE_OR_OF_A_THREAD or section.kind != _CONTENT:
        raise Unlinkable(f"section {section.name} is not constant")
    if section.alignment > _PAGE:
        raise Unlinkable(f"section {section.name} is aligned to {section.alignment} bytes")
    return True


def _references(
    sections: list[_Section], placed: set[int], symbols: list[_Symbol]
) -> Iterator[_Reference]:
    """The relocations of what is placed. Raises Unlinkable for one outside its section."""
    for section in sections:
        if section.kind == _RELOCATIONS and section.target in placed:
            size = len(sections[section.target].content)
            for offset, what, more in _RELOCATION.iter_unpack(section.content):
                if offset + 4 > size:
                    raise Unlinkable("a relocation is outside its section")
                kind, to = what & 0xFFFFFFFF, symbols[what >> 32]
                yield _Reference(section.target, offset, kind, to, more)


def _sections(code: bytes) -> tuple[int, list[_Section]]:
    """The processor's number, and the sections. Raises Unlinkable for what is not ELF."""
    magic, words, order, kind, processor, *_, start, size, count, named = _FILE.unpack_from(code)
    if (magic, words, order, kind) != (b"\x7fELF", 2, 1, 1) or processor not in _PROCESSORS:
        raise Unlinkable("it is not ELF for a processor known here")
    rows = [_SECTION.unpack_from(code, start + size * number) for number in range(count)]
    names = _content(code, rows[named])
    return processor, [
        _Section(_text(names, row[0]), row[1], row[2], _content(code, row), row[7], row[6], row[8])
        for row in rows
    ]


def _content(code: bytes, row: tuple[int, ...]) -> bytes:
    return code[row[4] : row[4] + row[5]]


def _symbols(table: _Section, names: bytes) -> Iterator[_Symbol]:
    for name, _, section, value, _ in _SYMBOL.iter_unpack(table.content):
        yield _Symbol(_text(names, name), section, value)


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()


@dataclass(frozen=True)
class _Kind:
    """A kind of relocation: `word(old, at, to)` are the four bytes at `at` that refer to `to`."""

    word: Callable[[int, int, int], int]
    is_call: bool = False


def _field(value: int, bits: int, shift: int = 0) -> int:
    """A signed number as a field of an instruction. Raises Unlinkable where it does not fit."""
    if not -1 << bits - 1 <= value < 1 << bits - 1:
        raise Unlinkable(f"{value} does not fit into {bits} bits")
    return (value & (1 << bits) - 1) << shift


def _distance(_: int, at: int, to: int) -> int:
    return _field(to - at, 32)


def _x86_stub(distance: int) -> bytes:
    """jmp [rip + distance], which counts from behind the instruction"""
    return struct.pack("<Hixx", 0x25FF, distance - 6)


_X86 = {2: _Kind(_distance), 4: _Kind(_distance, is_call=True)}  # PC32, PLT32


def _arm_stub(distance: int) -> bytes:
    """ldr x16, [pc + distance]; br x16"""
    return struct.pack("<II", 0x58000010 | _field(distance // 4, 19, 5), 0xD61F0200)


def _arm_branch(old: int, at: int, to: int) -> int:
    return old & ~0x3FFFFFF | _field(_multiple(to - at, 4), 26)


def _arm_page(old: int, at: int, to: int) -> int:
    """adrp: the pages between the one of `at` and the one of `to`, two low bits apart"""
    pages = _field(to // _PAGE - at // _PAGE, 21)
    return old & ~0x60FFFFE0 | (pages & 3) << 29 | pages >> 2 << 5


def _arm_within_page(itemsize: int) -> _Kind:
    """The place in the page of `to`, in items."""

    def word(old: int, _: int, to: int) -> int:
        return old & ~0x3FFC00 | _multiple(to % _PAGE, itemsize) << 10

    return _Kind(word)


def _multiple(value: int, of: int) -> int:
    if value % of:
        raise Unlinkable(f"{value} is not a multiple of {of}")
    return value // of


_ARM = {
    261: _Kind(_distance),  # PREL32
    275: _Kind(_arm_page),
    277: _arm_within_page(1), 278: _arm_within_page(1), 284: _arm_within_page(2),
    285: _arm_within_page(4), 286: _arm_within_page(8), 299: _arm_within_page(16),
    282: _Kind(_arm_branch, is_call=True), 283: _Kind(_arm_branch, is_call=True),
}  # fmt: skip

_Processor = tuple[Callable[[int], bytes], Mapping[int, _Kind]]
_PROCESSORS: dict[int, _Processor] = {62: (_x86_stub, _X86), 183: (_arm_stub, _ARM)}
