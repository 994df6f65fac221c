"""For tests of rules, in pytest or anywhere:

    from satura.testing import assert_sound

    def test_my_rule() -> None:
        assert_sound(my_rule)

A rule that is refuted fails the test, which shows the smallest counterexample that was found.
"""

from satura.rewrite.check.report import Counterexample, DirectionReport, RuleReport
from satura.rewrite.check.testing import UnsoundError, assert_sound, check

__all__ = [
    "Counterexample",
    "DirectionReport",
    "RuleReport",
    "UnsoundError",
    "assert_sound",
    "check",
]
