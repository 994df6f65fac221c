"""Ops of users that a saved program was compiled with: their names and formulas in its file.

The machine code has what the formulas said. For other sizes the program is compiled of its
schedule, in which they are names: the ops have to be declared, and to mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from satura.artifact.container import Container, of
from satura.rewrite.errors import ArtifactError, advice
from satura.rewrite.system.interrupts import imported

if TYPE_CHECKING:
    from satura.rewrite.extract.schedule import Schedule


def formulas_in(schedules: Iterable[Schedule]) -> dict[str, str]:
    """The formula of each op of a user that stands in schedules."""
    from satura.rewrite.ops.registry import user_op

    nodes = (node for schedule in schedules for node in schedule.program.nodes)
    found = (user_op(node.op, node.attributes) for node in nodes)
    users = {each.name: each.user for each in found if each is not None}
    return {name: user.formula.text for name, user in users.items() if user and user.formula}


def check_declared(file: Container) -> None:
    """Raise ArtifactError where an op of the file is not declared here, or means something else."""
    for name, formula, here in _compared(file):
        if here is None:
            what = advice("import the file that declares it first", "give its file, --with FILE.py")
            raise ArtifactError(
                f"{file.path} was compiled with an op that is not known here, '{name}': {what}"
            )
        if here != formula:
            raise ArtifactError(
                f"{file.path} was compiled with the op '{name}' as {formula}, and here it is"
                f" {here}: save it again"
            )


def changes(file: Container) -> list[str]:
    """What to say of the ops that mean something else here than in the machine code of the file."""
    return [
        f"{file.path} computes the op '{name}' as {formula}, as it was saved, and here it is"
        f" {here}: save it again"
        for name, formula, here in _compared(file)
        if here not in (None, formula)
    ]


def _compared(file: Container) -> Iterator[tuple[str, str, str | None]]:
    """The ops of the file, their formulas in it, and those here; None of what is not declared."""
    registry = imported("satura.rewrite.ops.registry")
    for name, formula in of(dict, file.header.get("ops", {})).items():
        op = registry.USER_OPS.get(name) if registry else None
        here = op.user.formula if op and op.user else None
        yield of(str, name), of(str, formula), here.text if here else None
