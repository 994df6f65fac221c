"""Local search after a greedy choice, by two moves.

Greedy choices are made per class, so two classes that hold the same data (a tensor and its
reshape, say) may both get a dispatch although one could serve the readers of both, and work may
be repeated in several dispatches that none of them alone would pay to store.

- *inline*: take one dispatch away and compute it inside all that read it;
- *share*: store a class that several dispatches compute inside, and let every dispatch choose
  again among its fragments that read only what is stored.

A move is kept when the program gets cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

from satura.rewrite.extract.candidates import Fragment, Fused, combine
from satura.rewrite.extract.greedy import Choice

MAX_PASSES = 3


def improve(choice: Choice) -> None:
    """Improve `choice` in place until no single move makes the program cheaper."""
    for _ in range(MAX_PASSES):
        if not (inline_dispatches(choice) | share_repeated_work(choice)):
            return


def share_repeated_work(choice: Choice) -> bool:
    """Try the *share* move on every class that is computed in two or more dispatches."""
    improved = False
    selected = _selected(choice)
    option_readers = _option_readers(choice)
    for cls in _repeated(choice, selected):
        fragment = choice.chosen[cls]
        if fragment is None:
            continue
        if not all(leaf in selected or choice.is_given(leaf) for leaf in fragment.reads):
            continue
        before = _total(choice, selected)
        stored = {*selected, cls}
        old: dict[int, Fragment] = {}
        for reader in selected:
            current = choice.chosen[reader]
            if current is None:
                continue
            if reader not in option_readers.get(cls, ()) and cls not in current.computed:
                continue
            better = _reread(choice, reader, cls, stored)
            if better is not None:
                old[reader] = current
                _choose(choice, reader, better)
        now = _selected(choice)
        if _total(choice, now) < before:
            improved, selected = True, now
        else:
            for reader, current in old.items():
                _choose(choice, reader, current)
    return improved


def _option_readers(choice: Choice) -> dict[int, set[int]]:
    """Per class the classes that have a fragment to choose from which reads it."""
    readers: dict[int, set[int]] = {}
    for cls, options in enumerate(choice.options):
        for _, fragment in options.values():
            for leaf in fragment.reads:
                readers.setdefault(leaf, set()).add(cls)
    return readers


def _reread(choice: Choice, reader: int, cls: int, stored: set[int]) -> Fragment | None:
    """The best fragment of `reader` that reads `cls` and otherwise only what is stored."""
    current = choice.chosen[reader]
    if current is None or current.form in (Fused.PLACEMENT, Fused.HOST):
        return None
    candidates = [fragment for _, fragment in choice.options[reader].values()]
    if cls in current.computed and cls != reader:
        leaf = _with_part(choice, current, cls, None)
        if leaf is not None:
            candidates.append(leaf)
    best, seconds = None, choice.seconds[reader]
    for fragment in candidates:
        usable = all(read in stored or choice.is_given(read) for read in fragment.reads)
        if cls not in fragment.reads or not usable or choice.reaches(fragment.reads, reader):
            continue
        price = fragment.seconds(choice.classes, choice.model)
        # A dispatch that stays may take over the work of one that is then no longer needed.
        price -= sum(choice.seconds[read] for read in current.reads if read not in fragment.reads)
        if price < seconds:
            best, seconds = fragment, price
    return best


def _with_part(
    choice: Choice, fragment: Fragment, cls: int, part: Fragment | None
) -> Fragment | None:
    """`fragment` with `part` where it reads or computes `cls`; where that is None it reads `cls`.

    Parts that it shares stay shared: they have one anchor. None where this does not fuse.
    """
    made: dict[int, Fragment | None] = {}

    def rebuild(old: Fragment) -> Fragment | None:
        if id(old) not in made:
            parts: list[Fragment | None] = []
            for operand, below in zip(old.node.operands, old.parts, strict=True):
                if operand == cls:
                    parts.append(part)
                elif below is None or not (cls in below.reads or cls in below.computed):
                    parts.append(below)
                else:
                    changed = rebuild(below)
                    if changed is None:
                        break
                    parts.append(changed)
            else:
                made[id(old)] = combine(
                    choice.classes, old.cls, old.node, tuple(parts), choice.model
                )
        return made.setdefault(id(old), None)

    return rebuild(fragment)


def _repeated(choice: Choice, selected: list[int]) -> list[int]:
    """Classes that are computed inside two or more dispatches, largest fragments first."""
    count: dict[int, int] = {}
    size: dict[int, int] = {}
    for cls in selected:
        inside: dict[int, int] = {}
        stack = [choice.chosen[cls]]
        while stack:
            fragment = stack.pop()
            if fragment is not None and fragment.form is not Fused.VIEW:
                inside[fragment.cls] = fragment.size
                stack.extend(fragment.parts)
        for found, nodes in inside.items():
            count[found] = count.get(found, 0) + 1
            size[found] = nodes
    return sorted((c for c, n in count.items() if n > 1), key=lambda c: -size[c])


def _choose(choice: Choice, cls: int, fragment: Fragment) -> None:
    choice.chosen[cls] = fragment
    choice.seconds[cls] = fragment.seconds(choice.classes, choice.model)


def _total(choice: Choice, selected: list[int]) -> float:
    return sum(choice.seconds[cls] for cls in selected)


def inline_dispatches(choice: Choice) -> bool:
    """Try the *inline* move on every dispatch."""
    improved = False
    outputs = {cls for _, cls in choice.classes.outputs}
    for _ in range(MAX_PASSES):
        selected = _selected(choice)
        readers = _readers(choice, selected)
        moves = [_best_move(choice, cls, readers) for cls in selected if cls not in outputs]
        applied = False
        touched: set[int] = set()
        for move in moves:
            if move is not None and not touched.intersection([move.cls, *move.rewritten]):
                touched.update([move.cls, *move.rewritten, *move.leaves])
                applied |= _apply(choice, move)
        improved |= applied
        if not applied:
            break
    return improved


@dataclass(frozen=True)
class _Move:
    """Class `cls` is no longer dispatched; its readers become the `rewritten` fragments."""

    cls: int
    rewritten: dict[int, Fragment]
    leaves: tuple[int, ...]
    gain: float


def _best_move(choice: Choice, cls: int, readers: dict[int, list[int]]) -> _Move | None:
    chosen = choice.chosen[cls]
    if chosen is None or chosen.form in (Fused.PLACEMENT, Fused.HOST):
        return None
    best: _Move | None = None
    for form in (Fused.VIEW, Fused.LOOP):
        if (form, None) not in choice.options[cls]:
            continue
        inlined = choice.options[cls][form, None][1]
        stored = all(leaf in readers or choice.is_given(leaf) for leaf in inlined.reads)
        if not stored:
            continue
        gain = choice.seconds[cls]
        rewritten: dict[int, Fragment] = {}
        for reader in readers[cls]:
            fragment = choice.chosen[reader]
            assert fragment is not None
            changed = None
            if fragment.form is not Fused.PLACEMENT:
                changed = _with_part(choice, fragment, cls, inlined)
            if changed is None:
                break
            rewritten[reader] = changed
            after = changed.seconds(choice.classes, choice.model)
            gain += choice.seconds[reader] - after
        else:
            if gain > 0 and (best is None or gain > best.gain):
                best = _Move(cls, rewritten, tuple(inlined.reads), gain)
    return best


def _apply(choice: Choice, move: _Move) -> bool:
    for reader, fragment in move.rewritten.items():
        if choice.reaches(fragment.reads, reader):
            return False
    for reader, fragment in move.rewritten.items():
        _choose(choice, reader, fragment)
    return True


def _selected(choice: Choice) -> list[int]:
    """The classes that the outputs need dispatched, or given."""
    found: dict[int, None] = {}
    stack = [cls for _, cls in choice.classes.outputs]
    while stack:
        cls = stack.pop()
        if cls in found:
            continue
        found[cls] = None
        fragment = choice.chosen[cls]
        stack.extend(fragment.reads if fragment else ())
    return list(found)


def _readers(choice: Choice, selected: list[int]) -> dict[int, list[int]]:
    readers: dict[int, list[int]] = {cls: [] for cls in selected}
    for cls in selected:
        fragment = choice.chosen[cls]
        for leaf in fragment.reads if fragment else ():
            readers[leaf].append(cls)
    return readers
