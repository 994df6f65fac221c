"""Sequences of tensors whose number is known are lists at load; models give none back."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from satura.rewrite.errors import ModelError, SaturaError, UnsupportedError
from satura.rewrite.onnx.load import load
from tests.onnx_models import F32, I64, agrees_with_onnxruntime, make_model, node, random_input

CONSTANTS = {
    "two": np.int64(2), "last": np.int64(-1), "listed": np.array([1, 3, 1]), "three": np.int64(3),
}  # fmt: skip
SPLIT = node("SplitToSequence", "x two", "s", axis=1)
ROWS = node("SplitToSequence", "x", "s", axis=1, keepdims=0)


def appended() -> list[NodeProto]:
    """A loop that appends x plus its step's number to a sequence."""
    body = helper.make_graph(
        [
            node("Cast", "i", "number", to=F32), node("Add", "x number", "t"),
            node("SequenceInsert", "before t", "after"), node("Identity", "c", "more"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", I64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("before", F32, None),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("after", F32, None),
        ],
    )  # fmt: skip
    empty = helper.make_node("SequenceEmpty", [], ["none"])
    loop = helper.make_node("Loop", ["three", "", "none"], ["s"], body=body)
    return [empty, loop, node("ConcatFromSequence", "s", axis=0)]


@pytest.mark.parametrize(
    "nodes",
    [
        [SPLIT, node("SequenceAt", "s last")],
        [node("SplitToSequence", "x listed", "s", axis=-1), node("SequenceAt", "s last")],
        [ROWS, node("ConcatFromSequence", "s", axis=-1, new_axis=1)],
        [ROWS, node("SequenceErase", "s two", "t"), node("ConcatFromSequence", "t", axis=0)],
        [ROWS, node("SequenceErase", "s", "t"), node("SequenceAt", "t last")],
        [ROWS, node("SequenceAt", "s two", "a"), node("SequenceInsert", "s a last", "t"),
         node("ConcatFromSequence", "t", axis=0)],
        [SPLIT, node("Identity", "s", "t"), node("SequenceLength", "t")],
        appended(),
    ],
)  # fmt: skip
def test_sequences_agree_with_onnxruntime(nodes: list[NodeProto]) -> None:
    agrees_with_onnxruntime(make_model(nodes, {"x": (3, 5)}, CONSTANTS), {"x": random_input(3, 5)})


@pytest.mark.parametrize(
    ("nodes", "error", "reason"),
    [
        ([node("SplitToSequence", "x", "y")], UnsupportedError, "output 'y' is a sequence"),
        ([ROWS, node("Relu", "s")], UnsupportedError, "input 0 is a sequence"),
        ([ROWS, node("SequenceInsert", "s s")], UnsupportedError, "input 1 is a sequence"),
        ([node("SequenceAt", "x two")], ModelError, "input 0 is a tensor, not a sequence"),
        ([SPLIT, node("SequenceAt", "s three")], ModelError, "out of range for 3 tensors"),
    ],
)
def test_what_is_not_a_sequence_or_not_a_tensor(
    nodes: list[NodeProto], error: type[SaturaError], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        load(make_model(nodes, {"x": (3, 5)}, CONSTANTS))
