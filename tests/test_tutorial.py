"""docs/tutorial.md, followed as a reader would: its files written, its commands run, in order.

A python block that begins with `# name.py` is that file; any other python block replaces functions
of the file before it. A text block is what the commands before it print; `…` stands for whatever it
leaves out: lines where it is a line, else a part of its line.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from satura.pipeline.models import load
from satura.pipeline.stages import saturate
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import extract
from satura.rewrite.extract.statistics import statistics
from satura.rules import DEFAULT
from tests.documents import ENVIRONMENT, ROOT, satura

TUTORIAL = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
EXIT_CODE = re.compile(r"# exits with (\d)")
PYTHON = {"python": [], "pytest": ["-m", "pytest"]}


class Reader:
    """Who follows the tutorial in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder
        self.printed = ""

    def python(self, text: str) -> None:
        """Write a file, or change functions of the last one."""
        name = re.match(r"# (\w+\.py)\n", text)
        if name is not None:
            self.file = self.folder / name[1]
            self.file.write_text(text)
        else:
            self.file.write_text(with_functions_of(self.file.read_text(), text))

    def sh(self, text: str) -> None:
        """Run each line and keep what it prints."""
        self.printed = ""
        for line in text.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            if program == "pip":
                continue
            if program == "satura":
                code, printed = satura(arguments, self.folder)
            else:
                code, printed = self._python(PYTHON[program] + arguments)
            expected = EXIT_CODE.search(line)
            assert code == (int(expected[1]) if expected else 0), (line, printed)
            self.printed += printed

    def _python(self, arguments: list[str]) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=ENVIRONMENT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def text(self, text: str) -> None:
        """Compare with what the last commands printed."""
        lines = [re.escape(line.strip()).replace("…", ".*") for line in text.splitlines()]
        shown = "\n".join("(.*\n)*?.*" if line == ".*" else rf" *{line} *" for line in lines)
        assert re.search(rf"^{shown}$", self.printed, re.M), f"{text}\nis not in\n{self.printed}"


def with_functions_of(source: str, changed: str) -> str:
    """`source` with the functions that `changed` defines in place of its own of the same names."""
    lines, replacements = source.splitlines(keepends=True), changed.splitlines(keepends=True)
    old = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    for node in reversed(ast.parse(changed).body):  # from below, so that places above stay
        assert isinstance(node, ast.FunctionDef) and node.name in old, changed
        lines[_span(old[node.name])] = replacements[_span(node)]
    return "".join(lines)


def _span(node: ast.FunctionDef) -> slice:
    """The lines of a function with its decorators."""
    first = node.decorator_list[0] if node.decorator_list else node
    return slice(first.lineno - 1, node.end_lineno)


@pytest.mark.deep
def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    reader = Reader(tmp_path)
    steps = BLOCK.findall(TUTORIAL.read_text())
    assert {language for language, _ in steps} == {"python", "sh", "text"}
    for language, text in steps:
        {"python": reader.python, "sh": reader.sh, "text": reader.text}[language](text)


def test_what_its_rule_is_worth_is_so_on_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path)
    for language, text in BLOCK.findall(TUTORIAL.read_text()):
        if language == "python":
            reader.python(text)
    for name in ("mine", "model"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import_module("model")
    rules = DEFAULT + import_module("mine").slice_into_concat
    classes = saturate(load("model.onnx"), rules).classes
    for lanes, threads in product((4, 8, 16), (1, 2, 64)):
        model = CostModel.of_vectors(lanes, threads)
        flops = statistics(extract(classes, model))["flops"]
        assert flops < 19200, model.identity
        assert f"{flops} flops\n" in TUTORIAL.read_text()
