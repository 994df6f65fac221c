"""Executables: the distinct kernels of a program, the one place where kernels are merged.

Kernels of equal text are one. Beyond that a dispatch can run the kernel of another one by a call
with other arguments: an axis that it does not have has one place, a tile may be larger than the
rows. `MERGING` are the levels of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from satura.backend.emit.code import Code, KernelForm

_COMPILATION = 0.1  # seconds of a processor per kernel
_CALLS = 20_000  # that a compilation is for, or
_RUNNING = 20  # seconds of a processor that these take, whichever is less
CYCLES = 3e9  # per second


@dataclass(frozen=True)
class Executable:
    """The kernel of all dispatches with equal text, named after the first of them.

    Where kernels that differ have one name, the later ones have primes.
    """

    name: str
    source: str
    dispatches: int


def executables(codes: Sequence[Code]) -> tuple[Executable, ...]:
    """The kernels of `codes`, equal ones merged, in order of first use."""
    counts = Counter(code.text for code in codes)
    names = {code.text: code.name for code in reversed(codes)}
    found: dict[str, Executable] = {}
    for text, count in counts.items():
        name = names[text]
        while name in found:
            name += "'"
        found[name] = Executable(name, text, count)
    return tuple(found.values())


def merge_kernels(
    codes: Mapping[int, Code], merging: str, formed: Callable[[int, KernelForm], Code | None],
    seconds: float = 0.0,
) -> dict[int, Code]:  # fmt: skip
    """The codes of dispatches, of which some run kernels that are made for others.

    `formed` is the code of a dispatch in the form of another one, or None; `seconds` are those of a
    processor that all dispatches take.
    """
    if merging == "none":
        lines = {number: f"    # dispatch {number}\n" for number in codes}
        return {n: replace(code, text=code.text + lines[n]) for n, code in codes.items()}
    if merging == "exact":
        return dict(codes)
    calls = min(_CALLS, _RUNNING / seconds) if seconds else _CALLS
    limit = _COMPILATION / calls * CYCLES if merging == "cost" else inf
    kept = {code.text: code.form for code in codes.values()}
    options = {number: _options(number, code, kept, formed) for number, code in codes.items()}
    chosen = dict(codes)
    while True:
        moves = [_moved_users(text, chosen, kept, options) for text in kept]
        cost, text, moved = min(moves, key=lambda move: move[0], default=(inf, "", {}))
        if not moved or cost > limit:
            return chosen
        chosen.update(moved)
        del kept[text]


def _options(
    number: int, code: Code, kernels: Mapping[str, KernelForm | None],
    formed: Callable[[int, KernelForm], Code | None],
) -> list[Code]:  # fmt: skip
    """What a dispatch can run: its own kernel and those of others that serve it."""
    found = [code]
    for text, form in kernels.items():
        if text != code.text and form is not None and code.form and form.may_serve(code.form):
            other = formed(number, form)
            if other is not None and other.text == text:
                found.append(other)
    return found


def _moved_users(
    text: str, chosen: Mapping[int, Code], kept: Container[str], options: Mapping[int, list[Code]]
) -> tuple[float, str, dict[int, Code]]:
    """What it costs that the users of a kernel run others that are kept, and what they run then;
    nothing where one of them has to keep it."""
    moved: dict[int, Code] = {}
    cost = 0.0
    for number, code in chosen.items():
        if code.text == text:
            others = [each for each in options[number] if each.text != text and each.text in kept]
            if not others:
                return inf, text, {}
            moved[number] = min(others, key=lambda each: each.extra_cycles)
            cost += moved[number].extra_cycles - code.extra_cycles
    return cost, text, moved
