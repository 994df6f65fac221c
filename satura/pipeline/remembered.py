"""Remembered results: a model that was rewritten before is not searched again, in any process.

What is kept is the schedule and the report as text, under a key of all that they depend on: the
whole program with the content of every constant, the rules, the limits, the cost model with its
rates, threads and typical sizes, and the code. So other weights are another model. They need no
cheaper key: every constant is hashed when it is loaded.
Rules and ops that are not satura's own could depend on anything, and what they make is not kept.
A search asks for the machine only by its cost model.

What is read was maybe written by something else. It is data: parsed, its types inferred again, and
each of its dispatches checked; what does not pass counts as absent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from satura.backend.jit.cache import default_cache, logger
from satura.pipeline.code import code_identity
from satura.pipeline.models import Model, load
from satura.pipeline.phases import Phases, Progress
from satura.pipeline.report_text import parse_report, report_text
from satura.pipeline.rewritten import Rewritten, cut_short, warn_if_cut_short, warn_if_struck
from satura.pipeline.rule_sets import Rules, rule_set, rules_identity
from satura.rewrite.egraph.report import Report
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.cost import CostModel, given_or_default
from satura.rewrite.extract.schedule import Refusals, Schedule
from satura.rewrite.extract.schedule_text import parse_schedule, schedule_text
from satura.rewrite.ops.registry import user_op
from satura.rewrite.program.program import Program
from satura.rewrite.system.interrupts import import_whole
from satura.rewrite.system.turns import lock_of, taking_turn
from satura.rewrite.types.attributes import Attribute, HostCall
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import TensorType

if TYPE_CHECKING:
    from satura.rewrite.egraph.limits import Limits

_ANY_TEXT = "surrogatepass"  # names may be of any characters
_LARGE = 1 << 26  # bytes of weights: as many as an engine takes
_BETWEEN = "\n\n\n"


def rewrite_once(
    model: Model,
    rules: Rules,
    limits: Limits | None = None,
    progress: Progress | None = None,
    strict: bool = False,
    cost: Callable[[Program], CostModel] | None = None,
    refusals: Refusals | None = None,
    usual: Mapping[str, int] = {},
    is_exact: bool = False,
) -> Rewritten:
    """What `pipeline.rewrite` makes of a model, remembered where it has done so before.

    `cost` gives the cost model for a program; without it a fixed one counts. What must be a number,
    and only sizes decide, is that at the `usual` ones. What is remembered and refused is searched
    anew; where another thread searches for the same, this one waits for its result.
    Raises Asked where the values of inputs decide shapes.
    """
    identity = rules_identity(rules)
    phases = Phases(progress)
    with phases.phase("load"):
        program = load(model, asks=True, usual=usual)
        costs = None if cost is None else cost(program)
        key = None if identity is None else result_key(program, identity, limits, costs)
    with lock_of(key), taking_turn():
        made = _recalled_or_searched(
            key, program, rules, limits, phases, strict, costs, refusals, usual
        )
    return replace(made, schedule=replace(made.schedule, is_exact=is_exact))


def _recalled_or_searched(
    key: str | None, program: Program, rules: Rules, limits: Limits | None, phases: Phases,
    strict: bool, costs: CostModel | None, refusals: Refusals | None, usual: Mapping[str, int],
) -> Rewritten:  # fmt: skip
    with phases.phase("recall"):
        found = None if key is None else recall(key, program)
    if found is not None and not (refusals and refusals(found[0])):
        warn_if_cut_short(cut_short(found[1], limits))
        warn_if_struck(found[1])
        return Rewritten(program, *found, phases.seconds, is_remembered=True, dims=usual)
    import_whole("satura.pipeline.stages")  # a remembered result needs no e-graph
    from satura.pipeline.stages import search
    from satura.rewrite.egraph.prepared import forget_engines

    made = search(program, rule_set(rules), limits, phases, strict, costs, refusals)
    if sum(constant.nbytes for constant in _large_constants(program)) > _LARGE:
        forget_engines()  # their memory is that of weights that are packed next
    if key is not None:
        remember(key, made)
    return Rewritten(  # without its e-graph
        program, made.schedule, made.report, made.phases, dims=usual
    )


def result_key(
    program: Program, rules: str, limits: Limits | None, cost: CostModel | None = None
) -> str | None:
    """The hash of all that a search depends on; None where more than that may matter.

    `rules` is the identity of the rules.
    """
    constants = dict.fromkeys(_large_constants(program))
    user_ops = (user_op(node.op, node.attributes) for node in program.nodes)
    model = given_or_default(cost)
    is_code_of_users = any(user_ops) or type(model) is not CostModel
    if is_code_of_users or len(_by_label(constants)) < len(constants):
        return None  # or the text does not tell two constants apart
    parts = [
        str(program),
        " ".join(map(str, program.inputs)),
        " ".join(constant.digest.hex() for constant in constants),
        rules,
        repr(limits),
        model.identity,
        code_identity(),
    ]
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode(errors=_ANY_TEXT)
        digest.update(f"{len(content)}\n".encode() + content)
    return digest.hexdigest()


def recall(key: str, program: Program) -> tuple[Schedule, Report] | None:
    """What is remembered of `program` under its key, checked; None where there is nothing."""
    cache = default_cache("schedule")
    content = cache.load(key)
    if content is None:
        return None
    try:
        return _read(content, program)
    except (ProgramError, UnicodeDecodeError) as error:
        logger("cache").warning("what is remembered of a model is searched anew: %s", error)
        return None


def remember(key: str, made: Rewritten) -> None:
    """Keep what was made of a program, as far as it can be read back."""
    text = _BETWEEN.join([schedule_text(made.schedule), report_text(made.report)])
    content = text.encode(errors=_ANY_TEXT)
    try:
        is_complete = _read(content, made.source) == (made.schedule, made.report)
    except ProgramError:
        is_complete = False
    if is_complete:
        default_cache("schedule").store(key, content)


def _read(content: bytes, program: Program) -> tuple[Schedule, Report]:
    """Raise ProgramError or UnicodeDecodeError where this was not remembered of `program`."""
    first, _, second = content.decode(errors=_ANY_TEXT).partition(_BETWEEN)
    schedule = parse_schedule(first, _by_label(_large_constants(program)))
    if _interface(schedule.program) != _interface(program):
        raise ProgramError("it has other inputs or outputs")
    if not _host_calls(schedule.program) <= _host_calls(program):
        raise ProgramError("it calls what the model does not")
    return schedule, parse_report(second)


def _large_constants(program: Program) -> list[Constant]:
    """The constants whose elements the text leaves out."""
    constants = (node.constant for node in program.nodes if node.op.name == "constant")
    return [constant for constant in constants if constant.label is not None]


def _by_label(constants: Iterable[Constant]) -> dict[str, Constant]:
    return {str(constant.label): constant for constant in constants}


def _interface(program: Program) -> tuple[tuple[tuple[str, TensorType], ...], ...]:
    nodes = program.nodes
    return (
        tuple((nodes[index].input_name, nodes[index].type) for index in program.inputs),
        tuple((name, nodes[index].type) for name, index in program.outputs),
    )


def _host_calls(program: Program) -> set[Attribute]:
    attributes = (attribute for node in program.nodes for attribute in node.attributes)
    return {attribute for attribute in attributes if isinstance(attribute, HostCall)}
