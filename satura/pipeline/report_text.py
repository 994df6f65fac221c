"""Reports of saturations as text, and back.

rule "relu_is_max" "/rules/algebra.py:12" matched 3 made 2 asked 0 refused 0 took 0.001
struck "row of exp, reduce: ..."
round 12 e-nodes after 0.02
stopped "saturated" before "" took 0.31 extracting 0.1
"""

from __future__ import annotations

from satura.rewrite.egraph.report import Report, Round, RuleStatistics
from satura.rewrite.program.reader import Reader
from satura.rewrite.program.text import quote


def report_text(report: Report) -> str:
    """The text of a report, of rules that are all satura's own: none is dropped or grows."""
    lines = [
        f"rule {quote(rule.name)} {quote(rule.place)} matched {rule.matches}"
        f" made {rule.new_nodes} asked {rule.demand_calls} refused {rule.refusals}"
        f" took {rule.seconds!r}"
        for rule in report.rules
    ]
    lines += [f"struck {quote(each)}" for each in report.struck]
    lines += [f"round {each.nodes} e-nodes after {each.seconds!r}" for each in report.rounds]
    stopped = f"stopped {quote(report.stopped)} before {quote(report.stopped_before)}"
    end = f"{stopped} took {report.seconds!r} extracting {report.extraction_seconds!r}"
    return "\n".join([*lines, end])


def parse_report(text: str) -> Report:
    """The report whose text this is. Raises ProgramError for what is not the text of one."""
    *entries, last = map(Reader, text.split("\n"))
    report = Report([])
    for line in entries:
        if line.accepts("rule"):
            report.rules.append(_rule(line))
        elif line.accepts("struck"):
            report.struck.append(line.string())
        else:
            report.rounds.append(_round(line))
        line.expect_end()
    last.expect("stopped")
    report.stopped = last.string()
    report.stopped_before = last.after("before", last.string)
    report.seconds = last.after("took", last.number)
    report.extraction_seconds = last.after("extracting", last.number)
    last.expect_end()
    return report


def _rule(line: Reader) -> RuleStatistics:
    rule = RuleStatistics(line.string(), line.string())
    rule.matches = line.after("matched", line.integer)
    rule.new_nodes = line.after("made", line.integer)
    rule.demand_calls = line.after("asked", line.integer)
    rule.refusals = line.after("refused", line.integer)
    rule.seconds = line.after("took", line.number)
    return rule


def _round(line: Reader) -> Round:
    nodes = line.after("round", line.integer)
    line.expect("e-nodes")
    return Round(nodes, line.after("after", line.number))
