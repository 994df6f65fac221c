"""Who is to blame for the end of a saturation, and how long each step of it may take."""

from __future__ import annotations

from satura.rewrite.isolation.watch import Watch
from satura.rewrite.language.dsl import RuleSet
from satura.rules import DEFAULT
from tests.bad_rules import associate, commute


def test_the_rule_to_blame_is_that_at_work_or_that_which_made_most() -> None:
    rules = RuleSet(commute, associate)
    said: list[tuple[str, float]] = []
    watch = Watch(list(rules), lambda *told: said.append(told), 2.0, 0)
    (swap,), (regroup, _) = (rule.directions for rule in rules)
    (of_the_book,) = DEFAULT["drop_identity_transpose"].directions
    watch.start(of_the_book)
    watch.start(swap)
    watch.count(swap, matches=9, nodes=1)
    watch.start(of_the_book)
    watch.start(regroup)
    watch.count(regroup, matches=3, nodes=2)
    watch.start(None)
    watch.start(swap)
    assert said == [
        ("", 20), ("commute", 2), ("commute", 20), ("associate", 2), ("associate", 20),
        ("commute", 2),
    ]  # fmt: skip
