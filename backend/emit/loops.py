"""Plain loop nests: elementwise work and moves, in boxes that need no guards inside.

The kernel has one piece of text per distinct structure; its arguments list each piece's boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from satura.backend.emit.body import Arguments, BodyText
from satura.backend.emit.code import Code, KernelForm
from satura.backend.emit.text import indent, kernel_text
from satura.backend.lower.body import Argument, Nest
from satura.backend.lower.canonical import LONGEST_RUN, Canonical, canonical
from satura.backend.sizes.size import is_fixed

_HOP = 120  # cycles that one more outer loop takes
FAIR = 4  # rows, or parts of them, for each thread: none has much more than another
LEAST = 512  # iterations of a part


@dataclass(frozen=True)
class LoopForm:
    """How many outer loops the boxes of a kernel have."""

    outer: int

    def may_serve(self, other: KernelForm) -> bool:
        return isinstance(other, LoopForm) and 0 < other.outer < self.outer


@dataclass(frozen=True)
class Piece:
    """Lines that run one box whose arguments start at `at`, those arguments, and the bytes of
    scratch that each thread needs, of which there are `per_thread`."""

    lines: list[str]
    numbers: list[Argument]
    scratch: int = 0


def loop_code(
    name: str, nests: Sequence[Nest], work: int, special: Callable[[Canonical], Piece | None],
    wanted: LoopForm | None = None, threads: int = 1,
) -> Code:  # fmt: skip
    """A kernel that runs all `nests`, which have no reductions and no empty loops, on about so many
    `threads`; those for which there is a `special` piece by that.

    Boxes have as many outer loops as the deepest of them, or as `wanted` says where that is more.
    """
    boxes: dict[str, list[list[Argument]]] = {}
    forms = [canonical(nest, len(nests) == 1) for nest in nests]
    cuts = [(form, cut_rows(form, threads)) for form in forms]
    forms = [form if cut is form or special(form) else cut for form, cut in cuts]
    deepest = max(form.outer for form in forms)
    most = max(deepest, wanted.outer) if wanted else deepest
    scratch = 0
    for form in forms:
        deep = _with_outer_loops(form, most)
        piece = special(deep) or _piece(deep)
        scratch = max(scratch, piece.scratch)
        boxes.setdefault("\n".join(piece.lines), []).append(piece.numbers)
    arguments: list[Argument] = [scratch] if scratch else []
    text = ["at = args"]
    if scratch:
        text += ["per_thread = load_int64(at, 0)", "at += 8"]
    for lines in sorted(boxes):  # the order of boxes must not tell two kernels apart
        arguments.append(len(boxes[lines]))
        for numbers in boxes[lines]:
            arguments.extend(numbers)
        text += [
            "boxes = load_int64(at, 0)",
            "at += 8",
            "for box in range(boxes):",
            *indent(1, lines.split("\n")),
            *indent(1, [f"at += {8 * len(boxes[lines][0])}"]),
        ]
    runs = any(form.middle for form in forms)  # side by side they fill several vectors already
    return Code(
        name, kernel_text(text, short=runs), tuple(arguments), work, scratch, LoopForm(most),
        _HOP * (most - deepest),
    )  # fmt: skip


def share(total: str) -> list[str]:
    """Lines that give this thread its part [lo, hi) of `total` iterations."""
    return [
        f"lo = {total} * thread // threads",
        f"hi = {total} * (thread + 1) // threads",
    ]


def start_odometer(names: Sequence[str], extents: Sequence[str], at: str) -> list[str]:
    """Lines that set the loop variables `names` for flat iteration `at`."""
    if len(names) <= 1:
        return [f"{name} = {at}" for name in names]
    lines = [f"rest = {at}"]
    for name, extent in zip(reversed(names[1:]), reversed(extents[1:]), strict=True):
        lines += [f"{name} = rest % {extent}", f"rest = rest // {extent}"]
    return [*lines, f"{names[0]} = rest"]


def step_odometer(names: Sequence[str], extents: Sequence[str]) -> list[str]:
    """Lines that step the loop variables on by one flat iteration."""
    if not names:
        return []
    lines = [f"{names[-1]} += 1"]
    if len(names) > 1:
        carry = [f"{names[-1]} = 0", *step_odometer(names[:-1], extents[:-1])]
        lines += [f"if {names[-1]} == {extents[-1]}:", *indent(1, carry)]
    return lines


def cut_rows(form: Canonical, threads: int) -> Canonical:
    """The same with the inner loop in parts of one length, where rows are few for the threads: of
    an open number there may be one. Rows of a prime length stay whole.
    """
    rows, length = form.nest.extents[: form.outer], form.nest.extents[-1]
    if threads == 1 or not rows or not is_fixed(length):
        return form
    wanted = -(-FAIR * threads // prod(extent for extent in rows if is_fixed(extent)))
    most = min(FAIR * wanted, length // LEAST)
    counts = [count for count in range(1, most + 1) if length % count == 0]
    parts = next((count for count in counts if count >= wanted), max(counts, default=1))
    if wanted == 1 or parts == 1:
        return form
    part = length // parts

    def recut(numbers: tuple[int, ...], step: int, last: int) -> tuple[int, ...]:
        return (*numbers[: form.outer], step, *numbers[form.outer : -1], last)

    nest = form.nest.with_loops(
        recut(form.nest.extents, parts, part),
        lambda strides: recut(strides, strides[-1] * part, strides[-1]), (),
    )  # fmt: skip
    return Canonical(nest, form.outer + 1, form.middle, form.column)


def _with_outer_loops(form: Canonical, outer: int) -> Canonical:
    """The same with outer loops of one iteration, so that boxes of different depth share text.

    A single loop stays alone: it is split over threads itself.
    """
    more = outer - form.outer
    if not form.outer or not more:
        return form
    extents = (*(1 for _ in range(more)), *form.nest.extents)
    nest = form.nest.with_loops(extents, lambda strides: (*(0 for _ in range(more)), *strides), ())
    return Canonical(nest, outer, form.middle, form.column)


def _short_strides(nest: Nest) -> frozenset[int]:
    """The strides, in bytes, of what stands side by side, in either direction."""
    sizes = {nest.dtype.itemsize, *(value.dtype.itemsize for value in nest.values)}
    steps = [step * size for step in range(1, LONGEST_RUN + 1) for size in sizes]
    return frozenset([*steps, *(-step for step in steps)])


def _piece(form: Canonical) -> Piece:
    """The loops of one box as they are."""
    nest = form.nest
    arguments = Arguments()
    outer = [f"i{axis}" for axis in range(form.outer)]
    extents = [arguments.new(extent) for extent in nest.extents[: form.outer]]
    inner = arguments.new(nest.extents[-1])
    start = None if outer else "lo"
    run = prod(nest.extents[form.outer : form.outer + form.middle])
    literals = _short_strides(nest) if form.middle else frozenset()
    body = BodyText(
        nest, outer, ("j",) * form.middle, "i", arguments, start, literals=literals,
        is_told_last=True,
    )  # fmt: skip
    row: list[str] = []
    inside: list[str] = []
    for place in range(run):
        taps, suffix = ((str(place),), f"t{place}") if form.middle else ((), "")
        block = body.store(body.block([nest.result], taps=taps, suffix=suffix))
        row += [*block.row, *block.middle]
        inside += block.inner
    loop = [f"for i in range({inner if outer else 'hi - lo'}):", *indent(1, inside or ["pass"])]
    if not outer and not inside:  # a single element: one thread has it
        work = [*share(inner), *body.setup, "if hi > lo:", *indent(1, row)]
    elif not outer:
        work = [*share(inner), *body.setup, *row, *loop]
    else:
        each = [*row, *loop, *step_odometer(outer, extents)]
        work = [
            f"total = {' * '.join(extents)}", *share("total"), *body.setup,
            *start_odometer(outer, extents, "lo"), "for row in range(hi - lo):", *indent(1, each),
        ]  # fmt: skip
    return Piece([*arguments.lines(), *work, *body.last], arguments.numbers)
