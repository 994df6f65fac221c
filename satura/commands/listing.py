"""`satura rules` and `satura ops`: what there is."""

from __future__ import annotations

from satura.commands.terminal import counted, print_json, print_line, print_table
from satura.commands.verdicts import HOLDS, recorded_verdicts
from satura.rewrite.language.rule import Rule
from satura.rewrite.ops import REGISTRY


def list_ops(json: bool) -> None:
    """Name, kind, operands, attributes and law of every canonical op."""
    if json:
        print_json(
            [
                {
                    "name": op.name,
                    "kind": op.kind.value,
                    "operands": op.arity,
                    "attributes": list(op.attribute_names),
                    "law": op.law,
                }
                for op in REGISTRY.values()
            ]
        )
        return
    rows = [
        [op.name, op.kind.value, ", ".join(op.attribute_names), first_sentence(op.law)]
        for op in REGISTRY.values()
    ]
    print_table(f"{len(rows)} ops", ["op", "kind", "attributes", "law"], rows)


def first_sentence(text: str) -> str:
    """The first sentence of a text, in one line."""
    sentence, rest, _ = " ".join(text.split()).partition(". ")
    return f"{sentence}{rest.rstrip()}"


def list_rules(name: str, grep: str, json: bool) -> None:
    """Name, law, precision, verdict and place of the rules of set `name` that mention `grep`."""
    from satura.pipeline.rule_sets import rule_set

    rules = [rule for rule in rule_set(name) if _mentions(rule, grep)]
    verdicts = recorded_verdicts()
    if json:
        print_json(
            [
                {
                    "name": rule.name,
                    "law": rule.law,
                    "exact": rule.exact,
                    "directions": len(rule.directions),
                    "verdict": verdicts[rule.name].status,
                    "ranks": list(verdicts[rule.name].ranks),
                    "reason": verdicts[rule.name].reason,
                    "file": _file(rule),
                    "line": rule.line,
                }
                for rule in rules
            ]
        )
        return
    asked = f" that {'says' if len(rules) == 1 else 'say'} '{grep}'" if grep else ""
    print_line(f"{counted(len(rules), 'rule')} in '{name}'{asked}")
    width = max((len(rule.name) for rule in rules), default=0)
    for rule in rules:
        how = f"{HOLDS[rule.exact]}, {verdicts[rule.name].status}"
        print_line(f"\n{rule.name:{width}}  {how:20}  {_file(rule)}:{rule.line}")
        print_line(f"    {' '.join(rule.law.split())}")


def _mentions(rule: Rule, text: str) -> bool:
    """Whether name, law or place of `rule` have `text` in them, in small or capital letters."""
    law = " ".join(rule.law.split())
    return any(text.lower() in each.lower() for each in (rule.name, law, _file(rule)))


def _file(rule: Rule) -> str:
    """Where the rule is defined, from the folder of the book on."""
    return "/".join(rule.file.parts[-2:])
