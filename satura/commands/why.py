"""`satura why`: how far a rule matches on a model, and what stops it."""

from __future__ import annotations

from pathlib import Path

from satura.commands.models import file_or_light, is_there
from satura.commands.rule_files import with_files
from satura.commands.terminal import print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import rules_for, saturate_beside
from satura.rewrite.errors import CallError
from satura.rewrite.explain.findings import Why
from satura.rewrite.explain.why import why as explain_rule
from satura.rewrite.isolation.process import Doing, call
from satura.rewrite.language.mistakes import suggestion
from satura.rewrite.language.rule import Rule, RuleSet
from satura.rewrite.onnx.load import load_with_names


def why(
    rule: str, model: str, values: list[str], files: list[Path], rules: str, seconds: float,
    json: bool,
) -> None:  # fmt: skip
    """Explain `rule`, of the set `rules` or of one of `files`, on `model`.

    Rules of files may not end: each is given up after `seconds`, and the others go on without it.
    """
    if is_there(rule) and not is_there(model):
        raise CallError(f"the rule comes first: satura why {model} {rule}")
    everything = with_files(rules, files)
    source = with_values(file_or_light(model), values)
    with progress(f"asking {rule}") as phase:
        phase("load", 0.0)
        program, names = load_with_names(source)
        chosen = _rule_of_name(rules_for(program, everything), rule, rules)
        phase("saturate", 0.0)
        saturation = saturate_beside(chosen, program, everything, patience=seconds)

        def explain_again(doing: Doing) -> Why:
            doing(f"matching rule '{rule}' ({chosen.place}) again", seconds)
            return explain_rule(chosen, program, saturation, names)

        answer = call(explain_again, seconds)
    if json:
        print_json(answer.as_json())
    else:
        print_line(str(answer))


def _rule_of_name(rules: RuleSet, name: str, chosen: str) -> Rule:
    """The rule of that name. Raises CallError where it is a family, is not in the set that was
    `chosen`, or is nowhere."""
    if name not in rules and (members := _members(rules, name)):
        raise CallError(f"'{name}' is a family; ask for one of its rules: {', '.join(members)}")
    book = rule_set("default")
    if name not in rules and (name in book or _members(book, name)):
        raise CallError(f"'{name}' is not in the rule set '{chosen}', but in the rule book")
    if name not in rules:
        known = {each for rule in (*book, *rules) for each in (rule.name, rule.family) if each}
        raise CallError(
            f"there is no rule '{name}'{suggestion(name, known)}; `satura rules` lists those of"
            " the rule book"
        )
    return rules[name]


def _members(rules: RuleSet, family: str) -> list[str]:
    """The names of the rules of a family."""
    return [rule.name for rule in rules if rule.family == family]
