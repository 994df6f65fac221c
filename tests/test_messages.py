"""Messages are one readable line, whatever a model calls its values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import satura
from satura.errors import FileError, HostFallbackWarning, ModelError, SaturaError
from satura.rewrite.onnx.load import load
from tests.onnx_models import make_model, node

ODD = {"a\nb": r"'a\nb'", "\x1b[31mred": r"'\x1b[31mred'"}
LONG = "n" * 5000


def unknown(name: str) -> ModelProto:
    return make_model([node("Neg", name)], {"x": (2,)})


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("verb", [satura.load, satura.optimize, satura.compile])
def test_what_is_not_printable_is_escaped(odd: str, verb: Callable[[ModelProto], object]) -> None:
    model = unknown("x")
    model.graph.node[0].input[0] = odd
    with pytest.raises(ModelError) as caught:
        verb(model)
    assert str(caught.value).isprintable() and ODD[odd] in str(caught.value)
    with pytest.raises(FileError) as failed:
        satura.open(odd)
    assert str(failed.value).isprintable() and ODD[odd] in str(failed.value)


def test_long_names_are_shortened() -> None:
    with pytest.raises(ModelError, match=r"reads 'n+…n+', which nothing computes") as caught:
        load(unknown(LONG))
    assert len(str(caught.value)) < 400


def test_warnings_are_as_readable() -> None:
    model = make_model([node("Det", "x", "y")], {"x": (3, 3)})
    model.graph.node[0].name = f"a\n{LONG}"
    with pytest.warns(HostFallbackWarning, match=r"node 'a\\nn+…") as caught:
        load(model)
    assert all(str(each.message).isprintable() for each in caught)


def test_lines_that_are_meant_stay() -> None:
    assert str(SaturaError(f"a program:\n  {LONG}\x1b")) == f"a program:\n  {LONG}\\x1b"


def test_what_is_given_is_named_where_no_memory_holds_it() -> None:
    weight: dict[str, object] = {"w": np.ones(4, np.float32)}
    model = make_model([node("Mul", "x w")], {"x": (1 << 40, 4)}, weight)
    with pytest.raises(ModelError, match=r"^input 'x': f32\[1099511627776, 4\] would have"):
        load(model)


def test_external_data_of_an_attribute_names_the_node() -> None:
    text = "g (float[2] x) => (float[2] y) { c = Constant<value=float[2] {1,2}>() y = Mul(x, c) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    tensor = model.graph.node[0].attribute[0].t
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../c")
    with pytest.raises(ModelError, match=r"^external data of attribute 'value' of node .*'c': "):
        load(model.SerializeToString())


def test_scales_that_are_too_large_are_said_to_be() -> None:
    scales: dict[str, object] = {"s": np.array([1, 1e12], np.float32)}
    model = make_model([node("Resize", "x - s")], {"x": (2, 2)}, scales)
    with pytest.raises(ModelError, match=r"\(Resize\).* more than 0 and less than 16777216"):
        load(model)
