"""Extraction: from an e-graph to the cheapest schedule that a method finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from satura.rewrite.egraph.classes import EClasses, of_each
from satura.rewrite.errors import CallError, ProgramError, brief
from satura.rewrite.extract.asked import asked
from satura.rewrite.extract.candidates import (
    MAX_ROUNDS,
    Candidates,
    add_variants,
    candidates,
    enumerate_fragments,
    is_small,
)  # fmt: skip
from satura.rewrite.extract.choice_graph import Extractor, Result
from satura.rewrite.extract.cost import CostModel, given_or_default
from satura.rewrite.extract.exact import exact
from satura.rewrite.extract.forms import ANCHORED
from satura.rewrite.extract.greedy import dag_greedy, tree_greedy
from satura.rewrite.extract.local_search import local_search
from satura.rewrite.extract.placement import place
from satura.rewrite.extract.schedule import Refusals, Schedule
from satura.rewrite.extract.settle import assembly, schedule, settle
from satura.rewrite.extract.templates import Instance, Templates
from satura.rewrite.system.garbage import without_collections

Method = Literal["search", "exact", "dag", "tree"]

_TRIES = 16  # each strikes out all that was refused
_ALONE = 4  # tries after which what is as large is struck out with it

EXTRACTORS: Mapping[str, Extractor] = {
    "search": local_search,
    "exact": exact,
    "dag": dag_greedy,
    "tree": tree_greedy,
}


def extract(
    classes: EClasses,
    model: CostModel | None = None,
    method: Method | Extractor | None = None,
) -> Schedule:
    """The schedule that an extractor finds under a cost model.

    `method` is "search" (local search from both greedy choices), "exact" (an integer program,
    needs scipy), "dag" (greedy, shared work is paid once), "tree" (greedy, shared work is paid once
    per use), or an extractor. Without it, the search also starts from the choice that the
    candidates were made for. Raises ProgramError where an output cannot be computed, CallError for
    an unknown method.
    """
    extractor = EXTRACTORS.get(method) if isinstance(method, str) else method
    if isinstance(method, str) and extractor is None:
        raise CallError(f"there is no method {brief(method)}; choose from {list(EXTRACTORS)}")
    found = choices(classes, model)
    if extractor is None:
        return settle(found, searched).schedule
    name = method if isinstance(method, str) else getattr(extractor, "__name__", extractor)
    ask = partial(asked, f"the extractor {name!r}", extractor)
    return settle(found, lambda each: ask(each.graph)).schedule


def searched(found: Candidates) -> Result:
    """What a local search chooses that also starts from where the candidates were made."""
    return local_search(found.graph, found.start, found.picks)


def appraiser(model: CostModel | None = None) -> Callable[[EClasses], Appraised]:
    """A function that finds good schedules for the e-graphs of one saturation as they grow.

    It takes a third of the time of `extract`. What equal fragments cost it finds out once.
    """
    templates = Templates(given_or_default(model))

    @without_collections()
    def appraise(classes: EClasses) -> Appraised:
        found = enumerate_fragments(_with_sizes(classes, templates.model), templates)
        parts = [found.found[candidate] for candidate in found.start.choice.values()]
        dispatched = [part.template.prices.seconds for part in parts if isinstance(part, Instance)]
        if len(dispatched) == len(parts):
            return Appraised(sum(dispatched), found)
        made = schedule(found, found.start)  # which parts of a concat are copied is found here
        return Appraised(made.seconds, found, made)

    return appraise


@dataclass(frozen=True)
class Appraised:
    """A good schedule, and the candidates among which a longer search goes on.

    `seconds` are the predicted ones of one run; what was not `made` yet is made when asked for.
    """

    seconds: float
    found: Candidates | None
    made: Schedule | None = None

    @property
    def schedule(self) -> Schedule:
        if self.made is not None:
            return self.made
        assert self.found is not None
        return schedule(self.found, self.found.start)

    @property
    def work(self) -> float:
        """Seconds of computing in contractions and pools, which no fusion saves; 0 if unknown."""
        if self.found is None:
            return 0.0
        parts = [self.found.found[candidate] for candidate in self.found.start.choice.values()]
        return sum(
            part.template.prices.work
            for part in parts
            if isinstance(part, Instance) and part.template.form in ANCHORED
        )

    def candidates(self, classes: EClasses, model: CostModel | None = None) -> Candidates:
        """What `choices` finds in `classes`, for which this was found."""
        if self.found is None or is_small(classes):
            return choices(classes, model)
        return add_variants(self.found)

    def __reduce__(self) -> tuple[type[Appraised], tuple[float, None, Schedule]]:
        """Leave candidates behind on the way to another process: they are found again sooner."""
        return Appraised, (self.seconds, None, self.schedule)


def choices(
    classes: EClasses, model: CostModel | None = None, rounds: int = MAX_ROUNDS,
    is_wide: bool = False,
) -> Candidates:  # fmt: skip
    """The candidates of an e-graph, see `candidates`."""
    chosen = given_or_default(model)
    return candidates(_with_sizes(classes, chosen), chosen, rounds, is_wide)


@without_collections()
def extract_unrefused(
    classes: EClasses, model: CostModel | None, refusals: Refusals
) -> tuple[Schedule, list[str]]:
    """The schedule that a search finds without what is refused, and what was struck out and why.

    Fragments that look equal are struck out together, and after some tries those of about the same
    size, too. Raises ProgramError where all is refused.
    """
    templates = Templates(given_or_default(model))
    struck: dict[int, str] = {}
    for tries in range(_TRIES):
        try:
            found = add_variants(
                enumerate_fragments(_with_sizes(classes, templates.model), templates)
            )
        except ProgramError:
            break
        result = searched(found)
        parts = assembly(found, result)
        made = place(parts, templates.model)
        refused = refusals(made)
        if not refused:
            return made, list(struck.values())
        class_of = parts.class_of
        for number, reason in refused.items():
            dispatch = made.dispatches[number]
            instance = found.found[result.choice[class_of[dispatch.root]]]
            if isinstance(instance, Instance) and instance.template.number not in struck:
                ops = ", ".join(made.program.nodes[node].op.name for node in dispatch.nodes)
                struck[instance.template.number] = f"{dispatch.form.value} of {ops}: {reason}"
                templates.strike(instance.template)
                if tries >= _ALONE:
                    templates.strike_larger(instance.template)
    *others, last = struck.values()
    raise ProgramError(f"{last}; and before it {len(others)} others" if others else last)


def _with_sizes(classes: EClasses, model: CostModel) -> EClasses:
    """The classes at the sizes of a cost model; what is folded has no symbols."""
    is_open = of_each(classes.types, lambda type_: bool(type_.symbols))
    known = tuple([a and not b for a, b in zip(classes.known, is_open, strict=True)])
    return replace(classes, known=known, sizes=model.sizes)
