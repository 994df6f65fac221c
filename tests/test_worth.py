"""What laws are worth: what a model costs without them, and where more of them lose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from satura.commands import worth as worth_module
from satura.commands.cli import app
from satura.commands.worth import LOST, smaller_sets, worths
from satura.pipeline.models import load
from satura.pipeline.phases import Phases
from satura.pipeline.stages import Searched, search
from satura.rewrite.language.rule import RuleSet
from satura.rewrite.program.program import Program
from satura.rules import DEFAULT, EXACT, NONE
from tests.random_programs import random_program
from tests.tiers import deep_but, seeds
from tests.tried_models import model as model

KEPT = ("transpose_past", "transpose_out_of", "compose_slices")


@pytest.mark.deep
def test_the_worth_of_laws_is_what_a_model_costs_without_them(model: Path) -> None:
    laws = DEFAULT.without(*(law.name for law in DEFAULT.laws if law.name not in KEPT))
    found = {worth.law: worth for worth in worths({"small": model}, laws)}
    assert found.keys() == set(KEPT)
    whole = search(load(model), laws, None, Phases(None)).schedule
    for name, worth in found.items():
        assert worth.seconds == whole.seconds
        less = search(load(model), laws.without(name), None, Phases(None)).schedule
        assert worth.seconds_without == less.seconds
        assert worth.gain == pytest.approx(less.seconds / whole.seconds - 1)
    assert not found["compose_slices"].matched and found["compose_slices"].gain == 0
    assert found["transpose_past"].matched and found["transpose_past"].gain > 0.01


@pytest.mark.deep
def test_the_command_prints_what_laws_are_worth(model: Path) -> None:
    result = CliRunner().invoke(app, ["rules", "exact", "--worth", str(model), "--json"])
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    gains = [row["gain"] for row in rows]
    assert gains == sorted(gains, reverse=True) and gains[0] > 0
    assert {row["law"] for row in rows} == {law.name for law in EXACT.laws}


def test_subsets_are_of_a_seed() -> None:
    first, again, other = (smaller_sets(DEFAULT, 4, seed) for seed in (0, 0, 1))
    names = [
        {name: [rule.name for rule in each] for name, each in sets.items()}
        for sets in (first, again, other)
    ]
    assert names[0] == names[1] != names[2]
    assert names[0]["(all)"] == [] and names[0]["(all that round)"] == [r.name for r in EXACT]
    parts = [set(first[f"(part {n} of seed 0)"].laws) for n in range(4)]
    assert all(len(DEFAULT.laws) / 4 < len(part) < len(DEFAULT.laws) * 3 / 4 for part in parts)
    assert len(set(map(frozenset, parts))) == 4


@pytest.mark.parametrize("at_most", deep_but([len(DEFAULT) - 1], [len(DEFAULT), len(DEFAULT) - 1]))
def test_a_search_that_loses_by_more_rules_is_found(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_most: int
) -> None:
    """Where a search makes nothing of more than so many rules; and what is done is given back."""
    asked = []

    def lossy(program: Program, rules: RuleSet, limits: None, phases: Phases) -> Searched:
        asked.append(len(rules))
        return search(program, rules if len(rules) <= at_most else NONE, limits, phases)

    monkeypatch.setattr(worth_module, "search", lossy)
    monkeypatch.setattr(worth_module, "smaller_sets", parts_alone)
    csv = tmp_path / "worth.csv"
    command = ["rules", "--worth", str(model), "--subsets", "1", "--csv", str(csv), "--json"]
    first = CliRunner().invoke(app, command)
    lost = [row["law"] for row in json.loads(first.stdout) if row["gain"] < -0.005]
    assert (first.exit_code, bool(lost)) == ((0, False) if at_most == len(DEFAULT) else (1, True))
    assert len(asked) == 4
    asked.clear()
    again = CliRunner().invoke(app, command)
    assert (again.exit_code, again.stdout) == (first.exit_code, first.stdout) and not asked


@pytest.mark.parametrize("seed", deep_but((), seeds(300), ()))
def test_fewer_rules_make_no_random_program_cheaper(seed: int) -> None:
    """Neither without one law nor of random halves, without any, or of those that are exact."""
    found = worths({"it": random_program(seed)[0]}, "default", 50, seed)
    assert [worth for worth in found if worth.gain < -LOST] == []


def parts_alone(rules: RuleSet, subsets: int, seed: int) -> dict[str, RuleSet]:
    sets = smaller_sets(rules, subsets, seed)
    return {name: each for name, each in sets.items() if name.startswith("(")}
