"""Small files that ask for too much, and names of models that stand for no file: one error each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper

import satura
from satura.rewrite.errors import ModelError, SaturaError, UnsupportedError
from satura.rewrite.onnx import importer as loading
from satura.rewrite.onnx.load import load
from satura.rewrite.types import dims
from satura.rewrite.types.dims import symbol
from tests.onnx_models import make_model, node
from tests.tiers import deep_but


def doubling(depth: int, op_type: str = "Relu") -> ModelProto:
    """Functions each of which calls the next one twice."""
    functions = []
    for level in range(depth):
        calls = [
            helper.make_node(f"f{level + 1}", [read], [made], domain="twice")
            for read, made in (("a", "t"), ("t", "b"))
        ]
        last = [helper.make_node(op_type, ["a"], ["b"])]
        body = calls if level + 1 < depth else last
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("twice", 1)]
        functions.append(helper.make_function("twice", f"f{level}", ["a"], ["b"], body, imports))
    first = helper.make_node("f0", ["x"], ["y"], domain="twice")
    return make_model([first], {"x": [4]}, functions=functions)


@pytest.mark.parametrize("op_type", ["Relu", "Identity"])
def test_functions_that_double_are_refused(op_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(load(doubling(5)).nodes) == 17
    monkeypatch.setattr(loading, "MOST_INLINED", 1000)
    with pytest.raises(UnsupportedError, match=r"in its body: .* more than 1,000 nodes in all"):
        load(doubling(60, op_type).SerializeToString())


def outer_products(count: int, sizes: list[str]) -> ModelProto:
    """Each step makes a vector of all products of two elements of the last one."""
    nodes = [node("Concat", " ".join(sizes), "v0", axis=0)]
    for step in range(count):
        nodes += [
            node("Unsqueeze", f"v{step} one", f"column{step}"),
            node("Unsqueeze", f"v{step} zero", f"row{step}"),
            node("MatMul", f"column{step} row{step}", f"m{step}"),
            node("Reshape", f"m{step} flat", f"v{step + 1}"),
        ]
    nodes.append(node("Relu", f"v{count}", "y"))
    return make_model(
        nodes, {name: [f"n_{name}"] for name in sizes}, {"one": [1], "zero": [0], "flat": [-1]}
    )


@pytest.mark.parametrize("sizes", deep_but([["a"]], [["a"], ["a", "b", "c", "d"]]), ids=len)
def test_sizes_that_double_are_refused(sizes: list[str]) -> None:
    assert load(outer_products(2, sizes)).outputs
    with pytest.raises(UnsupportedError, match="a size would be the product"):
        load(outer_products(30, sizes))


def test_the_longest_product_of_sizes_is_still_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dims, "MOST_TERMS", 4)
    monkeypatch.setattr(dims, "MOST_FACTORS", 2)
    a, b = symbol("a"), symbol("b")
    assert (a + 1) * (b + 1) == a * b + a + b + 1
    for factors in ((a * b, b), (a + 1, b + a + 1)):
        with pytest.raises(SaturaError, match="a size would be"):
            _ = factors[0] * factors[1]


def test_graphs_in_graphs_in_graphs_are_refused() -> None:
    model = make_model([], {"x": [4]})
    graph = model.graph
    for _ in range(3000):
        graph.node.append(node("If"))
        attribute = graph.node[0].attribute.add(name="then_branch", type=5)
        graph = attribute.g
    with pytest.raises(ModelError, match="nested too deep"):
        load(model)


ONES = [1] * 70
RANKS: dict[str, tuple[ModelProto, str]] = {
    "input": (make_model([node("Relu")], {"x": ONES}), "input 'x'"),
    "initializer": (make_model([node("Add", "x c")], {"x": [4]}), "tensor 'c'"),
    "reshape": (
        make_model([node("Reshape", "x s")], {"x": [4]}, {"s": [4, *ONES[1:]]}), "Reshape"
    ),
    "expand": (make_model([node("Expand", "x s")], {"x": [4]}, {"s": ONES}), "Expand"),
}  # fmt: skip
RANKS["initializer"][0].graph.initializer.append(
    helper.make_tensor("c", TensorProto.FLOAT, ONES, [1.0])
)


@pytest.mark.parametrize("case", RANKS)
def test_more_axes_than_arrays_may_have(case: str) -> None:
    model, name = RANKS[case]
    with pytest.raises(SaturaError, match=f"{name}.* 70 axes; 64 are supported"):
        load(model)


@pytest.mark.parametrize("extents", [[2**62, 2], [2**62, 4, 0]], ids=str)
def test_tensors_that_memory_cannot_hold(extents: list[int]) -> None:
    """One without elements has extents that no array can have."""
    with pytest.raises(ModelError, match=r"Expand.* elements, more than any memory holds"):
        load(make_model([node("Expand", "x s")], {"x": [1]}, {"s": extents}))


@pytest.mark.parametrize("version", [2**31, 2**62, -(2**63)])
@pytest.mark.parametrize("domain", ["", "somebody's", "ai.onnx.ml"])
def test_versions_that_are_none(version: int, domain: str) -> None:
    model = make_model([node("Relu")], {"x": [4]})
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 17))
    model.opset_import.append(helper.make_opsetid(domain, version))
    with pytest.raises(ModelError, match=f"{version} is not a version"):
        load(model)


@pytest.mark.parametrize("version", [2**31, 2**62])
def test_a_version_of_the_format_that_is_none(version: int) -> None:
    model = make_model([node("Relu")], {"x": [4]})
    model.ir_version = version
    with pytest.raises(ModelError, match=f"{version} is not a version"):
        load(model)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a\0b", "null"),
        ("x" * 5000, "too long"),
        ("x/" * 5000, "too long"),
        ("\ud800", "surrogates"),
        ("/dev/zero", "not a regular file"),
        ("/dev/null", "not a regular file"),
    ],
    ids=["null", "long name", "long path", "surrogate", "zeros", "nothing"],
)
def test_names_of_no_model(name: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason) as caught:
        load(name)
    str(caught.value).encode()


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="not a regular file"):
        load(tmp_path / "model.onnx")


def test_a_file_longer_than_a_model_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ModelError, match="longer than 2 GiB"):
        load(path)


PLACES: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "circle": lambda path: path.symlink_to(path),
    "a\0b": lambda path: None,
    "x" * 5000: lambda path: None,
    "x/" * 5000: lambda path: None,
}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[:4])
def test_external_data_that_is_no_file(place: str, tmp_path: Path) -> None:
    model = make_model([node("Add", "x c")], {"x": [4]})
    tensor = model.graph.initializer.add(name="c", data_type=1, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=place)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    PLACES[place](tmp_path / place)
    with pytest.raises(ModelError, match="external data of tensor 'c'"):
        load(path)


def test_functions_that_double_are_not_inlined_for_what_depends_on_data() -> None:
    model = doubling(60, "NonZero")
    with pytest.raises(
        UnsupportedError, match=r"\(NonZero\).* than 100,000 nodes in all"
    ) as caught:
        satura.compile(model, threads=1)
    message = str(caught.value)
    assert len(message) < 1000
    assert [f"(f{level}) " in message for level in (0, 2, 3, 56, 57, 59)] == [
        True, True, False, False, True, True,
    ]  # fmt: skip
