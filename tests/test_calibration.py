"""Calibration: rates are learnt from times, kept as data, and never believed unchecked."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import satura
from satura.backend.contraction import problem
from satura.backend.jit.cache import default_cache
from satura.backend.target import Target, host_target
from satura.commands.cli import app
from satura.experiments import calibration
from satura.experiments.calibration import Sample, errors, fit
from satura.experiments.training import PER_PATTERN, programs
from satura.pipeline.rates import VERSION, checked_rates, cost_model, store_rates, stored_rates
from satura.rewrite.errors import CallError, FileError
from satura.rewrite.extract.cost import REFERENCE_RATES, CostModel
from satura.rewrite.extract.extract import extract
from satura.rewrite.extract.features import RATES, Features
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType
from tests.test_extract import unrewritten
from tests.tried_models import model as model

MODEL = CostModel()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))


@functools.cache
def training_features() -> tuple[Features, ...]:
    found = []
    for _, program in programs(seed=1):
        for dispatch in extract(unrewritten(program), MODEL, "dag").dispatches:
            assert dispatch.features is not None
            found.append(dispatch.features)
    return tuple(found)


def test_training_programs_tell_every_form_and_most_rates() -> None:
    features = training_features()
    assert len(features) >= 25 * PER_PATTERN
    assert {each.form for each in features} >= {"loop", "view", "row", "contraction", "window"}
    told = {name for each in features for name, amount in each.work if amount}
    needed = {name for name in RATES if name.endswith(".f32")} - {"hop.f32", "product.f32"}
    assert told >= needed | {"row", "run", "turned", "gathered", "packed", "ordered"}


@pytest.mark.parametrize("about", ["softmax f32", "normalised f32"])
def test_training_programs_have_rows_as_models_have_them(about: str) -> None:
    """With all that is computed of a row in one dispatch."""
    program = dict(programs(seed=1))[about]
    dispatches = extract(unrewritten(program), MODEL, "dag").dispatches
    assert [dispatch.form.value for dispatch in dispatches] == ["row"] * PER_PATTERN


@pytest.mark.deep
def test_a_seed_gives_the_same_programs() -> None:
    first, again, other = ([str(p) for _, p in programs(seed)] for seed in (3, 3, 4))
    assert first == again != other


def test_planted_rates_are_found_in_spite_of_noise_and_outliers() -> None:
    random = np.random.default_rng(0)
    planted = MODEL.with_measured(
        {name: seconds * random.uniform(0.4, 2.5) for name, seconds in REFERENCE_RATES.items()}
    )
    samples = []
    for number, each in enumerate(training_features()):
        taken = planted.seconds(each) * random.uniform(0.95, 1.05)
        late = 5.0 if number % 20 == 0 else 1.0
        samples.append(Sample("planted", each, taken * late, number % 4 == 3))
    fitted = fit(MODEL, [each for each in samples if not each.is_held_out])
    unseen = [each for each in samples if each.is_held_out]
    assert errors(fitted, unseen)["all"] < 0.1 < errors(MODEL, unseen)["all"]
    assert all(seconds >= 0 for seconds in fitted.rates.values())


def test_the_least_of_all_passes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that others share is slow for seconds at a time."""
    features = Features("loop", "f32")
    passes = iter([(1.0, 5.0), (4.0, 2.0), (4.0, 5.0)])

    def timed(about: str, program: Program, seed: int) -> Iterator[Sample]:
        first, second = next(passes)
        yield Sample(about, features, first, False)
        yield Sample(about, features, second, True)

    monkeypatch.setattr(calibration, "programs", lambda seed: [("one", None)])
    monkeypatch.setattr(calibration, "_timed", timed)
    shares: list[float] = []
    found = calibration.measure(0, lambda _, share: shares.append(share))
    assert [(each.seconds, each.is_held_out) for each in found] == [(1.0, False), (2.0, True)]
    assert shares == pytest.approx([0, 1 / 3, 2 / 3])


