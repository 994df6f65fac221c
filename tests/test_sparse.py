"""Sparse tensors of models are made dense, whether initializers or values of Constant nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, helper, numpy_helper

import satura
from satura.errors import ModelError, SaturaError, UnsupportedError
from satura.rewrite.onnx.write.save import to_model
from tests.onnx_models import make_model, node
from tests.onnxruntime_reference import run

X = np.ones((2, 3), np.float32)
VALUES = np.array([2, 5], np.float32)
DENSE = np.array([[0, 2, 0], [0, 0, 5]], np.float32)
FLAT, ROWS = np.array([1, 5]), np.array([[0, 1], [1, 2]])


def sparse(
    indices: NDArray[np.int64], dims: tuple[int, ...] = (2, 3), values: NDArray[np.generic] = VALUES
) -> SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"), numpy_helper.from_array(indices, "places"), dims
    )


def constant(indices: NDArray[np.int64]) -> NodeProto:
    return node("Constant", "", "w", sparse_value=sparse(indices))


def initialized(tensor: SparseTensorProto) -> ModelProto:
    model = make_model([node("Mul", "x w", "y")], {"x": X.shape})
    model.graph.sparse_initializer.append(tensor)
    return model


def _branch(indices: NDArray[np.int64]) -> ModelProto:
    """A branch that has its own."""

    def graph(op: str) -> GraphProto:
        result = helper.make_graph([node(op, "x w", op)], op, [], [onnx.ValueInfoProto(name=op)])
        result.sparse_initializer.append(sparse(indices))
        return result

    choice = node("If", "c", "y", then_branch=graph("Mul"), else_branch=graph("Add"))
    return make_model([choice], {"x": X.shape}, {"c": np.array(True)})


def _function(indices: NDArray[np.int64]) -> ModelProto:
    imports = [helper.make_opsetid("", 17)]
    steps = [constant(indices), node("Mul", "a w", "b")]
    scaled = helper.make_function("own", "scaled", ["a"], ["b"], steps, imports)
    call = helper.make_node("scaled", ["x"], ["y"], domain="own")
    return make_model([call], {"x": X.shape}, functions=[scaled])


MODELS = {
    "an initializer": lambda indices: initialized(sparse(indices)),
    "a Constant": lambda indices: make_model(
        [constant(indices), node("Mul", "x w", "y")], {"x": X.shape}
    ),
    "in a branch": _branch,
    "in a function": _function,
}


@pytest.mark.parametrize("order", [1, -1], ids=["ascending", "descending"])
@pytest.mark.parametrize("indices", [FLAT, ROWS], ids=["flat", "rows"])
@pytest.mark.parametrize("place", MODELS)
def test_they_are_dense(place: str, indices: NDArray[np.int64], order: int, tmp_path: Path) -> None:
    model = MODELS[place](indices[::order].copy())
    given = model.SerializeToString()
    expected = X * DENSE
    expected[tuple(ROWS.T)] = VALUES[::order]
    (tmp_path / "m.onnx").write_bytes(given)
    for source in (model, given, tmp_path / "m.onnx"):
        np.testing.assert_array_equal(satura.interpret(source, {"x": X})["y"], expected)
    assert model.SerializeToString() == given  # that of the caller
    np.testing.assert_array_equal(run(to_model(satura.optimize(model)), {"x": X})[0], expected)


def test_other_elements_and_none_at_all() -> None:
    for values in (np.array([2, 5], np.int64), np.array([1.5, 2], np.float16)):
        model = make_model(
            [node("Constant", "", "y", sparse_value=sparse(ROWS, values=values))], {"x": [1]}
        )
        got = satura.interpret(model, {"x": np.ones(1, np.float32)})["y"]
        assert got.dtype == values.dtype and got[0, 1] == values[0] and got.sum() == values.sum()
    for shape in ((0,), (0, 2)):
        empty = sparse(np.zeros(shape, np.int64), values=VALUES[:0])
        assert not satura.interpret(initialized(empty), {"x": X})["y"].any()


WRONG = {
    "an index beyond": (sparse(np.array([1, 6])), ModelError, r"the index 6 is outside .*\[2, 3\]"),
    "a negative row": (sparse(ROWS - 1), ModelError, r"the index \[-1, 0\] is outside"),
    "an index twice": (sparse(FLAT * 0), ModelError, "two of its values have the same index"),
    "an index too few": (sparse(FLAT[:1]), ModelError, r"as many i64 indices as values, or 2 for"),
    "no room": (sparse(FLAT, (2**20, 2**20)), UnsupportedError, "w'.* memory has|w' and others"),
    "no place": (sparse(FLAT[:0], (0, 2**62, 4), VALUES[:0]), ModelError, "extents that no array"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_named(case: str) -> None:
    tensor, error, message = WRONG[case]
    with pytest.raises(SaturaError, match=message) as raised:
        satura.load(initialized(tensor))
    assert type(raised.value) is error and "'w'" in str(raised.value)


def test_many_that_are_large_together() -> None:
    """A few bytes ask for more than a model holds."""
    model = initialized(sparse(FLAT, (2**14, 2**14)))
    for name in "abc":
        model.graph.sparse_initializer.add().CopyFrom(sparse(FLAT, (2**14, 2**14)))
        model.graph.sparse_initializer[-1].values.name = name
    with pytest.raises(UnsupportedError, match=r"take 4,294,967,296 bytes|memory has"):
        satura.load(model)
