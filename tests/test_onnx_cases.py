"""The onnx package's own node tests: each loads, and gives the shipped outputs.

All of them are interpreted; compiled they are in the deep and the long tier. Inputs that decide a
shape become constants where a case would need the host or be refused, as they are in models. What
has no lowering must be listed here, by op; what is refused must be refused for a listed reason.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from tests.onnx_cases import Outcome, cases, compiled_outcomes, interpreted, outcome_of

HOST_OPS = {
    "ArrayFeatureExtractor", "Adagrad", "Adam", "BatchNormalization", "Binarizer", "BitCast",
    "Col2Im", "CumProd", "DFT", "DeformConv", "Det", "Dropout", "FlexAttention", "GRU",
    "Einsum", "LSTM", "MaxUnpool", "MelWeightMatrix", "Momentum", "NonMaxSuppression", "NonZero",
    "OptionalGetElement", "OptionalHasElement", "RNN", "RandomUniformLike", "Range",
    "ReverseSequence",
    "RoiAlign", "ScatterElements", "ScatterND", "TensorScatter", "TfIdfVectorizer", "TopK",
    "TreeEnsemble", "Unique",
}  # fmt: skip
REFUSED = (
    "element type", "only tensors are supported", "control flow", "depends on data",
    "is not known", "opset 8 is not supported", "no reference implementation", "domain",
    "is not installed",
)  # fmt: skip
SAMPLE = sorted(cases())[::16]


@cache
def outcomes() -> tuple[Outcome, ...]:
    """All cases, interpreted once."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tuple(outcome_of(case, interpreted) for case in cases().values())


def test_results_equal_the_shipped_ones() -> None:
    assert not {outcome.name: outcome.wrong for outcome in outcomes() if outcome.wrong}


def test_most_cases_run_without_the_host() -> None:
    native = [o for o in outcomes() if not o.host and not o.refused and not o.wrong]
    assert len(native) > 0.78 * len(outcomes())


def test_only_listed_ops_run_on_the_host() -> None:
    found = {op for outcome in outcomes() for op in outcome.host}
    assert found == HOST_OPS


def test_refusals_have_a_reason() -> None:
    unclear = [o for o in outcomes() if o.refused and not any(r in o.refused for r in REFUSED)]
    assert not unclear


@pytest.mark.deep
def test_a_sample_compiles() -> None:
    check_compiled(compiled_outcomes(SAMPLE))


@pytest.mark.long
def test_all_compile() -> None:
    check_compiled(compiled_outcomes(sorted(cases())))


def check_compiled(found: dict[str, Outcome]) -> None:
    """None is wrong or kills its process, and none is refused that the interpreter runs."""
    assert not {name: outcome.wrong for name, outcome in found.items() if outcome.wrong}
    refused = {outcome.name for outcome in outcomes() if outcome.refused}
    assert {name for name, outcome in found.items() if outcome.refused} <= refused
