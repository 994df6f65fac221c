"""Ops whose results have parts of open sizes, or images of constant sizes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import satura
from satura.rewrite.errors import CallError, ModelError
from tests.onnx_models import Shape, Typed, make_model, node
from tests.onnxruntime_reference import assert_close, run


@pytest.mark.parametrize("shape", [[-1, 2], [2, -1], [0, -1, 2]])
def test_open_sizes_split_where_a_call_lets_them(shape: list[int]) -> None:
    nodes = [node("Exp", "x", "e"), node("Reshape", "e shape", "y")]
    inputs: dict[str, Shape | Typed] = {"x": ("n", "m"), "shape": Typed([len(shape)])}
    compiled = satura.compile(make_model(nodes, inputs))
    for sizes in ((3, 4), (1, 2)):
        x = np.ones(sizes, np.float32)
        wanted = np.exp(x).reshape([size or sizes[0] for size in shape])
        found = compiled.run({"x": x, "shape": np.array(shape)})["y"]
        assert found.shape == wanted.shape
        assert_close(found, wanted)
    with pytest.raises(CallError, match="elements do not split into parts of"):
        compiled.run({"x": np.ones((3, 3), np.float32), "shape": np.array(shape)})


def test_parts_of_a_fixed_axis_need_their_number_since_opset_18() -> None:
    model = make_model([node("Split", "x", "y z")], {"x": (6,)}, opset=18, outputs=("y", "z"))
    with pytest.raises(ModelError, match="neither sizes nor num_outputs"):
        satura.load(model)


@pytest.mark.parametrize(
    ("opset", "give"),
    [
        (11, "sizes as attribute 'split'"), (13, "sizes as input 'split'"),
        (18, r"num_outputs=2, and the last part may be smaller, or sizes as input 'split'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("extent", [5, "2*k+1", "n"])
def test_parts_that_are_not_known_are_told_how_to_be(
    extent: int | str, opset: int, give: str
) -> None:
    inputs: dict[str, Shape | Typed] = {"x": (extent,), "z": ("k",)}
    model = make_model([node("Split", "x", "a b")], inputs, opset=opset, outputs=("a", "b"))
    x, z = np.ones(5, np.float32), np.ones(2, np.float32)
    with pytest.raises((ModelError, CallError), match=rf"Split.*: give {give}"):
        satura.compile(model, threads=1).run({"x": x, "z": z})


@pytest.mark.parametrize(("size", "aligned"), [([1, 3, 4, 5], 0), ([2, 1, 2, 4, 3], 1)])
def test_affine_grids_are_those_of_onnxruntime(size: list[int], aligned: int) -> None:
    rank = len(size) - 2
    grid = helper.make_node("AffineGrid", ["x", "size"], ["y"], align_corners=aligned)
    model = make_model([grid], {"x": (size[0], rank, rank + 1)}, {"size": size}, opset=20)
    x = np.random.default_rng(0).standard_normal((size[0], rank, rank + 1)).astype(np.float32)
    (wanted,) = run(model, {"x": x})
    found = satura.compile(model).run({"x": x})["y"]
    assert found.shape == wanted.shape
    assert_close(found, wanted)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("given", [True, False], ids=["given", "open"])
def test_the_middle_of_an_affine_grid_is_0(aligned: int, given: bool) -> None:
    """Where a nearest element is looked for, a bit more is another one."""
    for width in (1, 3, 7, 11, 31, 47, 51):
        grid = helper.make_node("AffineGrid", ["x", "size"], ["y"], align_corners=aligned)
        size = [1, 1, width, width]
        inputs: dict[str, Shape | Typed] = {"x": (1, 2, 3)}
        arguments = {"x": np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)}
        nodes, constants = [grid], {"size": size}
        if not given:
            nodes, constants = [node("Shape", "image", "size"), grid], {}
            inputs["image"] = (1, 1, "n", "n")
            arguments["image"] = np.zeros(size, np.float32)
        model = make_model(nodes, inputs, constants, opset=20)
        exact = np.arange(1 - width, width, 2) / (width if not aligned else max(width - 1, 1))
        found = satura.interpret(model, arguments)["y"][0, 0, :, 0]
        wanted = exact.astype(np.float32) if width > 1 or not aligned else np.array([-1])
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("extent", [3, 7])
def test_a_number_of_parts_that_does_not_fit_is_named_with_the_extent(extent: int) -> None:
    """Four parts of two are more than seven; four of two and none are eight."""
    outputs = tuple("abcde")

    def of(extent: int) -> onnx.ModelProto:
        nodes = [node("Split", "x", " ".join(outputs), num_outputs=5)]
        return make_model(nodes, {"x": (extent,)}, opset=18, outputs=outputs)

    with pytest.raises(ModelError, match=rf"num_outputs 5 does not fit extent {extent}: .* -1;"):
        satura.load(of(extent))
    assert len(run(of(8), {"x": np.ones(8, np.float32)})[4]) == 0
    assert satura.compile(of(8)).run({"x": np.ones(8, np.float32)})["e"].shape == (0,)
