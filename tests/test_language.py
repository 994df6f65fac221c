"""`satura.language`, from which rule files import everything, and the places where that stood."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import satura.language
import satura.ops
from satura.language import (
    Axes,
    Builder,
    DType,
    Law,
    Tensor,
    binary,
    exact_quotient,
    known_at_least,
    product,
    reduce,
    rewrites,
    rule,
    symbol,
)  # fmt: skip
from satura.rewrite import types
from satura.rewrite.errors import ProgramError
from satura.rewrite.language.definition import IMPORTED
from satura.testing import check
from tests.documents import ENVIRONMENT, ROOT

FORMER = {
    "satura.rewrite.attributes": "satura.rewrite.types.attributes",
    "satura.rewrite.dims": "satura.rewrite.types.dims",
    "satura.rewrite.dsl": "satura.rewrite.language.dsl",
    "satura.rewrite.terms": "satura.rewrite.language.terms",
}
WITHOUT_WARNINGS = """
import satura, satura.language, satura.ops, satura.rules, satura.testing
from satura.commands.cli import main
main(["rules"])
"""


def public_names(module: ModuleType) -> set[str]:
    """What `module` defines itself for others."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }


@pytest.mark.parametrize("former", FORMER)
def test_a_former_place_warns_once_and_gives_the_same_objects(
    former: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = importlib.import_module(FORMER[former])
    monkeypatch.delitem(sys.modules, former, raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module, again = importlib.import_module(former), importlib.import_module(former)
    (warning,) = caught
    assert warning.category is DeprecationWarning
    assert "import from satura.language" in str(warning.message)
    assert module is again
    names = public_names(home)
    assert names and all(getattr(module, name) is getattr(home, name) for name in names)


@pytest.mark.parametrize("name", ["DType", "FLOATS", "TensorType"])
def test_types_give_with_a_warning_what_stood_there(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="import from satura.language") as caught:
        found = getattr(types, name)
    assert len(caught) == 1 and found is getattr(satura.language, name)


def test_attributes_of_users_have_their_former_name_too() -> None:
    with pytest.warns(DeprecationWarning, match="UserAttribute is its name now") as caught:
        found = getattr(satura.ops, "OwnAttribute")  # noqa: B009  # type checkers do not know it
    assert len(caught) == 1 and found is satura.ops.UserAttribute


@pytest.mark.deep
def test_satura_itself_does_not_import_from_former_places() -> None:
    # The filter takes those warnings as errors that begin with a name of ours.
    arguments = ["-W", "error:satura:DeprecationWarning", "-c", WITHOUT_WARNINGS]
    subprocess.run(
        [sys.executable, *arguments], check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL
    )


def test_documents_and_examples_import_rules_from_the_language_alone() -> None:
    texts = [file.read_text() for file in (ROOT / "examples").glob("*.py")]
    for document in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        texts += re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.M | re.S)
    about_rules = [text for text in texts if re.search(r"@rule|RuleSet|rules=", text)]
    assert len(about_rules) >= 8
    others = [text for text in about_rules if "satura.rewrite" in text]
    assert all("from satura.rewrite.language.dsl import" in text for text in others)
    assert len(others) == 1  # a file of the book, in CONTRIBUTING.md


def test_what_messages_tell_people_to_import_is_there() -> None:
    assert {"Tensor", "conv", "slice_", "scalar", "Refuse"} <= set(IMPORTED)
    assert set(IMPORTED) <= set(satura.language.__all__)


def test_every_error_of_ours_can_be_caught_by_its_public_name() -> None:
    raised = {
        name
        for name, value in vars(satura.rewrite.errors).items()
        if isinstance(value, type) and value.__module__ == satura.rewrite.errors.__name__
    }
    assert raised == set(satura.errors.__all__)


N: Any = "n"
SIZES: list[Callable[[Builder, int], object]] = [
    lambda build, x: build.input("y", DType.F32, [N, 8]),
    lambda build, x: build.reshape(x, [N, 8]),
    lambda build, x: build.broadcast(x, (N, 8)),
    lambda build, x: build.slice(x, [N, 0], [1, 8]),
    lambda build, x: build.slice(x, [0, 0], [N, 8]),
    lambda build, x: build.pad(x, [N, 0], [0, 0]),
    lambda build, x: build.iota([N], 0, DType.I64),
    lambda build, x: build.extent(N),
]


@pytest.mark.parametrize("use", SIZES)
def test_a_text_is_no_size_and_the_error_says_what_is(
    use: Callable[[Builder, int], object],
) -> None:
    build = Builder()
    x = build.input("x", DType.F32, [symbol("n"), 8])
    with pytest.raises(ProgramError, match=r"'n' is a text: .* symbol\('n'\), from satura.lang"):
        use(build, x)


def test_other_values_that_are_no_sizes_are_told() -> None:
    with pytest.raises(ProgramError, match=r"the size 2\.0 is of type float: sizes are ints, or"):
        Builder().input("x", DType.F32, [2.0])  # type: ignore[list-item]
    with pytest.raises(ProgramError, match="sizes are several, one per axis"):
        Builder().input("x", DType.F32, "n")  # type: ignore[arg-type]
    assert Builder().input("x", DType.F32, np.array([2, 3])) == 0  # type: ignore[arg-type]


@pytest.mark.deep
def test_what_is_known_of_sizes_may_be_said_in_a_law() -> None:
    @rule
    def largest_of_all(x: Tensor, a: Axes) -> Law:
        """max(x along axes, itself) is itself, where x has elements, and not two"""
        m, elements = reduce("max", x, a), product(x.type.shape)
        conditions = known_at_least(elements, 1), exact_quotient(elements, 2) != 1
        return rewrites(binary("max", m, m), m, *conditions)

    counts = check(largest_of_all).directions[0].conditions
    assert check(largest_of_all).is_sound
    assert [set(counts[each]) for each in counts if "known_at_least" in each] == [{True, False}]
