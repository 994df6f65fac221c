"""`satura explain --sizes`: which sizes share a lowering and its kernels, and why others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from math import prod

import satura
from satura.backend.run.class_report import ClassReport
from satura.backend.run.signatures import Sizes
from satura.commands.models import file_or_light
from satura.commands.terminal import print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.sizes import parse_dims, typical_sizes
from satura.rewrite.errors import CallError

MOST_SIZES = 10_000


def show_classes(
    model: str, values: list[str], nodes: list[str], rules: str, texts: list[str], as_json: bool
) -> None:
    """Print the classes of all combinations of the sizes that `texts` name; others are typical."""
    if nodes:
        raise CallError("explain takes numbers of nodes or --sizes, not both")
    given = parse_dims(texts)
    limits = {
        name: each if isinstance(each, tuple) else (each, each) for name, each in given.items()
    }
    if prod(max(1, high - low + 1) for low, high in limits.values()) > MOST_SIZES:
        raise CallError(f"--sizes names more than {MOST_SIZES} sizes; give narrower ranges")
    asked: dict[Sizes, list[dict[str, int]]] = {}  # by the first sizes of their class
    with progress(f"explaining {model}") as phase:
        source = with_values(file_or_light(model), values)
        # for no values: a program of its own, without the classes that earlier calls have met
        compiled = satura.compile(source, 1, rules=rules, progress=phase).for_values({})
        program = compiled.program
        positive = {name: (max(1, low), max(1, high)) for name, (low, high) in limits.items()}
        typical_sizes(program, positive)  # refuses what is no size of the model
        typical = program.typical
        limits |= {name: (typical[name],) * 2 for name in sorted(program.symbols - limits.keys())}
        for sizes in product(*(range(low, high + 1) for low, high in limits.values())):
            met = dict(zip(limits, sizes, strict=True))
            before = {_first(each): each.plans for each in compiled.cache}
            compiled.prepare(met)
            for each in compiled.cache:
                if each.plans > before.get(_first(each), 0):
                    asked.setdefault(_first(each), []).append(met)
    classes = [each for each in compiled.cache if _first(each) in asked]
    if as_json:
        print_json([{**asdict(each), "asked": _ranges(asked[_first(each)])} for each in classes])
    else:
        common = [fact for fact in classes[0].facts if all(fact in each.facts for each in classes)]
        print_line(f"{sum(each.plans for each in classes)} sizes, {len(classes)} classes")
        print_line("\n".join(["all classes", *(f"  {fact}" for fact in common)]))
        for each in classes:
            own = replace(each, facts=tuple(fact for fact in each.facts if fact not in common))
            ranges = _ranges(asked[_first(each)]).items()
            print_line(str(own))
            print_line(
                "  asked: " + ", ".join(f"{name}={low}:{high}" for name, (low, high) in ranges)
            )


def _first(report: ClassReport) -> Sizes:
    return tuple(report.sizes.items())


def _ranges(sizes: Sequence[Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    """The least and the largest of several sizes, by name."""
    every = {name: [each[name] for each in sizes] for name in sizes[0]}
    return {name: (min(each), max(each)) for name, each in every.items()}
