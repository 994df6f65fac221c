"""`satura why --choice`: why a node of the rewritten program is computed as it is."""

from __future__ import annotations

from pathlib import Path

from satura.commands.models import file_or_light, node_number
from satura.commands.rule_files import with_files
from satura.commands.terminal import counted, print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.stages import best_choice, saturate
from satura.rewrite.errors import CallError
from satura.rewrite.extract.assemble import Assembly
from satura.rewrite.extract.candidates import Candidates
from satura.rewrite.extract.choice_graph import Result
from satura.rewrite.extract.fragments import Fragment
from satura.rewrite.extract.losers import Contender, Contest, contest
from satura.rewrite.extract.settle import assembly
from satura.rewrite.onnx.load import load
from satura.rewrite.program.records import check_node, node_record

_TERMS = 3  # that are told of each loser
_NAMED = 20  # dispatches, where one has to be named


def choice(
    node: str, model: str, values: list[str], files: list[Path], rules: str, json: bool
) -> None:
    """Explain why the dispatch of `node` was chosen, and what else could have been."""
    number, everything = node_number(node), with_files(rules, files)
    with progress(f"asking what else computes %{number}") as phase:
        phase("load", 0.0)
        program = load(with_values(file_or_light(model), values))
        phase("saturate", 0.0)
        saturation = saturate(program, everything)
        phase("extract", 0.0)
        found, result = best_choice(saturation)
        made = assembly(found, result)
        root = _root(made, number)
        of = {index: cls for cls, index in made.stored.items()}
        answer = contest(found, result, of[root])
        told = _Told(found, result, made)
    if json:
        print_json(told.as_json(root, answer))
    else:
        print_line(told.text(number, root, answer))


def _root(made: Assembly, node: int) -> int:
    """The node that the dispatch stores in which `node` is computed, itself if it is stored."""
    check_node(made.program, node)
    roots = [group.root for group in made.groups if node in group.nodes]
    if not roots:
        chosen = sorted({group.root for group in made.groups})
        some = ", ".join(f"%{root}" for root in chosen[:_NAMED])
        raise CallError(
            f"%{node} is an input or a constant, and nothing was to choose; dispatches store"
            f" {some}{', …' if len(chosen) > _NAMED else ''}"
        )
    return node if node in roots else roots[0]


class _Told:
    """Contests in words and as plain values."""

    def __init__(self, found: Candidates, result: Result, made: Assembly) -> None:
        self.found, self.result, self.made = found, result, made

    def text(self, asked: int, root: int, answer: Contest) -> str:
        lines = [f"chosen for {node_record(self.made.program, root)}"]
        if asked != root:
            lines[0] += f", in whose dispatch %{asked} is computed"
        lines.append("  " + self.line(answer.chosen.fragment, answer.chosen.seconds))
        if not answer.losers and not answer.useless and not answer.left_out:
            lines.append("nothing else could have computed it")
        for loser in answer.losers:
            dearer = f"the whole would take {self.dearer(loser) * 1e6:.2f} us more"
            lines += [f"lost, {dearer}", "  " + self.line(loser.fragment, loser.seconds)]
            shifts = (f"{name} {each * 1e6:+.2f}" for name, each in loser.terms[:_TERMS])
            lines.append("  by " + (", ".join(shifts) or "nothing"))
        if answer.useless:
            others = counted(answer.useless, "other candidate")
            lines.append(f"lost, {others}: the cheapest found with each does without this tensor")
        if answer.left_out:
            were = counted(answer.left_out, "more candidate was", "more candidates were")
            lines.append(f"{were} not tried")
        return "\n".join(lines)

    def as_json(self, root: int, answer: Contest) -> dict[str, object]:
        return {
            "node": root,
            "chosen": self.record(answer.chosen),
            "lost": [
                {**self.record(each), "dearer": self.dearer(each), "terms": dict(each.terms)}
                for each in answer.losers
            ],
            "useless": answer.useless,
            "left_out": answer.left_out,
        }

    def record(self, each: Contender) -> dict[str, object]:
        fragment = each.fragment
        return {
            "form": fragment.form.value, "computes": _ops(fragment), "reads": self.reads(fragment),
            "seconds": each.seconds,
        }  # fmt: skip

    def line(self, fragment: Fragment, seconds: float) -> str:
        reads = ", ".join(self.reads(fragment)) or "nothing"
        computed = " ".join(_ops(fragment))
        return f"{fragment.form.value}, {seconds * 1e6:.2f} us: {computed}; reads {reads}"

    def reads(self, fragment: Fragment) -> list[str]:
        """What is read: nodes of the program, and the types of what is not stored there."""
        stored, types = self.made.stored, self.found.classes.types
        return [
            f"%{stored[leaf]}" if leaf in stored else f"{types[leaf]}, not stored now"
            for leaf in sorted(fragment.reads)
        ]

    def dearer(self, loser: Contender) -> float:
        return loser.whole - self.result.cost


def _ops(fragment: Fragment) -> list[str]:
    """The ops that are computed, operands first."""
    found: dict[int, str] = {}

    def visit(part: Fragment) -> None:
        if part.cls not in found:
            for below in part.parts:
                if below is not None:
                    visit(below)
            found[part.cls] = part.node.op

    visit(fragment)
    return list(found.values())
