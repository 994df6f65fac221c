"""What is known of each rule of the book: proved for all sizes, or tested and why not proved.

Proofs of the whole book take minutes, so what they found is recorded in rules/verdicts.json.
`python -m satura.commands.verdicts` proves every rule anew and prints the record; `make docs` keeps
it, and the prover's tests compare it with what they find.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files

from satura.rewrite.law import Rule

HOLDS = {True: "exact", False: "reassociates"}  # by Rule.exact
# A rule of the book that is not proved is tested all the same.
WORDS = {"proved": "proved", "open": "tested", "refuted": "refuted"}


@dataclass(frozen=True)
class Verdict:
    """`proved`, with what the proof covers, or `tested`, with the reason why there is no proof."""

    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


UNRECORDED = Verdict("tested", "nothing is recorded yet; run `make docs`")


def recorded() -> Mapping[str, Verdict]:
    """The recorded verdict on every rule of the book, by name."""
    text = files("satura.rules").joinpath("verdicts.json").read_text("utf-8")
    found = {name: Verdict(**verdict) for name, verdict in json.loads(text).items()}
    return defaultdict(lambda: UNRECORDED, found)


def verdict(rule: Rule) -> Verdict:
    """What the prover says of `rule` now; takes seconds."""
    from satura.rewrite.prove import prove

    proof = prove(rule)
    return Verdict(WORDS[proof.status], proof.reason)


def record(rules: Iterable[Rule]) -> str:
    """The text of rules/verdicts.json, from proofs made now."""
    return json.dumps({rule.name: asdict(verdict(rule)) for rule in rules}, indent=1) + "\n"


if __name__ == "__main__":
    from satura.rules import DEFAULT

    sys.stdout.write(record(DEFAULT))
