"""Weights of octets as panels for CPUs that add products of u8 and i8 in pairs, as i16.

A sum saturates for some u8 exactly if its positive weights, or its negative ones, add up to more
than 128: 255 · 128 is the last multiple of 255 that fits an i16. See `helpers/octet_tile.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.types.tensor_type import Array

_PER_WORD = 4
_SORTS = 3
_LARGEST_SUM = 128
_MOST_WIDE = 0.75  # of the words; more are faster as pairs from the start

Integers = NDArray[np.signedinteger]


def fits_halves(*weights: Integers) -> NDArray[np.bool_]:
    """Whether the sum of these numbers times u8 is an i16, whatever u8 they are."""
    above = sum(np.maximum(each, 0) for each in weights)
    below = sum(np.minimum(each, 0) for each in weights)
    return np.asarray((above <= _LARGEST_SUM) & (below >= -_LARGEST_SUM))


def is_sorted_faster(weights: Array, width: int) -> bool:
    """Whether enough words of these [..., depth, columns] fit pairs, in panels of `width` columns.

    A word that fits takes 0.75 of the time that its four octets take as pairs of i16, others 1.07.
    """
    columns = weights.shape[-1]
    lines = weights.reshape(-1, columns).astype(np.int16)
    pairs = fits_halves(lines[: len(lines) // 2 * 2 : 2], lines[1::2])
    words = pairs[: len(pairs) // 2 * 2].reshape(-1, 2, columns).all(1)
    panels = np.logical_and.reduceat(words, np.arange(0, columns, width), axis=1)
    return bool(np.mean(~panels) <= _MOST_WIDE) if panels.size else True


def table_lines(taps: int, depth: int, width: int) -> int:
    """How many lines of `width` i32 stand before the weights of a panel: heads and table."""
    return 1 + -(-taps * (_SORTS + -(-depth // _PER_WORD)) // width)


def sorted_panels(
    weights: Integers, groups: int, width: int, taps: int, shift: int
) -> list[NDArray[np.int32]]:
    """i8 [taps · depth, columns of all groups] as panels [lines, width], group by group.

    The first line is -shift · Σ over taps and depth: what rows that are `shift` too large add too
    much.
    """
    depth, columns = len(weights) // taps, weights.shape[-1] // groups
    panels, words = -(-columns // width), -(-depth // _PER_WORD)
    padded = np.zeros((taps, words * _PER_WORD, groups, panels * width), np.int64)
    padded[:, :depth, :, :columns] = weights.reshape(taps, depth, groups, columns)
    heads = (-shift * padded.sum((0, 1))).astype(np.int32).reshape(-1, width)  # wraps, as all sums
    split = padded.reshape(taps, words, _PER_WORD, groups * panels, width)
    return [
        _panel(head, of_panel)
        for head, of_panel in zip(heads, split.transpose(3, 0, 1, 4, 2), strict=True)
    ]


def _panel(head: NDArray[np.int32], octets: Integers) -> NDArray[np.int32]:
    """The panel of [taps, words, width, 4] octets."""
    taps, words, width, _ = octets.shape
    table = np.zeros((table_lines(taps, words * _PER_WORD, width) - 1, width), np.int32)
    entries = table.reshape(-1)[: taps * (_SORTS + words)].reshape(taps, _SORTS + words)
    lines = [head[None], table]
    for tap, entry in zip(octets, entries, strict=True):
        fits = fits_halves(tap[..., ::2], tap[..., 1::2]).all((1, 2))
        few, many = np.flatnonzero(fits), np.flatnonzero(~fits)
        couples = few[: len(few) // 2 * 2].reshape(-1, 2)
        first, second = tap[couples[:, 0]], tap[couples[:, 1]]
        four = (first[..., ::2], first[..., 1::2], second[..., ::2], second[..., 1::2])
        together = fits_halves(*four).all((1, 2))
        coupled = couples[together].reshape(-1)
        few = np.concatenate([coupled, couples[~together].reshape(-1), few[couples.size :]])
        entry[:_SORTS] = len(coupled) // 2, len(few) - len(coupled), len(many)
        entry[_SORTS:] = *few, *many
        lines.append(np.ascontiguousarray(tap[few].astype(np.int8)).view(np.int32)[..., 0])
        halves = tap[many].reshape(-1, width, 2, 2).transpose(0, 3, 1, 2).astype(np.int16)
        lines.append(np.ascontiguousarray(halves).view(np.int32).reshape(-1, width))
    return np.concatenate(lines)


def stack_panels(panels: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Panels one after another, each as long as the longest."""
    longest = max(map(len, panels))
    return np.stack([np.pad(panel, ((0, longest - len(panel)), (0, 0))) for panel in panels])
