"""Laws that shipped in compilers and were wrong are refuted, in whatever clothes they come."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from satura.rewrite.check.refute import refutation
from satura.rewrite.language.dsl import Rule
from satura.testing import check
from tests.museum import MENDED, MUSEUM
from tests.tiers import deep_but
from tests.variants import mirror_axes, rename, swap_operands, turn_round

SMALL = ("clamp", "join_any_slices")  # soon made small
DEAR = ("requantise_around_other_zero", "pad_of_any_value_into_conv", "pad_into_max_pool")
NAMES = [entry.name for entry in MUSEUM]


@pytest.mark.parametrize(
    "name", deep_but(SMALL, NAMES, [name for name in NAMES if name not in DEAR])
)
def test_museum_piece_is_refuted(name: str) -> None:
    report = check(MUSEUM[name])
    assert report.verdict == "refuted", str(report)
    example = report.counterexample
    assert example is not None and example.program in str(report)
    scope: dict[str, object] = {}
    exec(example.program, scope)
    arguments = scope["arguments"]
    assert isinstance(arguments, dict)
    assert sum(array.size for array in arguments.values()) <= 20, "it is not small"


@pytest.mark.parametrize("name", deep_but(NAMES[::2], NAMES))
def test_other_clothes_do_not_help(name: str) -> None:
    found = list(variants(MUSEUM[name]))
    assert len(found) >= 2 or name in SYMMETRIC
    for what, rule in found:
        assert refutation(rule) is not None, what


# Pieces that are their own mirror image, with nothing in them to turn round or to count.
SYMMETRIC = ("minus_itself",)
SPATIAL = ("pad_of_any_value_into_conv", "crop_into_conv")


def variants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule renamed; and renamed after each change that makes sense."""
    yield "renamed", rename(rule)
    changed = {
        "swapped": swap_operands(rule),
        "turned": turn_round(rule),
        "mirrored": mirror_axes(rule, inner_only=rule.name in SPATIAL),
    }
    for what, other in changed.items():
        if other is not None:
            yield what, rename(other)


QUICKLY_MENDED = ("clamp", "slice_that_looks_whole")


@pytest.mark.parametrize("attempts", [500, pytest.param(6000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", deep_but(QUICKLY_MENDED, [entry.name for entry in MENDED]))
def test_the_missing_condition_mends_it(name: str, attempts: int) -> None:
    report = check(MENDED[name], attempts=attempts)
    assert report.verdict != "refuted", str(report)
    assert report.directions[0].firings > 10
