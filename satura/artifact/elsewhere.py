"""The model in the file of a saved program: searched again for sizes that the program excludes.

It is written where there are such sizes only, without its larger weights: these are constants of
the file, mostly those of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError
from onnx import ModelProto

from satura.artifact.container import Container, Writer, natural, of
from satura.backend.plan.plans import Elsewhere
from satura.rewrite.errors import ArtifactError, ModelError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.onnx.cut import with_values
from satura.rewrite.onnx.files import ModelApart, read_apart
from satura.rewrite.onnx.load import load_at
from satura.rewrite.onnx.narrow import BITS
from satura.rewrite.onnx.tensors import initializer
from satura.rewrite.program.program import Program
from satura.rewrite.types.sequence_type import are_alike
from satura.rewrite.types.tensor_type import TensorType, open_sizes

if TYPE_CHECKING:
    from satura.artifact.ready import ReadyProgram
    from satura.backend.run.signatures import Values
    from satura.rewrite.types.constant import Constant

_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")

SearchAgain = Callable[[Program, Sequence[str], bool, int, Mapping[str, int]], Schedule]
"""The schedule of a program by satura's rules of these names, exact or not, that so many threads
run at sizes."""


def elsewhere_row(
    writer: Writer,
    model: ModelApart,
    values: Values,
    rules: Sequence[str],
    large: dict[str, Constant],
) -> list[object]:
    """What the header says of a model for these values; its weights are added to those by label.

    `rules` are names.
    """
    bound = {name: np.frombuffer(data, dtype).reshape(shape) for name, dtype, shape, data in values}
    whole = with_values(model, bound)
    proto = ModelProto()
    proto.CopyFrom(whole.proto)
    weights = []
    for tensor in proto.graph.initializer:
        if tensor.data_type in BITS:
            continue
        constant = initializer(tensor, whole.weights.get(tensor.name))
        if constant.label is not None:
            weights.append([tensor.name, large.setdefault(constant.label, constant).label])
            for field in _DATA:
                tensor.ClearField(field)
    return [writer.add(proto.SerializeToString()), weights, [*rules]]


def elsewhere_in(
    program: ReadyProgram, declared: Mapping[str, TensorType], is_exact: bool, search: SearchAgain
) -> Elsewhere:
    """What `elsewhere_row` wrote of a program; `declared` are the types of the model's inputs.

    Its schedules are exact where it `is_exact`. When it is asked for one, it raises ArtifactError
    where something else was written.
    """

    def at(sizes: Mapping[str, int]) -> Schedule | None:
        found, rules = _program_at(program, sizes)
        if any(node.op.user or node.op.name == "host" for node in found.nodes):
            return None  # a saved program holds no Python
        return search(found, rules, is_exact, program.threads, sizes)

    return Elsewhere(declared, at)


def program_at(program: ReadyProgram, sizes: Mapping[str, int]) -> Program | None:
    """What the model in the file is at sizes that the program excludes; None where the file has no
    model.

    Raises ArtifactError where it is of something else.
    """
    return None if program.row["elsewhere"] is None else _program_at(program, sizes)[0]


def _program_at(program: ReadyProgram, sizes: Mapping[str, int]) -> tuple[Program, list[str]]:
    """The program of the model at these sizes, and the names of the rules that were chosen."""
    model, rules = _read(program.file, program.row["elsewhere"])
    found = load_at(model, sizes, program.inputs)
    nodes = found.nodes
    types = {nodes[index].input_name: nodes[index].type for index in found.inputs}
    here, there = (
        {name: type_.concrete(sizes) for name, type_ in each.items()}
        for each in (types, program.types_at(sizes))
    )
    if (
        here != there
        or not open_sizes(types.values()) <= sizes.keys()
        or not are_alike({name: nodes[at].type for name, at in found.outputs}, program.outputs)
    ):
        raise ArtifactError(f"{program.file.path} is damaged: it has another model; save it again")
    return found, rules


def _read(file: Container, row: object) -> tuple[ModelApart, list[str]]:
    """The model, and the names of the rules, that a row of the header tells of."""
    try:
        section, weights, names = of(list, row)
        places = {label: number for label, _, number in of(list, file.header["sources"])}
        labels = dict(of(list, weights))
        proto = ModelProto.FromString(bytes(file.section(natural(section)).data))
        for tensor in proto.graph.initializer:
            if tensor.name in labels:
                tensor.raw_data = file.section(natural(places[labels[tensor.name]])).tobytes()
        return read_apart(proto), [of(str, name) for name in of(list, names)]
    except (ArtifactError, DecodeError, KeyError, ModelError, TypeError, ValueError) as error:
        if str(file.path) in str(error):
            raise
        raise ArtifactError(f"{file.path} is damaged: {error}; save it again") from error
