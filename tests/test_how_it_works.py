"""docs/how-it-works.md shows what its calls really print."""

from __future__ import annotations

import pytest

from tests.how_it_works import PAGE, page


@pytest.mark.deep
def test_the_page_shows_what_its_calls_print() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.how_it_works`"


def test_the_page_goes_through_every_stage() -> None:
    text = PAGE.read_text()
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "Load", "Encode", "Saturate", "Extract", "Schedule", "Kernels", "Buffers and calls",
    ]  # fmt: skip
