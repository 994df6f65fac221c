"""`satura explain --sizes`: which sizes share a lowering and its kernels, and why others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice, product
from math import prod
from random import Random

import satura
from satura.backend.run.class_report import ClassReport
from satura.backend.run.signatures import Sizes
from satura.commands.failures import complain
from satura.commands.models import file_or_light
from satura.commands.terminal import counted, print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.compiled import Compiled
from satura.pipeline.inputs import sizes_text
from satura.pipeline.sizes import middles, parse_dims
from satura.rewrite.errors import CallError
from satura.rewrite.language.rule import RuleSet
from satura.rewrite.program.arguments import unknown_size
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.typical import representative

MOST_SIZES = 10_000
SAMPLED = 1000  # sizes, where there are more

Limits = dict[str, tuple[int, int]]
"""The least and the largest size by name."""


def show_classes(
    model: str, values: list[str], nodes: list[str], rules: RuleSet, texts: list[str],
    as_json: bool,
) -> None:  # fmt: skip
    """Print the classes of all combinations of the sizes that `texts` name, or of a sample of them;
    others are typical. Sizes at which the model does not run are counted.

    Raises CallError where it runs at none.
    """
    if nodes:
        raise CallError("explain takes numbers of nodes or --sizes, not both")
    given = parse_dims(texts)
    limits = {
        name: each if isinstance(each, tuple) else (each, each) for name, each in given.items()
    }
    middles({name: (low, max(1, high)) for name, (low, high) in limits.items()})  # are they sizes?
    asked: dict[Sizes, list[dict[str, int]]] = {}  # by the first sizes of their class
    refused: list[tuple[dict[str, int], CallError]] = []
    alone = 0  # sizes of no class
    with progress(f"explaining {model}") as phase:
        source = with_values(file_or_light(model), values)
        # for no values: a program of its own, without the classes that earlier calls have met
        compiled = satura.compile(source, 1, rules=rules, progress=phase).for_values({})
        limits = _with_typical(limits, compiled)
        total = prod(high - low + 1 for low, high in limits.values())
        chosen = _combinations(limits, total)
        for sizes in chosen:
            met = dict(zip(limits, sizes, strict=True))
            before = {_first(each): each.plans for each in compiled.cache}
            try:
                compiled.prepare(met)
            except CallError as error:
                refused.append((met, error))
                continue
            own = [each for each in compiled.cache if each.plans > before.get(_first(each), 0)]
            alone += not own
            for each in own:
                asked.setdefault(_first(each), []).append(met)
    if len(refused) == len(chosen):
        raise refused[0][1]
    classes = [each for each in compiled.cache if _first(each) in asked]
    notes = list(_notes(len(chosen), total, refused))
    if alone:
        notes.append(
            f"{counted(alone, 'size')} of no class: the program is for these alone, or Python takes"
            " the steps of a node"
        )
    if as_json:
        print_json([{**asdict(each), "asked": _ranges(asked[_first(each)])} for each in classes])
        for note in notes:  # the list is of classes
            complain(note)
    else:
        _print(classes, asked, notes)


def _with_typical(limits: Limits, compiled: Compiled) -> Limits:
    """The limits of all sizes that a call has where it has these; others are typical.

    Raises CallError for what is no size of the model.
    """
    every = sorted(compiled.symbols, key=len)
    for name in limits:
        if all(name not in names for names in every):
            raise unknown_size(name, frozenset[str]().union(*every))
    names = next(each for each in every if limits.keys() <= each)
    typical = compiled.program.typical
    usual = representative(symbol("usual"))
    return limits | {
        name: (typical.get(name, usual),) * 2 for name in sorted(names - limits.keys())
    }


def _combinations(limits: Limits, total: int) -> Sequence[tuple[int, ...]]:
    """All sizes within limits, or where they are too many some of them, always the same: all the
    least, all the largest, some that are one or the other each, and others."""
    if total <= MOST_SIZES:
        return list(product(*(range(low, high + 1) for low, high in limits.values())))
    random = Random(0)
    ends = islice(product(*limits.values()), SAMPLED // 2)
    found = dict.fromkeys([*zip(*limits.values(), strict=True), *ends])
    while len(found) < SAMPLED:
        found[tuple(random.randint(low, high) for low, high in limits.values())] = None
    return list(found)


def _notes(
    count: int, total: int, refused: Sequence[tuple[Mapping[str, int], CallError]]
) -> Iterable[str]:
    """What is to be said of sizes that are in no class."""
    if count < total:
        yield f"a sample: {count:,} of {total:,} sizes"
    if refused:
        sizes, error = refused[0]
        does = "does" if len(refused) == 1 else "do"
        yield f"{counted(len(refused), 'size')} {does} not run, first {sizes_text(sizes)}: {error}"


def _print(
    classes: Sequence[ClassReport], asked: Mapping[Sizes, list[dict[str, int]]],
    notes: Sequence[str],
) -> None:  # fmt: skip
    first = classes[0].facts if classes else ()
    common = [fact for fact in first if all(fact in each.facts for each in classes)]
    sizes = counted(sum(each.plans for each in classes), "size")
    print_line(f"{sizes}, {counted(len(classes), 'class', 'classes')}")
    print_line(
        "\n".join(
            [*notes, *(["all classes"] if classes else []), *(f"  {fact}" for fact in common)]
        )
    )
    for each in classes:
        own = replace(each, facts=tuple(fact for fact in each.facts if fact not in common))
        ranges = _ranges(asked[_first(each)]).items()
        print_line(str(own))
        print_line("  asked: " + ", ".join(f"{name}={low}:{high}" for name, (low, high) in ranges))


def _first(report: ClassReport) -> Sizes:
    return tuple(report.sizes.items())


def _ranges(sizes: Sequence[Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    """The least and the largest of several sizes, by name."""
    every = {name: [each[name] for each in sizes] for name in sizes[0]}
    return {name: (min(each), max(each)) for name, each in every.items()}