def test_what_nothing_tells_stays_as_it_was() -> None:
    sample = Sample("one", Features("loop", "f32", (("cheap.f32", 1e6),)), 5e-5, False)
    fitted = fit(MODEL, [sample])
    assert fitted.rates["dear.f64"] == pytest.approx(MODEL.rates["dear.f64"])
    assert fitted.seconds(sample.features) == pytest.approx(5e-5, rel=0.2)


def test_rates_are_kept_and_used_only_when_asked_for() -> None:
    with pytest.raises(CallError, match="run `satura calibrate` first"):
        cost_model("calibrated")
    rates = {**REFERENCE_RATES, "launch": 0.25}
    store_rates(rates)
    assert stored_rates() == rates
    assert cost_model("calibrated").rates["launch"] == 0.25
    assert cost_model().rates["launch"] != 0.25
    assert cost_model("default").rates["launch"] != 0.25
    assert cost_model("reference", threads=2, sizes={"n": 3}) == CostModel(sizes={"n": 3})


def test_rates_that_cannot_be_kept_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(calibration, "measure", lambda *_: pytest.fail("measured"))
    result = CliRunner().invoke(app, ["calibrate", "--json"])
    assert result.exit_code == 1 and not result.stdout
    assert "rates cannot be kept in" in str(result.exception)
    with pytest.raises(FileError, match="name another one in SATURA_CACHE"):
        store_rates(REFERENCE_RATES)


def test_a_profile_by_rates_that_were_not_measured_is_refused_as_a_run_is(model: Path) -> None:
    for command in (["run"], ["bench", "--profile"]):
        result = CliRunner().invoke(app, [*command, str(model), "--cost", "calibrated"])
        assert isinstance(result.exception, CallError), command


def test_an_unknown_cost_model_is_one_clear_error() -> None:
    with pytest.raises(CallError, match="no cost model 'fastest'; choose from"):
        satura.compile(next(programs())[1], cost="fastest")


GOOD = {"version": VERSION, "target": "cpu", "rates": dict(REFERENCE_RATES)}


@pytest.mark.parametrize(
    "content",
    [
        None, [], "text", {}, {**GOOD, "version": VERSION + 1}, {**GOOD, "target": "other"},
        {**GOOD, "rates": {}}, {**GOOD, "rates": [1.0]},
        *(
            {**GOOD, "rates": {**REFERENCE_RATES, "launch": wrong}}
            for wrong in (-1e-9, float("nan"), float("inf"), 2.0, "1e-6", None, True, 1)
        ),
        {**GOOD, "rates": {**REFERENCE_RATES, "unknown": 1e-9}},
    ],
)  # fmt: skip
def test_what_is_no_rates_counts_as_absent(content: object) -> None:
    assert checked_rates(GOOD, "cpu") == REFERENCE_RATES
    assert checked_rates(content, "cpu") is None


def test_a_damaged_file_counts_as_absent() -> None:
    store_rates(REFERENCE_RATES)
    (file,) = (path for path in default_cache("rates").folder.iterdir() if path.is_file())
    file.write_bytes(file.read_bytes()[:-20])
    assert stored_rates() is None
    file.write_text(json.dumps({**GOOD, "target": host_target().identity}))
    assert stored_rates() is None  # nobody's checksum


@pytest.mark.parametrize("is_exact", [False, True])
def test_kernels_are_those_that_their_costs_are_of(
    is_exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU that multiplies f32 in parts, where a program is not exact."""
    build = Builder()
    x, w = build.input("x", DType.F32, (512, 64)), build.constant(np.ones((64, 64), np.float32))
    program = build.program({"y": build.matmul(x, w)})
    monkeypatch.setattr(Target, "multiplies_matrices_of_bf16", True)
    # What runs it has no such instructions, perhaps.
    monkeypatch.setattr(problem, "multiplies_in_parts", lambda *shape: False)
    precision = "exact" if is_exact else "fp32"
    schedule = satura.compile(program, 1, precision, rules="none").rewritten.schedule
    (dispatch,) = schedule.dispatches
    assert dispatch.features is not None
    assert schedule.is_exact == is_exact
    assert ("parted" in dispatch.features.summed) is not is_exact
