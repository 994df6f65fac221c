"""Extraction: from an e-graph to the cheapest schedule that a method finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from satura.rewrite.egraph.classes import EClasses
from satura.rewrite.errors import CallError
from satura.rewrite.extract.assemble import assemble
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.greedy import choose
from satura.rewrite.extract.local_search import improve
from satura.rewrite.extract.placement import place
from satura.rewrite.extract.schedule import Schedule

Method = Literal["dag", "tree"]


def extract(classes: EClasses, model: CostModel | None = None, method: Method = "dag") -> Schedule:
    """The schedule that greedy extraction finds under a cost model.

    `method` is "dag" (shared work is paid once; a local search follows) or "tree" (shared work is
    paid once per use). Raises ProgramError where an output cannot be computed, CallError for an
    unknown method.
    """
    if method not in get_args(Method):
        raise CallError(f"there is no method {method!r}; choose from {list(get_args(Method))}")
    model = model or CostModel()
    fixed = zip(classes.known, classes.types, strict=True)
    folded = replace(classes, known=tuple(known and not type_.symbols for known, type_ in fixed))
    choice = choose(folded, model, shared=method == "dag")
    if method == "dag":
        improve(choice)
    return place(assemble(choice), model)
