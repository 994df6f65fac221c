"""A mistake of one line that tests are to catch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Fault:
    """A mistake: `old`, which stands once in `file`, replaced by `new`.

    `tests` should catch it first, in `make test` or, where the tier says so, `make test-deep`.
    """

    file: str
    old: str
    new: str
    tests: str
    tier: str = "test"

    def faulty_text(self) -> str:
        """The text of the file with this fault."""
        return (ROOT / self.file).read_text().replace(self.old, self.new)
