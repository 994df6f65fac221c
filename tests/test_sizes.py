"""Typical sizes: what costs are computed for, and never what is allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import satura
from satura.pipeline.inputs import parse_sizes, random_inputs_of
from satura.pipeline.sizes import parse_dims, typical_sizes
from satura.rewrite.errors import CallError
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import make_model, node


def doubled() -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (symbol("batch"), symbol("seq")))
    return build.program({"y": build.binary("add", x, x)})


def test_ranges_count_by_their_geometric_mean() -> None:
    assert typical_sizes(doubled(), {"batch": 3, "seq": (2, 512)}) == {"batch": 3, "seq": 32}
    assert typical_sizes(doubled(), {"seq": (0, 256)}) == {"seq": 16}, "0 counts as 1"
    assert typical_sizes(doubled(), None) == {}


def test_a_size_that_others_decide_may_be_given_where_it_is_theirs() -> None:
    joined = [node("Concat", "x x", "z", axis=0), node("Add", "z bias", "y")]
    model = make_model(joined, {"x": ["past"], "bias": ["total"]})
    program = satura.load(model)
    assert program.symbols == {"past"}
    found = random_inputs_of(model, program, {"total": 14, "past": 7})
    assert {name: each.shape for name, each in found.items()} == {"x": (7,), "bias": (14,)}
    with pytest.raises(CallError, match=r"inputs take total = .*past.*, here 14 and not 8; arrays"):
        random_inputs_of(model, program, {"total": 8, "past": 7})
    with pytest.raises(CallError, match="there is no size 'n'; the sizes are"):
        random_inputs_of(model, program, {"n": 8})


def test_an_axis_that_others_decide_is_refused_with_its_value() -> None:
    build = Builder()
    mask = build.input("mask", DType.F32, (symbol("past") + symbol("new"),))
    given = [build.input(name, DType.F32, (symbol(name),)) for name in ("past", "new")]
    program = build.program({"y": mask, "z": given[0], "u": given[1]})
    sizes = {"mask": 47, "past": 16, "new": 32}
    arrays = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
    meant = r"'mask': axis 0 must be new\+past, which is 48 \(new=32, past=16\), not 47$"
    with pytest.raises(CallError, match=meant):
        satura.interpret(program, arrays)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"length": 3}, r"no size 'length' in the model; its sizes are \['batch', 'seq'\]"),
        ({"seq": 0}, r"size of 'seq' is 0; such sizes are from 1 to 2\*\*48$"),
        (
            {"seq": (5, 2)},
            r"is \(5, 2\); such sizes are from 1 to 2\*\*48, ranges from 0, the lower",
        ),
        ({"seq": (0, 0)}, r"is \(0, 0\); such sizes are from 1 to 2\*\*48"),
        ({"seq": (-1, 4)}, r"is \(-1, 4\); such sizes are from 1 to 2\*\*48"),
        ({"seq": (1, 2, 3)}, "must be a size or a range"),
        ({"seq": "12"}, "must be a size or a range"),
        ({"seq": True}, "must be a size or a range"),
        ({"seq": (1, 2.5)}, "must be a size or a range"),
    ],
)
def test_what_is_no_size_is_one_clear_error(dims: dict[str, int], message: str) -> None:
    with pytest.raises(CallError, match=message):
        satura.compile(doubled(), dims=dims)


def test_texts_are_read() -> None:
    assert parse_dims(["batch=1,seq=2:512"]) == {"batch": 1, "seq": (2, 512)}
    assert parse_sizes(["batch=1,seq=2", "n=3"]) == {"batch": 1, "seq": 2, "n": 3}
    assert parse_dims(["batch=1", "seq=2:512"]) == {"batch": 1, "seq": (2, 512)}
    for wrong in ("seq", "seq=", "=3", "seq=a", "seq=1:", "seq=:2", "seq=1:b", "seq=-1"):
        with pytest.raises(CallError, match="a size is NAME=N or NAME=LOW:HIGH"):
            parse_dims([wrong])


def test_sizes_are_remembered_apart_and_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    first = satura.compile(doubled(), dims={"seq": (10, 1000)})
    assert not satura.compile(doubled(), dims={"seq": 7}).is_remembered
    assert satura.compile(doubled(), dims={"seq": 100}).is_remembered  # the mean of the first
    for shape in ((1, 5), (3, 2000), (2, 100)):
        x = np.ones(shape, np.float32)
        np.testing.assert_array_equal(first(x), 2 * x)
