"""A scheduler for tests of the backend: every node is a dispatch of its own."""

from __future__ import annotations

from satura.rewrite.extract.schedule import Dispatch, Form, Home, Schedule
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Program

_FORMS = {
    Kind.SOURCE: Form.LOOP,
    Kind.ELEMENTWISE: Form.LOOP,
    Kind.LAYOUT: Form.LOOP,
    Kind.INDEXING: Form.LOOP,
    Kind.REDUCTION: Form.ROW,
    Kind.WINDOW: Form.WINDOW,
    Kind.CONTRACTION: Form.CONTRACTION,
    Kind.ALONE: Form.ALONE,
    Kind.HOST: Form.HOST,
}
_ANCHORED = (Form.ROW, Form.WINDOW, Form.CONTRACTION, Form.ALONE)


def one_dispatch_per_node(program: Program) -> Schedule:
    """Every node is materialised, constants at compile time."""
    homes = {i: Home(i, (0,) * node.type.rank) for i, node in enumerate(program.nodes)}
    dispatches = []
    for index, node in enumerate(program.nodes):
        if node.op.name in ("input", "constant"):
            continue
        form = _FORMS[node.op.kind]
        operands = tuple(dict.fromkeys(node.operands))
        anchor = index if form in _ANCHORED else None
        dispatches.append(Dispatch(form, index, (index,), operands, anchor, homes[index]))
    constants = tuple(i for i, node in enumerate(program.nodes) if node.op.name == "constant")
    return Schedule(program, tuple(dispatches), constants, homes)


def one_dispatch(program: Program) -> Schedule:
    """Everything between inputs and the single output runs in one dispatch."""
    (root,) = dict.fromkeys(program.output_nodes)
    sources = tuple(i for i, n in enumerate(program.nodes) if n.op.name in ("input", "constant"))
    inside = tuple(i for i in range(len(program.nodes)) if i not in sources)
    kinds = {program.nodes[i].op.kind: i for i in reversed(inside)}
    form, anchor = Form.LOOP, None
    for kind in (Kind.CONTRACTION, Kind.WINDOW, Kind.REDUCTION):
        if kind in kinds:
            form, anchor = _FORMS[kind], kinds[kind]
    nodes = program.nodes
    homes = {i: Home(i, (0,) * nodes[i].type.rank) for i in (*sources, root)}
    dispatch = Dispatch(form, root, inside, sources, anchor, homes[root])
    constants = tuple(i for i in sources if nodes[i].op.name == "constant")
    return Schedule(program, (dispatch,), constants, homes)
