"""Saved programs with ops of users: their machine code has what the formulas said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.ops import DType, local_ops
from satura.pipeline.rule_file import load_rules
from satura.rewrite.errors import ArtifactError
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from tests.command_line import cli

OP = """
from satura.ops import TensorType, op


@op(formula="{}")
def saved_op(x: TensorType) -> TensorType:
    \"""What a saved program has.\"""
    return x
"""
TWO = np.full(3, 2, np.float32)


def declare(file: Path, formula: str) -> None:
    file.write_text(OP.format(formula))
    load_rules(file)


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[Path]:
    """A program that squares rows of 3, saved; afterwards its op is not known any more."""
    with local_ops():
        declare(tmp_path / "own.py", "x * x")
        build = Builder()
        x = build.input("x", DType.F32, (symbol("n"),))
        compiled = satura.compile(build.program({"y": build.unary("saved_op", x)}), rules="none")
        compiled.save(tmp_path / "own.satura", sizes=[{"n": 3}])
    with local_ops():
        yield tmp_path / "own.satura"


def test_an_op_that_is_not_declared_is_asked_for(saved: Path) -> None:
    opened = satura.open(saved)
    assert opened.run({"x": TWO})["y"].tolist() == [4, 4, 4]
    with pytest.raises(ArtifactError, match="op that is not known here, 'saved_op': import"):
        satura.open(saved, verify=True)
    declare(saved.with_name("own.py"), "x * x")
    satura.open(saved, verify=True)


def test_an_op_that_was_edited_is_told(saved: Path) -> None:
    declare(saved.with_name("own.py"), "x * x * x")
    with pytest.warns(
        UserWarning, match=r"'saved_op' as x \* x, as it was saved, and here it is x"
    ):
        opened = satura.open(saved)
    assert opened.run({"x": TWO})["y"].tolist() == [4, 4, 4]
    with (
        pytest.warns(UserWarning, match="saved_op"),
        pytest.raises(ArtifactError, match=r"'saved_op' as x \* x, and here .*: save it again"),
    ):
        satura.open(saved, verify=True)


def test_the_command_takes_the_file_of_an_op(
    saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("run", saved, "--verify") == 1
    assert "'saved_op': give its file, --with FILE.py" in capsys.readouterr().err
    assert cli("run", saved, "--verify", "--with", saved.with_name("own.py")) == 0
