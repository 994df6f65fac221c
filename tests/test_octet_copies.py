"""Rows of integers of a depth that words do not hold evenly are copied, and nothing beside them is
read or written. What is computed of the copies, tests/test_octets.py and others compare."""

from __future__ import annotations

import pytest

from satura.rewrite.types.dims import static
from tests.guarded_memory import check
from tests.matrix_model import copied_case
from tests.test_octets import drawn
from tests.tiers import deep_but, seeds


@pytest.mark.parametrize("seed", deep_but(range(4), seeds(100), range(30)))
def test_copies_of_rows_stay_inside(seed: int) -> None:
    case = copied_case(seed)
    program = case.program()
    (x,) = program.inputs
    shape = tuple(map(static, program.nodes[x].type.shape))
    check(program, {"x": drawn(case.dtypes[0], shape, seed)}, {"y": True})
