"""docs/how-it-works.md with what its python blocks print.

`python -m tests.how_it_works` prints it. A text block is all that the python block before it
prints.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout

from satura.rewrite.isolation.process import Doing, call
from tests.documents import ROOT, SECONDS

PAGE = ROOT / "docs" / "how-it-works.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.M | re.S)


def page() -> str:
    """The page, its text blocks made anew; nothing of what it runs stays here."""

    def run(doing: Doing) -> str:
        doing(f"running {PAGE.name}", SECONDS)
        return _Run().page(PAGE.read_text())

    return call(run, SECONDS)


class _Run:
    """The names that the page has defined so far, and what its last python block printed."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self.printed = ""

    def page(self, text: str) -> str:
        return BLOCK.sub(self.block, text)

    def block(self, found: re.Match[str]) -> str:
        if found[1] == "text":
            shown, self.printed = self.printed, ""
            return f"```text\n{shown}```"
        assert not self.printed, f"the page does not show that it prints {self.printed}"
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(found[2], self.names)
        self.printed = "\n".join(map(str.rstrip, printed.getvalue().splitlines(keepends=False)))
        self.printed += "\n" * bool(self.printed)
        return found[0]


if __name__ == "__main__":
    sys.stdout.write(page())
