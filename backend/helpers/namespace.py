"""The names that the text of a kernel may use.

Every provider module has a function `helpers() -> Mapping[str, object]` of fixed names;
microkernels exist in many sizes and are made when a kernel mentions one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from satura.backend.helpers.kinds import Helper, Kind


def meaning(name: str) -> Helper | Kind | None:
    """What a name of kernel text stands for; None where it stands for nothing."""
    from satura.backend.helpers.contraction_tile import tile_helper
    from satura.backend.helpers.image_tile import image_helper
    from satura.backend.helpers.parts import parts_helper
    from satura.backend.helpers.row_copies import row_copies_helper
    from satura.backend.helpers.window_tile import window_helper
    from satura.backend.helpers.winograd_tiles import winograd_helper

    made = tile_helper(name) or winograd_helper(name) or parts_helper(name)
    made = made or window_helper(name) or image_helper(name)
    return _fixed_names().get(name) or made or row_copies_helper(name)


@lru_cache(maxsize=1)
def _fixed_names() -> Mapping[str, Helper | Kind]:
    from satura.backend.helpers import matrix_tile, octet_copies, scalars, vector
    from satura.backend.helpers.transpose import transpose_helpers

    fixed = {**transpose_helpers(), **vector.helpers(), **matrix_tile.helpers()}
    return {**fixed, **octet_copies.helpers(), **scalars.helpers()}
