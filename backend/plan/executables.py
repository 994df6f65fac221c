"""Executables: the distinct kernels of a program, the one place where kernels are merged.

Kernels of equal text are one. Beyond that a dispatch can run the kernel of another one by a call
with other arguments: an axis that it does not have has one place, a tile may be larger than the
rows. `MERGING` are the levels of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from satura.backend.emit.body import Code, KernelForm

_COMPILATION = 0.4  # seconds of a processor per kernel
_CALLS = 20_000  # that a compilation is for
_PRODUCTS = 2.5e10  # per second, of one thread


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
    codes: Mapping[int, Code], merging: str, formed: Callable[[int, KernelForm], Code | None]
) -> dict[int, Code]:
    """The codes of dispatches, of which some run kernels that are made for others.

    `formed` is the code of a dispatch in the form of another one, or None.
    """
    chosen = dict(codes)
    if merging == "none":
        lines = {number: f"    # dispatch {number}\n" for number in codes}
        return {n: replace(code, text=code.text + lines[n]) for n, code in codes.items()}
    if merging == "exact":
        return chosen
    limit = _COMPILATION / _CALLS * _PRODUCTS if merging == "cost" else inf
    users: dict[str, list[int]] = {}
    for number, code in codes.items():
        users.setdefault(code.text, []).append(number)
    for text in sorted(users, key=lambda each: len(users[each])):  # of equals the first comes first
        forms = {other: chosen[found[0]].form for other, found in users.items() if other != text}
        moved = _move_users(text, users[text], codes, forms, formed, limit)
        if moved is not None:
            chosen.update(moved)
            del users[text]
            for number, code in moved.items():
                users[code.text].append(number)
    return chosen


def _move_users(
    text: str, users: Sequence[int], codes: Mapping[int, Code],
    forms: Mapping[str, KernelForm | None],
    formed: Callable[[int, KernelForm], Code | None], limit: float,
) -> dict[int, Code] | None:  # fmt: skip
    """The users of a kernel as users of others; None where one has to keep it, or all together
    compute more than `limit`."""
    moved: dict[int, Code] = {}
    for number in users:
        own, options = codes[number].form, []
        for other, form in forms.items():
            if own is not None and form is not None and form.may_serve(own):
                code = formed(number, form)
                if code is not None and code.text == other:
                    options.append(code)
        if not options:
            return None
        moved[number] = min(options, key=lambda code: code.more)
        if sum(code.more for code in moved.values()) > limit:
            return None
    return moved
