"""Register tiles: what a microkernel holds in registers, and how it adds products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from satura.backend.emit.text import INDENT
from satura.backend.matrices import EDGE, GROUPS, OF_PARTS, PARTS, VECTORS
from satura.backend.sizes.size import is_fixed
from satura.backend.target import Target, host_target
from satura.rewrite.extract.parted import pays_in_parts
from satura.rewrite.types.tensor_type import DType

_TALLEST_OF_32 = {4: 6, 3: 8, 2: 12, 1: 10}  # rows of the tile by vectors, by registers
_TALLEST_OF_16 = {3: 4, 2: 6, 1: 8}
_TALLEST_OF_16_PAIRS = {3: 3, 2: 6, 1: 8}  # their products need a register
_OCTETS_OF_32 = {4: 4, 3: 6, 2: 8, 1: 10}  # rows that are in registers at a time
_OCTETS_OF_16 = {3: 2, 2: 4, 1: 6}
_OCTET_ROWS = 24  # of a tile
_SLOWER_OF_32 = {4: 1.0, 3: 1.01, 2: 1.03, 1: 1.15}  # narrow tiles load more per product
_SLOWER_OF_16 = {3: 1.03, 2: 1.0, 1: 1.35}  # wide ones of few rows read more of a deep panel
_WORTH_A_TAIL = 1.03  # times as long without: one more microkernel takes time to compile
_WAIT = 4  # cycles between two sums of a chain
_LEAST_CHUNK = 4  # words: with fewer at a time, quads take about as long
_FEW_ROWS = 8  # below, both wait for the weights


class Products(Enum):
    """What a word holds, and so how the microkernel adds products: the name of its helper."""

    F32 = "tile"
    F64 = "doubles"
    PAIRS = "pairs"  # two i16 each, added as i32
    QUADS = "quads"  # four u8 of rows and four i8 of weights, added as i32
    OCTETS = "octets"  # the same, as two i16 first where these cannot saturate
    MATRICES = "matrices"  # the same as quads, by instructions that multiply matrices
    PARTS = "parts"  # f32 as three bf16 each, two of them in a word, by such instructions

    @property
    def per_word(self) -> int:
        """How many elements of an operand a word holds."""
        return {Products.PAIRS: 2}.get(self, 1 if self.word.is_float else 4)

    @property
    def word(self) -> DType:
        """The dtype that a word is held as, and that of the sums."""
        floats = {Products.F64: DType.F64, Products.F32: DType.F32, Products.PARTS: DType.F32}
        return floats.get(self, DType.I32)

    @property
    def are_matrices(self) -> bool:
        """Whether instructions multiply matrices of words."""
        return self in (Products.MATRICES, Products.PARTS)

    def words(self, depth: int, is_copied: bool = False) -> int:
        """How many words hold `depth` neighbouring elements of an operand. Copies for registers of
        matrices are filled up to whole chunks."""
        if self is Products.PARTS:
            return PARTS * _filled(-(-depth // 2))
        words = -(-depth // self.per_word)
        return _filled(words) if is_copied and self is Products.MATRICES else words

    def chunk(self, depth: int, is_copied: bool = False) -> int:
        """How many words of so many elements registers of matrices hold at a time."""
        words = self.words(depth, is_copied)
        return chunk_of(words // PARTS if self is Products.PARTS else words)


def _filled(words: int) -> int:
    """The least number of words that as few chunks of one size as there can be hold."""
    chunks = max(1, -(-words // EDGE))
    return -(-words // chunks) * chunks


@dataclass(frozen=True)
class Tile:
    """What a microkernel holds in registers: some number of rows by `vectors` vectors.

    A kernel has one microkernel per entry of `rows` (descending), so that tiles can share the rows
    of a block evenly; or one that takes `part` of the rows at a time; or one for all counts, of
    matrices. Of a panel with columns in
    only `tail` of the vectors (0: there is none), microkernels of their own compute these.
    """

    rows: tuple[int, ...]
    vectors: int
    part: int = 0
    products: Products = Products.F32
    tail: int = 0

    @property
    def is_filled(self) -> bool:
        """Whether all tiles of a block but the last have all their rows, and do not share them
        evenly: matrices of fewer rows take as long, or longer."""
        return self.part > 0 or self.products.are_matrices


def tile_name(
    rows: int, vectors: int, products: Products = Products.F32, depth: int = 0, width: int = 0
) -> str:
    """The helper that computes a tile of `rows` rows by `vectors` vectors, of `width` if there are
    more.

    With `depth`, every so many columns are a group that sees as many elements of its own.
    """
    name = f"{products.value}_{rows}x{vectors}" + (f"of{width}" if width else "")
    return name + (f"g{depth}" if depth else "")


def microkernel_lines(tile: Tile, names: Sequence[str], arguments: str) -> Iterator[str]:
    """The call of that one of a tile's microkernels, of these `names`, that has `size` rows or the
    fewest more."""
    *taller, _ = tile.rows
    *others, last = names
    for place, (rows, name) in enumerate(zip(taller, others, strict=True)):
        yield f"{'elif' if place else 'if'} size > {rows - 1}:"
        yield f"{INDENT}{name}({arguments})"
    final = f"{last}({arguments})"
    yield from ["else:", INDENT + final] if taller else [final]


def choose_tile(
    rows: int | None, columns: int, target: Target | None = None, any_columns: bool = False,
    products: Products = Products.F32, has_tail: bool = False,
) -> Tile:  # fmt: skip
    """A tile that wastes little on `rows` (None: not known) by `columns`.

    Its width is the one that computes the fewest columns beyond the last; with `any_columns` it
    depends only on whether the columns fill the fastest (where sizes decide, it is else the
    narrowest). Few rows get a tile of just their number, others one that some tiles fill. Where it
    `has_tail`, the last panel may get microkernels of its own.
    """
    target = target or host_target()
    slower = _SLOWER_OF_32 if target.registers == 32 else _SLOWER_OF_16
    filled = -(-columns // lanes_of(products, target))
    if any_columns:
        best = min(slower, key=lambda count: slower[count])
        vectors = min(best, max(1, filled)) if is_fixed(filled) else best if filled >= best else 1
    else:
        tiles = [tile_of(vectors, rows, products, target) for vectors in slower]
        if has_tail:
            tiles += [with_tail(tile, columns, target) for tile in tiles]
        return min(tiles, key=lambda tile: _time(tile, columns, target))
    return tile_of(vectors, rows, products, target)


def _time(tile: Tile, columns: int, target: Target) -> float:
    """About how long the columns take per row, in vectors of the fastest tile."""
    slower = _SLOWER_OF_32 if target.registers == 32 else _SLOWER_OF_16
    least = _WORTH_A_TAIL if tile.tail else 1
    return least * panel_count(tile, columns, target) * tile.vectors * slower[tile.vectors]


def with_tail(tile: Tile, columns: int, target: Target | None = None) -> Tile:
    """`tile` with microkernels for the last of the panels that so many columns have."""
    filled = -(-columns // lanes_of(tile.products, target))
    return replace(tile, tail=0 if tile.is_filled else filled % tile.vectors)


def panel_count(tile: Tile, columns: int, target: Target | None = None) -> float:
    """For how many whole panels it takes as long as for so many columns."""
    panels = -(-columns // panel_columns(tile, target))
    if not tile.tail:
        return panels
    tallest = tile.rows[0]
    tail = replace(tile, vectors=tile.tail)
    return panels - 1 + step_cycles(tail, tallest, target) / step_cycles(tile, tallest, target)


def tile_of(
    vectors: int, rows: int | None, products: Products = Products.F32, target: Target | None = None
) -> Tile:
    """The tile of so many vectors for `rows` rows (None: not known)."""
    many = (target or host_target()).registers == 32
    few = _TALLEST_OF_16_PAIRS if products is Products.PAIRS else _TALLEST_OF_16
    tallest = (_TALLEST_OF_32 if many else few)[vectors]
    if products is Products.OCTETS:
        tallest = min(_OCTET_ROWS, _OCTET_ROWS if rows is None else max(1, rows))
        parts = -(-tallest // (_OCTETS_OF_32 if many else _OCTETS_OF_16)[vectors])
        part = -(-tallest // parts)
        return Tile((parts * part,), vectors, part, products)
    if products.are_matrices:
        most = GROUPS * EDGE
        tallest = most if rows is None else -(-max(1, rows) // -(-max(1, rows) // most))
        return Tile((-(-tallest // GROUPS) * GROUPS,), VECTORS, 0, products)
    if rows is not None and rows < tallest:
        return Tile((max(1, rows),), vectors, 0, products)
    if rows is not None:  # as many tiles as there must be share them evenly
        tallest = -(-rows // -(-rows // tallest))
    return Tile((tallest, tallest - 1), vectors, 0, products)


def step_cycles(tile: Tile, height: int, target: Target | None = None) -> float:
    """About how many cycles of a core the microkernel for `height` rows takes per line of a panel:
    two vectors of products each, but no fewer than a sum waits for the one before."""
    rows = min(rows for rows in tile.rows if rows >= height)
    if tile.products.are_matrices:  # a row of a register each, or the panel's words
        products = len(OF_PARTS.pairs) / PARTS if tile.products is Products.PARTS else 1
        return products * max(rows, EDGE / 2) * tile.vectors / EDGE
    many = (target or host_target()).registers == 32
    slower = _SLOWER_OF_32 if many else _SLOWER_OF_16
    return max(rows * tile.vectors * slower[tile.vectors] / 2, _WAIT)


def chunk_of(words: int) -> int:
    """How many words of a tap registers of matrices hold at a time: as many as divide all."""
    return max(size for size in range(1, EDGE + 1) if words % size == 0)


def multiplies_as_matrices(rows: int | None, columns: int, words: int) -> bool:
    """Whether products of so many rows (None: any number) and columns, of so many words each, are
    found sooner as those of matrices than as quads, where the CPU has both."""
    enough = (rows is None or rows >= _FEW_ROWS) and columns > EDGE
    return enough and chunk_of(words) >= _LEAST_CHUNK and host_target().multiplies_matrices


def multiplies_in_parts(rows: int, columns: int, taps: int, depth: int) -> bool:
    """Whether f32 are multiplied sooner as three bf16 each, and the CPU has what that takes."""
    has_matrices = host_target().multiplies_matrices_of_bf16
    return has_matrices and pays_in_parts(rows, columns, depth, taps)


def lanes_of(products: Products, target: Target | None = None) -> int:
    """How many words a vector holds."""
    return (target or host_target()).vector_bytes // products.word.itemsize


def panel_columns(tile: Tile, target: Target | None = None) -> int:
    """How many columns a weight panel has."""
    return tile.vectors * lanes_of(tile.products, target)
