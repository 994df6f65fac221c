"""The names that the text of a kernel may use.

Every provider module has a function `helpers() -> Mapping[str, object]` of fixed names;
microkernels exist in many sizes and are made when a kernel mentions one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType

import numpy as np


def namespace_of(code: CodeType) -> dict[str, object]:
    """The globals for a kernel's code: exactly the names that it mentions and that exist."""
    from satura.backend.helpers.contraction_tile import tile_helper

    fixed = _fixed_names()
    found: dict[str, object] = {}
    for name in sorted(set(_names_mentioned(code))):
        value = fixed.get(name)
        if value is None:
            value = tile_helper(name)
        if value is not None:
            found[name] = value
    return found


@lru_cache(maxsize=1)
def _fixed_names() -> Mapping[str, object]:
    from satura.backend.helpers import scalars, vector
    from satura.backend.helpers.transpose import transpose_helpers

    return {"np": np, **transpose_helpers(), **vector.helpers(), **scalars.helpers()}


def _names_mentioned(code: CodeType) -> Iterator[str]:
    """Every global or attribute name in the code and in the functions it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_mentioned(constant)
