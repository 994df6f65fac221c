"""Engines in which tables and rules are declared, kept for the next saturation with the same.

To declare them takes as long as many rounds on a small program. What a saturation adds is taken
back when it ends, so that the next one finds what the first one found.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from satura.rewrite.egraph.dropping import with_drops
from satura.rewrite.egraph.engine import EGraph
from satura.rewrite.egraph.interner import Interner, Value
from satura.rewrite.egraph.rule_compiler import RuleCode, compile_direction, joining_rulesets
from satura.rewrite.egraph.tables import (
    BASE,
    NodeTable,
    node_tables,
    schema,
    shared_tables,
    widths,
)  # fmt: skip
from satura.rewrite.language.dsl import Direction
from satura.rewrite.ops import REGISTRY
from satura.rewrite.program.program import Program

_MOST = 4  # engines kept; each takes some 20 to 70 MB
_MOST_ROWS = 20_000  # of one that is kept: tables never shrink, and 45,000 rows take 80 MB


@dataclass(frozen=True)
class Prepared:
    """An engine without rows that has rules, and tables of satura's ops and of those in rules.

    `codes` belong to the directions, in order, which are told apart by their ids as long as this
    is there. The rulesets `joining` fill the tables of joins, one after another. `widths` are those
    of the shared tables. `constants` are the values that rules mention by number, from 0.
    """

    egraph: EGraph
    tables: Mapping[str, NodeTable]
    joining: Sequence[str]
    widths: frozenset[int]
    directions: Sequence[Direction]
    codes: Sequence[RuleCode]
    constants: Sequence[Value]

    def tables_for(self, program: Program) -> Mapping[str, NodeTable]:
        """The node tables of rules and of `program`; declares those that are not there."""
        ops = {node.op.name for node in program.nodes} - self.tables.keys()
        hosts = [len(node.operands) for node in program.nodes if node.op.name == "host"]
        more = node_tables(ops, hosts, len(self.tables))
        for width in sorted(widths(more.values()) - self.widths):
            self.egraph.define(shared_tables(width))
        for table in more.values():
            self.egraph.define(schema(table))
        return {**self.tables, **more}


_Key = tuple[tuple[int, ...], tuple[bool, ...], bool]
_kept: dict[_Key, Prepared] = {}  # the one used last at the end


@contextmanager
def prepared_engine(
    directions: Sequence[Direction], apart: Sequence[bool], drops: bool
) -> Iterator[Prepared]:
    """An engine with these directions of rules, for use inside the block only.

    `apart` says of each direction whether it runs alone; `drops`, whether laws that drop an op are
    applied before others make it.
    """
    keeps = threading.current_thread() is threading.main_thread()  # an engine may not leave one
    key = (tuple(map(id, directions)), tuple(apart), drops)
    engine = _kept.pop(key, None) if keeps else None
    engine = engine or _declare(directions, apart, drops)
    stays = False
    try:
        with engine.egraph.scratch():
            yield engine
            stays = keeps and sum(engine.egraph.sizes().values()) <= _MOST_ROWS
    finally:  # also after an exception, which leaves nobody knows what, and holds on to the engine
        if not stays:
            engine.egraph.close()  # at once: who finds it in a cycle may be another thread
    if stays:
        _kept[key] = engine
        while len(_kept) > _MOST:
            del _kept[next(iter(_kept))]


def forget_engines() -> None:
    """Free the engines that are kept, where this is the thread that made them."""
    while _kept and threading.current_thread() is threading.main_thread():
        _kept.popitem()[1].egraph.close()


def _declare(directions: Sequence[Direction], apart: Sequence[bool], drops: bool) -> Prepared:
    egraph, interner = EGraph(), Interner()
    ours = (op.name for op in REGISTRY.values() if not op.user and op.arity is not None)
    ops = frozenset(ours).union(*(direction.ops for direction in directions))
    tables = node_tables(ops)
    fired = with_drops(directions, apart) if drops else directions
    codes = [
        compile_direction(direction, number, interner, alone)
        for number, (direction, alone) in enumerate(zip(fired, apart, strict=True))
    ]
    asked = {code.width + more for code in codes for more in (0, code.results)}
    shared = frozenset({1, *asked, *widths(tables.values())})
    for width in sorted(shared):
        egraph.define(shared_tables(width))
    egraph.define(BASE)
    for table in tables.values():
        egraph.define(schema(table))
    together = [code for code, alone in zip(codes, apart, strict=True) if not alone]
    joining = joining_rulesets(max([len(code.joining) for code in together], default=0))
    egraph.define(" ".join(f"(ruleset {name})" for name in joining))
    for code in codes:  # one text of all takes egglog three times as long
        egraph.define(code.text)
    rulesets = " ".join(code.ruleset for code in together)
    egraph.define(f"(unstable-combined-ruleset fire {rulesets})" if rulesets else "(ruleset fire)")
    return Prepared(egraph, tables, joining, shared, directions, codes, interner.values)


def _leave_to_parent() -> None:
    """Forget, in a forked process, what its parent keeps.

    Freeing an engine waits for threads, which are not there: so nothing may ever free these.
    """
    for engine in _kept.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
