"""The typical sizes of several models."""

from __future__ import annotations

from collections.abc import Iterable

from satura.pipeline.models import Model, load
from satura.pipeline.sizes import Dims, check_sizes, typical_sizes
from satura.rewrite.extract.choice_graph import ChoiceGraph


def typical(models: Iterable[Model | ChoiceGraph], dims: Dims) -> dict[str, int]:
    """The typical sizes that `dims` give. Raises CallError for a symbol that no model has."""
    sizes: dict[str, int] = {}
    if not dims:
        return sizes
    programs = [load(each) for each in models if not isinstance(each, ChoiceGraph)]
    for name, size in dims.items():
        having = [each for each in programs if name in each.symbols] or programs[:1]
        for program in having:
            check_sizes([name], program.symbols)
            sizes |= typical_sizes(program, {name: size})
    return sizes
