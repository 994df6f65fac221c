"""Why a rule fires on a program, or does not: how far its left side matches, and what stops it.

The rule is matched twice: on the program as it stands, and on its e-graph after saturation with
all rules, which holds everything that the rule could have met. The last step of the pattern that
some match does not pass is the nearest miss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from satura.rewrite.egraph.saturate import Saturation
from satura.rewrite.explain.class_graph import Graph, op_text
from satura.rewrite.explain.findings import DirectionReport, Firing, Miss, StepCount, Why
from satura.rewrite.explain.hidden import with_hidden
from satura.rewrite.explain.matcher import Match, Passed, Trace, trace
from satura.rewrite.explain.naming import Names
from satura.rewrite.language.rule import Direction, Rule
from satura.rewrite.program.program import Program

MOST_SHOWN = 5  # of the reasons at one step
_DEPTH = 3  # how far below an operand a missing op is looked for


def why(
    rule: Rule, program: Program, saturation: Saturation, names: Mapping[int, str] | None = None
) -> Why:
    """Why `rule` fired in a saturation of `program` with rules among which it is, or did not.

    `names` are those that the program's nodes have elsewhere.
    """
    enodes, saturation = saturation.classes.node_count, with_hidden(saturation)
    loaded = Graph.of_program(program)
    before = [trace(direction, loaded) for direction in rule.directions]
    graph = Graph(saturation.classes)
    naming = Names(program, saturation, names or {})
    directions = tuple(
        _direction_report(direction, early, trace(direction, graph), graph, saturation, naming)
        for direction, early in zip(rule.directions, before, strict=True)
    )
    return Why(
        rule.name,
        rule.law,
        rule.place,
        len(program.nodes),
        enodes,
        saturation.report.stopped,
        directions,
    )


def _direction_report(
    direction: Direction,
    early: Trace,
    late: Trace,
    graph: Graph,
    saturation: Saturation,
    names: Names,
) -> DirectionReport:
    steps = tuple(
        StepCount(
            step.step.text,
            len(first.passed),
            len(step.passed),
            _root_count(step.passed),
            tuple(_reasons(step)[:MOST_SHOWN]),
            not step.cut,
        )
        for first, step in zip(early.steps, late.steps, strict=True)
    )
    new = next(r.new_nodes for r in saturation.report.rules if r.name == direction.label)
    matches = late.matches
    firings = _firings(direction, matches, saturation, names)
    misses = _misses(late, graph, names)
    return DirectionReport(
        direction.label,
        str(direction),
        steps,
        len(matches),
        _root_count(matches),
        new,
        firings,
        misses,
    )


def _root_count(matches: Iterable[Match]) -> int:
    return len({match[0][0] for match in matches})


def _reasons(step: Passed) -> list[tuple[str, int]]:
    """Why matches ended at a step, and how many each: the ops that stand there, or reasons."""
    counts = Counter(reason for match in step.failed for reason in step.step.blame(match))
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))


def _firings(
    direction: Direction, matches: tuple[Match, ...], saturation: Saturation, names: Names
) -> tuple[Firing, ...]:
    """What the matches made, by the node matched; those that made something come first."""
    made: dict[int, list[tuple[int, str]]] = {}
    for number, origins in enumerate(saturation.origins):
        for node, origin in zip(saturation.classes.nodes[number], origins, strict=True):
            if origin.rule == direction.label:
                cause = number if origin.cause is None else origin.cause
                made.setdefault(cause, []).append((origin.round, names.term(number, node)))
    roots: dict[int, Match] = {}
    for match in sorted(matches, key=lambda match: _distance(match, names)):
        roots.setdefault(match[0][0], match)
    result = []
    for root, match in roots.items():
        results = sorted(made.get(root, []))
        after = dict.fromkeys(maker for entry in match if (maker := names.maker(*entry)))
        result.append(
            Firing(
                names.text(*match[0]),
                tuple(text for _, text in results),
                results[0][0] if results else None,
                tuple(after),
            )
        )
    return tuple(sorted(result, key=lambda firing: not firing.made))


def _misses(late: Trace, graph: Graph, names: Names) -> tuple[Miss, ...]:
    """The nearest misses, one per reason; each shows the match that the author knows best."""
    furthest = late.furthest
    if furthest is None:
        return ()
    by_reason: dict[str, list[Match]] = {}
    if furthest.step.wanted is not None:
        by_reason[_what_stands_instead(furthest)] = list(furthest.failed)
    else:
        for match in furthest.failed:
            by_reason.setdefault(furthest.step.blame(match)[0], []).append(match)
    misses = []
    for reason, matches in sorted(by_reason.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        nearest = min(matches, key=lambda match: _distance(match, names))
        misses.append(_miss(late, furthest, reason, matches, nearest, graph, names))
    return tuple(misses[:MOST_SHOWN])


def _what_stands_instead(step: Passed) -> str:
    """What stands, and how often, where the op of a step should."""
    if step.failed == ((),):
        return f"there is no {step.step.wanted}"
    found = ", ".join(f"{reason} {count}" for reason, count in _reasons(step))
    return f"no {step.step.wanted}, but {found}"


def _distance(match: Match, names: Names) -> tuple[int, int]:
    """How far a match is from the program: its e-nodes that are not there, then its place."""
    foreign = sum(names.maker(*entry) is not None for entry in match)
    return foreign, names.line(match[0][0]) if match else 0


def _miss(
    late: Trace,
    step: Passed,
    reason: str,
    matches: list[Match],
    nearest: Match,
    graph: Graph,
    names: Names,
) -> Miss:
    bindings = late.bindings
    matched = zip(bindings.terms, nearest, strict=False)
    values = bindings.values(nearest)
    bound = []
    for name in bindings.direction.variables:
        number = bindings.class_of(name, nearest)
        if number is not None:
            bound.append((name, names.of_class(number)))
        elif name in values:
            bound.append((name, str(values[name])))
    return Miss(
        step.step.text,
        f"{step.step.asks}: {reason}" if step.step.asks != step.step.text else reason,
        len(matches),
        names.text(*nearest[0]) if nearest else "",
        tuple((str(term), names.text(*entry)) for term, entry in matched),
        tuple(bound),
        _hint(step, matches, graph),
    )


def _hint(step: Passed, matches: list[Match], graph: Graph) -> str:
    """Where the op stands that an operand should be: below other ops, elsewhere, or nowhere."""
    wanted, find = step.step.wanted, step.step.find
    if wanted is None or find is None:
        return ""
    if wanted not in graph.by_op:
        return f"there is no {wanted} in the e-graph"
    between: Counter[str] = Counter()
    for number in {find(match) for match in matches if match}:
        between.update(_ops_between(graph, number, wanted))
    if not between:
        return f"there are {len(graph.by_op[wanted])} {wanted} elsewhere"
    ((path, count), *_) = between.most_common(1)
    return f"{count} of them have a {wanted} behind {path}"


def _ops_between(graph: Graph, number: int, wanted: str) -> Iterable[str]:
    """The ops that stand between a class and the nearest `wanted` below it, if any."""
    level: dict[int, str] = {number: ""}
    for _ in range(_DEPTH):
        below: dict[int, str] = {}
        for current, path in level.items():
            for node in graph.classes.nodes[current]:
                longer = f"{path}, {node.op}" if path else node.op
                for operand in node.operands:
                    below.setdefault(operand, longer)
        for current, path in below.items():
            if any(wanted in (node.op, op_text(node)) for node in graph.classes.nodes[current]):
                return (path,)
        level = below
    return ()
