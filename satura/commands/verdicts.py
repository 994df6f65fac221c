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

from satura.rewrite.language.rule import Rule

HOLDS = {True: "exact", False: "reassociates"}  # by Rule.exact
# A rule of the book that is not proved at all ranks is tested all the same.
WORDS = {"proved": "proved", "open": "tested", "refuted": "refuted"}


@dataclass(frozen=True)
class Verdict:
    """`proved`; or `tested`, with the ranks that are proved and why the others are not.

    `reason` says of a proof what it covers.
    """

    status: str
    ranks: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        if self.status == "proved":
            return self.status
        partly = f", proved up to rank {self.ranks[-1]}" if self.ranks else ""
        return f"{self.status}{partly}: {self.reason}"


UNRECORDED = Verdict("tested", (), "nothing is recorded yet; run `make docs`")


def recorded_verdicts() -> Mapping[str, Verdict]:
    """The recorded verdict on every rule of the book, by name."""
    text = files("satura.rules").joinpath("verdicts.json").read_text("utf-8")
    found = {
        name: Verdict(entry["status"], tuple(entry["ranks"]), entry["reason"])
        for name, entry in json.loads(text).items()
    }
    return defaultdict(lambda: UNRECORDED, found)


def verdict(rule: Rule) -> Verdict:
    """What the prover says of `rule` now; takes seconds."""
    from satura.rewrite.prove import prove

    proof = prove(rule)
    return Verdict(WORDS[proof.status], proof.ranks, proof.reason)


def record(rules: Iterable[Rule]) -> str:
    """The text of rules/verdicts.json, a line per rule, from proofs made now."""
    lines = (f"  {json.dumps(rule.name)}: {json.dumps(asdict(verdict(rule)))}" for rule in rules)
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    from satura.rules import DEFAULT

    sys.stdout.write(record(DEFAULT))
