"""Schedules as text, and back: the program, an empty line, and what is made of it.

    constant %2
    home %5 in %9 from [0, 4]
    dispatch row %7 computes [%3, %6, %7] reads [%0, %2] anchor %6 in %7 from [0, 0] takes 2e-06
        does row f32 near 96.0 far 0.0 constants 0.0 units 3.0 stored 32.0
        works cheap.f32 12.0 row 3.0 .
    takes 2e-06 exact

A line per constant, home and dispatch (here in three), and the predicted seconds of all, with a
word where it is exact. Nothing in it is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.features import RATES, Amount, Features
from satura.rewrite.extract.schedule import Dispatch, Form, Home, Schedule
from satura.rewrite.extract.verify import verify
from satura.rewrite.program.parse import parse
from satura.rewrite.program.reader import Reader
from satura.rewrite.types.constant import Constant

_FORMS = {form.value: form for form in Form}


def schedule_text(schedule: Schedule) -> str:
    """The text of `schedule`, complete but for the elements of large constants."""
    lines = [str(schedule.program), ""]
    lines += [f"constant %{node}" for node in schedule.constants]
    lines += [f"home %{node} {_home_text(home)}" for node, home in schedule.homes.items()]
    lines += map(_dispatch_text, schedule.dispatches)
    exact = " exact" if schedule.is_exact else ""
    return "\n".join([*lines, f"takes {schedule.seconds!r}{exact}"])


def parse_schedule(text: str, constants: Mapping[str, Constant]) -> Schedule:
    """The schedule whose text this is; `constants` are the large ones by label.

    Raises ProgramError for what is not the text of a schedule that can run.
    """
    program, _, rest = text.partition("\n\n")
    lines = [Reader(line) for line in rest.split("\n")]
    fixed: list[int] = []
    homes: dict[int, Home] = {}
    dispatches: list[Dispatch] = []
    for line in lines[:-1]:
        if line.accepts("constant"):
            fixed.append(line.node_number())
        elif line.accepts("home"):
            node = line.node_number()
            homes[node] = _home(line)
        else:
            dispatches.append(_dispatch(line))
        line.expect_end()
    seconds = lines[-1].after("takes", lines[-1].number)
    is_exact = lines[-1].accepts("exact")
    lines[-1].expect_end()
    parsed = parse(program, constants)
    if str(parsed) != program:  # equal nodes have become one: the numbers mean other nodes
        raise ProgramError("this is not how the program is written")
    schedule = Schedule(parsed, tuple(dispatches), tuple(fixed), homes, seconds, is_exact)
    verify(schedule)
    return schedule


def _home_text(home: Home) -> str:
    return f"in %{home.buffer} from [{', '.join(map(str, home.start))}]"


def _dispatch_text(dispatch: Dispatch) -> str:
    anchor = "" if dispatch.anchor is None else f" anchor %{dispatch.anchor}"
    return (
        f"dispatch {dispatch.form.value} %{dispatch.root} computes {_nodes_text(dispatch.nodes)}"
        f" reads {_nodes_text(dispatch.operands)}{anchor} {_home_text(dispatch.target)}"
        f" takes {dispatch.seconds!r}{_features_text(dispatch.features)}"
    )


def _features_text(features: Features | None) -> str:
    if features is None:
        return ""
    work = "".join(f" {name} {amount!r}" for name, amount in features.work)
    return (
        f" does {features.form} {features.dtype} near {features.near!r} far"
        f" {features.far!r} constants {features.constants!r} units {features.units!r}"
        f" stored {features.stored!r} works{work} ."
    )


def _nodes_text(nodes: Iterable[int]) -> str:
    return f"[{', '.join(f'%{node}' for node in nodes)}]"


def _home(line: Reader) -> Home:
    buffer = line.after("in", line.node_number)
    line.expect("from")
    return Home(buffer, line.dims())


def _dispatch(line: Reader) -> Dispatch:
    form = line.after("dispatch", lambda: line.word("a form"))
    if form not in _FORMS:
        raise ProgramError(f"there is no form '{form}'")
    root = line.node_number()
    line.expect("computes")
    nodes = line.items_in_brackets(line.node_number)
    line.expect("reads")
    operands = line.items_in_brackets(line.node_number)
    anchor = line.node_number() if line.accepts("anchor") else None
    home = _home(line)
    seconds = line.after("takes", line.number)
    features = _features(line) if line.accepts("does") else None
    return Dispatch(_FORMS[form], root, nodes, operands, anchor, home, seconds, features)


def _features(line: Reader) -> Features:
    form, dtype = line.word("a form"), line.dtype().value
    near = line.after("near", line.number)
    far = line.after("far", line.number)
    constants = line.after("constants", line.number)
    units = line.after("units", line.number)
    stored = line.after("stored", line.number)
    line.expect("works")
    work: list[Amount] = []
    while not line.accepts("."):
        name = line.token(r"[a-z]+(?:\.[a-z0-9]+)?", "the name of a rate")
        if name not in RATES:
            raise ProgramError(f"there is no rate '{name}'")
        work.append((name, line.number()))
    return Features(form, dtype, tuple(work), near, far, constants, units, stored)
