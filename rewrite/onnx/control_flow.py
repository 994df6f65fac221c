"""If, Loop, Scan and SequenceMap: bodies are lowered in place, once per branch or per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from onnx import GraphProto, TensorProto

from satura.rewrite.errors import ModelError, UnsupportedError
from satura.rewrite.onnx.lower.broadcasting import fits, simplest
from satura.rewrite.onnx.lower.context import Context, UnknownValue
from satura.rewrite.onnx.lower.sequences import tensors_of
from satura.rewrite.onnx.lower.tensors import SameSize, Tensors
from satura.rewrite.onnx.opsets import is_standard
from satura.rewrite.onnx.order import label
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType

Body = Callable[[GraphProto, Sequence[int]], Sequence[int]]
"""Lowers a graph on operands; what its outputs are."""

MOST_STEPS = 256  # each of them is a copy of the body, which the search has to go through
_WHERE = "in a body that runs only where data say so"
_MOST_NODES = 128  # of all steps together, where Python may take them
MOST_GUARDED = 640  # of those that data may end: a search of more takes ten seconds and longer


class LongRepetition(UnsupportedError):
    """So many steps that a program for each number of them takes long to compile."""


def control_flow(node: Context, body: Body) -> list[int] | None:
    """Results of a node of control flow; None for one of another op.

    Raises UnsupportedError where the number of steps or the shape of a result depends on data.
    """
    if not is_standard(node.proto.domain) or node.proto.op_type not in CONTROL_FLOW:
        return None
    return CONTROL_FLOW[node.proto.op_type](node, body)


def body_of(node: Context, name: str) -> GraphProto:
    """The graph inside of a node that it has by this name."""
    for attribute in node.proto.attribute:
        if attribute.name == name:
            graph: GraphProto = attribute.g
            return graph
    raise node.wrong(f"{name} is missing")


def is_decided(node: Context) -> bool:
    """Whether a node selects a branch that constants and sizes decide."""
    return node.proto.op_type == "If" and node.values.at_some_sizes(node[0]) is not None


def _branch(node: Context, body: Body) -> list[int]:
    """The branch that a condition on sizes or constants selects, or elementwise one of both."""
    build = node.build
    if build.type(node[0]).size != 1:
        raise node.wrong("its condition is not a single element")
    known = node.values.at_some_sizes(node[0])
    if known is not None:
        return list(body(body_of(node, "then_branch" if known.ravel()[0] else "else_branch"), ()))
    with _maybe(node, node[0]):
        results = body(body_of(node, "then_branch"), ())
    with _maybe(node, build.unary("not", node[0])):
        others = body(body_of(node, "else_branch"), ())
    return [_either(node, node[0], x, y) for x, y in zip(results, others, strict=True)]


@contextmanager
def _maybe(node: Context, condition: int) -> Iterator[None]:
    """Lower what is computed in all calls, though it counts only where `condition` holds.

    What it needs of sizes only this program needs: at other sizes another one runs. Raises
    UnknownValue where it does not fit, or needs what no call has, or more elements than most have,
    and the node may run outside: there it is computed where it counts.
    """
    build, may_run_outside = node.build, node.values.asks or node.build.takes_turns
    before = len(build.conditions)
    try:
        with build.only_where(condition):
            yield
    except SameSize as same:
        if build.for_all_sizes and not same.may_broadcast:  # the other branch takes other sizes
            reason = f"{_WHERE}: {same.name} is {same.dim}"
            raise node.unknown(reason) from None
        raise
    except ModelError as error:
        shown = str(error)
        if _WHERE not in shown:  # or a body inside says it
            shown = f"{label(node.proto)}: {_WHERE}: {error}"
        stays = may_run_outside or build.for_all_sizes  # in a saved model nodes may stay, too
        kind = UnknownValue if stays else ModelError
        raise kind(shown) from error
    needed = build.excuse(before)
    for each in needed if may_run_outside else ():
        is_far = node.values.asks and each.is_of_extent and each.left not in (0, 1)
        if is_far or each.never_holds:
            raise node.unknown(f"{each} where data say so")


def _either(node: Context, condition: int, x: int, y: int) -> int:
    """x where the scalar `condition` holds, else y."""
    build = node.build
    tensors = [build.sequences.get(each) for each in (x, y)]
    if tensors[0] and tensors[1] and len(tensors[0]) == len(tensors[1]):
        pairs = zip(tensors[0], tensors[1], strict=True)
        return build.sequence([_either(node, condition, *pair) for pair in pairs])
    if min(x, y) < 0:
        raise _undecided(node, condition, "which sequence is a result")
    if build.type(x) != build.type(y):
        shown = f"whether a result is {build.type(x)} or {build.type(y)}"
        raise _undecided(node, condition, shown)
    spread = build.expand(build.reshape(condition, ()), build.shape(x))
    return build.select(spread, x, y)


def _undecided(node: Context, condition: int, what: str) -> UnsupportedError:
    """What is wrong where a condition decides the type of a result, and none is known."""
    node.values.needed(condition)
    sizes = " and ".join(sorted(node.values.sizes_deciding(condition)))
    if not sizes:
        return node.unsupported(f"{what} depends on data; make its condition a constant")
    return node.unsupported(
        f"{what} depends on {sizes}, and this program is for all sizes: declare"
        f" inputs with numbers for {sizes}"
    )


def _loop(node: Context, body: Body) -> list[int]:
    """As many copies of the body as there are steps; those after the condition fails keep
    the state."""
    build, graph = node.build, body_of(node, "body")
    for name, at in (("number of steps", 0), ("condition", 1)):
        size = 1 if node.optional(at) is None else build.type(node[at]).size
        if isinstance(size, int) and size != 1:
            raise node.wrong(f"its {name} is not a single element")
    declared = graph.output[0].type.tensor_type.elem_type  # where its steps are not looked at
    if declared not in (TensorProto.UNDEFINED, TensorProto.BOOL):
        raise _no_condition(node, dtype_of(declared))
    count = None if node.optional(0) is None else node.values.needed(node[0])
    if count is None:
        raise node.unsupported("its number of steps is not known; make it a constant")
    state = [node[at] for at in range(2, len(node.operands))]
    yes = build.constant(True, DType.BOOL)
    alive = yes if node.optional(1) is None else node[1]
    collected: list[list[int]] = []
    may_stay = build.may_stay  # before those inside are looked at
    steps = _steps(node, count.ravel()[0], "its number of steps")
    for step in range(steps):
        known = node.values.of(alive)
        if known is not None and not known.ravel()[0]:
            break
        if known is None and may_stay:
            _refuse_long(node, steps, MOST_GUARDED)
        number = build.constant(step, DType.I64)
        with nullcontext() if known is not None else _maybe(node, alive):
            goes_on, *results = body(graph, (number, alive, *state))
        if build.dtype(goes_on) is not DType.BOOL:
            raise _no_condition(node, build.dtype(goes_on))
        new, outputs = results[: len(state)], results[len(state) :]
        if known is None:
            if outputs:
                node.values.needed(alive)
                raise node.unsupported("the number of rows of its result depends on data")
            new = [_either(node, alive, x, y) for x, y in zip(new, state, strict=True)]
            goes_on = build.binary("and", build.reshape(alive, ()), build.reshape(goes_on, ()))
        collected.append(outputs)
        state, alive = new, goes_on
    wanted = len(graph.output) - 1 - len(state)
    if wanted and not collected:
        number = build.constant(0, DType.I64)
        with build.only_typed():
            rows = body(graph, (number, alive, *state))[1 + len(state) :]
        return [*state, *(_no_rows(node, row, 0) for row in rows)]
    return [*state, *(_stack(node, rows, 0) for rows in zip(*collected, strict=True))]


def _no_condition(node: Context, dtype: DType) -> ModelError:
    return node.wrong(f"its body gives a condition of {dtype}, not of bool")


def _scan(node: Context, body: Body) -> list[int]:
    """As many copies of the body as the scanned axes have elements.

    Up to opset 8 there is one scan per element of a batch, and operand 0 says how long it is.
    """
    build = node.build
    operands = [node[at] for at in range(1 if node.opset < 9 else 0, len(node.operands))]
    first = len(operands) - node.integer("num_scan_inputs")
    if not 0 <= first < len(operands) or len(body_of(node, "body").output) < first:
        raise node.wrong("num_scan_inputs does not fit its inputs and its body")
    for which, count in (("input", len(operands) - first), ("output", _row_count(node, first))):
        per_tensor(node, f"scan_{which}_axes", count)
        if {*per_tensor(node, f"scan_{which}_directions", count)} - {0, 1}:
            raise node.wrong(f"scan_{which}_directions has others than 0, forward, and 1, backward")
    if node.opset > 8:
        return _scan_results(node, body, operands[:first], operands[first:])
    if node.optional(0) is not None:
        raise node.unsupported("sequence_lens is not supported; export with a newer opset")
    runs = []
    for at in range(_steps(node, build.shape(operands[-1])[0], "the batch")):
        own = [build.drop(build.one_axis_slice(x, 0, at, 1), [0]) for x in operands]
        runs.append(_scan_results(node, body, own[:first], own[first:]))
    return [_stack(node, rows, 0) for rows in zip(*runs, strict=True)]


def _scan_results(node: Context, body: Body, state: list[int], sources: list[int]) -> list[int]:
    """What the state ends as, and what the steps give."""
    build, graph = node.build, body_of(node, "body")
    first, scanned = len(state), len(sources)
    axes = [
        node.axis(axis, build.rank(x))
        for axis, x in zip(per_tensor(node, "scan_input_axes", scanned), sources, strict=True)
    ]
    counts = [build.shape(x)[axis] for x, axis in zip(sources, axes, strict=True)]
    count = simplest(counts)
    for each in counts:
        if not fits([each], [count]):
            raise node.wrong(f"of what it scans one has {count} elements, and another {each}")
        if each != count:
            build.need_equal(each, count)
    steps = _steps(node, count, "the extent of the scanned axes")
    directions = "scan_input_directions" if node.opset > 8 else "directions"
    backward = per_tensor(node, directions, scanned)
    collected = []
    for step in range(steps):
        elements = [
            build.drop(build.one_axis_slice(x, axis, steps - 1 - step if back else step, 1), [axis])
            for x, axis, back in zip(sources, axes, backward, strict=True)
        ]
        results = body(graph, (*state, *elements))
        state = list(results[:first])
        collected.append(results[first:])
    outputs = _row_count(node, first)
    places = per_tensor(node, "scan_output_axes", outputs)
    if outputs and not collected:
        elements = [_element(build, x, axis) for x, axis in zip(sources, axes, strict=True)]
        with build.only_typed():
            made = body(graph, (*state, *elements))[first:]
        return [*state, *(_no_rows(node, x, at) for x, at in zip(made, places, strict=True))]
    rows = [list(column) for column in zip(*collected, strict=True)]
    ends = per_tensor(node, "scan_output_directions", outputs)
    for column, back in zip(rows, ends, strict=True):
        if back:
            column.reverse()
    return [*state, *(_stack(node, column, at) for column, at in zip(rows, places, strict=True))]


def _row_count(node: Context, state: int) -> int:
    """How many results of a step are rows, and not the next state."""
    return len(body_of(node, "body").output) - state


def _map(node: Context, body: Body) -> list[int]:
    """A copy of the body per tensor of the first sequence; other sequences are as long."""
    build, count = node.build, len(tensors_of(node))
    columns = []
    for at, x in enumerate(node.given):
        columns.append((x,) * count if x >= 0 else tensors_of(node, at))
        if len(columns[-1]) != count:
            raise node.wrong(f"input {at} has {len(columns[-1])} tensors, and input 0 {count}")
    made = [body(body_of(node, "body"), row) for row in zip(*columns, strict=True)]
    results = range(len(node.proto.output))
    return [build.sequence([row[at] for row in made]) for at in results]


def per_tensor(node: Context, name: str, count: int) -> tuple[int, ...]:
    """An attribute that has a number for each of several inputs or outputs; 0 where it is not."""
    given = node.integers(name) or (0,) * count
    if len(given) != count:
        raise node.wrong(f"{name} has {len(given)} entries for {count}")
    return given


def _steps(node: Context, steps: Dim, what: str) -> int:
    """How many steps a program takes.

    Raises UnsupportedError for too many, LongRepetition where Python may take them and should.
    """
    if isinstance(steps, SymbolicDim) and node.build.takes_turns:
        _refuse_long(node, node.build.usual_number(steps), _MOST_NODES)
    count = node.fixed_dim(steps, what)
    if count > MOST_STEPS:
        raise node.unsupported(f"{count} steps are more than {MOST_STEPS}")
    return count


def _refuse_long(node: Context, count: int, most: int) -> None:
    """Raise LongRepetition where all steps together have more nodes than `most`."""
    nodes = len(body_of(node, "body").node)
    if count * nodes > most:
        shown = f"{count} steps of {nodes} nodes are more than {most} nodes"
        raise LongRepetition(f"{label(node.proto)}: {shown}")


def _element(build: Tensors, x: int, axis: int) -> int:
    """What stands for an element along an axis without any: only its type counts."""
    shape = build.shape(x)
    return build.full(0, (*shape[:axis], *shape[axis + 1 :]), build.dtype(x))


def _no_rows(node: Context, row: int, axis: int) -> int:
    """The stack of no rows that would have the type of `row`, which no program computes."""
    build = node.build
    _refuse_sequences(node, [row])
    shape, at = list(build.shape(row)), node.axis(axis, build.rank(row) + 1)
    return build.full(0, (*shape[:at], 0, *shape[at:]), build.dtype(row))


def _refuse_sequences(node: Context, rows: Sequence[int]) -> None:
    if min(rows) < 0:
        raise node.unsupported("its steps give sequences; only tensors are supported")


def _stack(node: Context, rows: Sequence[int], axis: int) -> int:
    build = node.build
    _refuse_sequences(node, rows)
    at = node.axis(axis, build.rank(rows[0]) + 1)
    return build.concat([build.insert(row, at) for row in rows], at)


CONTROL_FLOW: dict[str, Callable[[Context, Body], list[int]]] = {
    "If": _branch,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _map,
}
