"""`satura rules` and `satura ops`: what there is."""

from __future__ import annotations

from satura.commands.terminal import print_json, print_table
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
        [op.name, op.kind.value, ", ".join(op.attribute_names), op.law.splitlines()[0]]
        for op in REGISTRY.values()
    ]
    print_table(f"{len(rows)} ops", ["op", "kind", "attributes", "law"], rows)


def list_rules(name: str, json: bool) -> None:
    """Name, law and exactness of every rule of the set `name`."""
    from satura.pipeline import rule_set

    rules = rule_set(name)
    if json:
        print_json(
            [
                {
                    "name": rule.name,
                    "law": rule.law,
                    "exact": rule.exact,
                    "directions": len(rule.directions),
                    "module": rule.file.stem,
                }
                for rule in rules
            ]
        )
        return
    rows = [
        [rule.name, "exact" if rule.exact else "reassociates", rule.law.splitlines()[0]]
        for rule in rules
    ]
    print_table(f"{len(rows)} rules in '{name}'", ["rule", "holds", "law"], rows)
