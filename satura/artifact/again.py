"""The half of a saved program that is data: its schedule, to be compiled again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from satura.artifact.container import Container, natural, of
from satura.artifact.own_ops import check_declared
from satura.artifact.types import type_of
from satura.rewrite.errors import ArtifactError, ProgramError
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.extract.schedule_text import parse_schedule
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import TensorType

if TYPE_CHECKING:
    from satura.artifact.ready import ReadyProgram


def schedule_of(program: ReadyProgram) -> Schedule:
    """The schedule of a program of a file, checked. Raises ArtifactError where it has none."""
    number = natural(program.row["schedule"])
    return schedule_in(program.file, number, program.inputs, program.outputs)


def schedule_in(
    file: Container, number: int, inputs: Mapping[str, TensorType],
    outputs: Mapping[str, TensorType],
) -> Schedule:  # fmt: skip
    """The schedule in section `number` of the file, checked: its types are inferred, and each of
    its dispatches looked at.

    Raises ArtifactError where it is none, or has other inputs or outputs, and where it has ops of
    users that are not declared so here.
    """
    check_declared(file)
    try:
        header = file.header
        sources = {}
        for label, row, section in of(list, header["sources"]):
            type_ = type_of(row)
            array = file.section(natural(section)).view(type_.dtype.numpy)
            constant = Constant(array.reshape(tuple(map(static, type_.shape))))
            if constant.label != label:
                raise ProgramError(f"the constant {label} is another one")
            sources[of(str, label)] = constant
        content = bytes(file.section(number).data)
        schedule = parse_schedule(content.decode(errors="surrogatepass"), sources)
        program = schedule.program
        nodes = program.nodes
        if [(nodes[index].input_name, nodes[index].type) for index in program.inputs] != list(
            inputs.items()
        ) or [(name, nodes[index].type) for name, index in program.outputs] != list(
            outputs.items()
        ):
            raise ProgramError("the schedule has other inputs or outputs")
        is_host = any(dispatch.form is Form.HOST for dispatch in schedule.dispatches)
        if is_host or any(node.op.user for node in nodes):
            raise ProgramError("the schedule calls Python")
    except (ProgramError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{file.path} is damaged: {error}; save it again") from error
    return schedule
