"""`satura check`: what it prints and answers for good, wrong, broken and hostile rule files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from satura.commands.check import _source_of_book as book_as_source
from satura.pipeline.rule_file import load_rules
from satura.rewrite.errors import RuleError
from satura.rules import DEFAULT
from tests.command_line import cli

HEAD = """
import os
from satura.language import (
    Law, Perm, Tensor, attribute_function, refuse_unless, rewrites, rule, transpose, unary
)
"""

GOOD = """
@rule
def undo(x: Tensor, p: Perm) -> Law:
    \"\"\"transpose(transpose(x, p), p inverted) = x\"\"\"
    return rewrites(transpose(transpose(x, p), p.inverse), x)
"""

WRONG = """
@rule
def forget(x: Tensor, p: Perm) -> Law:
    \"\"\"transpose(x, p) = x\"\"\"
    return rewrites(transpose(x, p), x)
"""

IDLE = """
@attribute_function
def long(p: Perm) -> Perm:
    refuse_unless(len(p.order) > 99, "too short")
    return p

@rule
def idle(x: Tensor, p: Perm) -> Law:
    \"\"\"transpose(x, p) = transpose(x, p) for very long p\"\"\"
    return rewrites(transpose(transpose(x, p), p), transpose(x, long(p)))
"""

HOSTILE = """
@attribute_function
def loops(p: Perm) -> Perm:
    while True:
        pass

@attribute_function
def dies(p: Perm) -> Perm:
    os._exit(9)

@attribute_function
def leaves(p: Perm) -> Perm:
    raise SystemExit(0)

@attribute_function
def raises(p: Perm) -> Perm:
    return Perm((p.order[9],))

@rule
def looping(x: Tensor, p: Perm) -> Law:
    \"\"\"an endless loop\"\"\"
    return rewrites(transpose(x, p), transpose(x, loops(p)))

@rule
def dying(x: Tensor, p: Perm) -> Law:
    \"\"\"the end\"\"\"
    return rewrites(transpose(x, p), transpose(x, dies(p)))

@rule
def leaving(x: Tensor, p: Perm) -> Law:
    \"\"\"an exit\"\"\"
    return rewrites(transpose(x, p), transpose(x, leaves(p)))

@rule
def raising(x: Tensor, p: Perm) -> Law:
    \"\"\"an exception\"\"\"
    return rewrites(transpose(x, p), transpose(x, raises(p)))
"""

LONELY_OP = """
from satura.ops import FLOATS, TensorType, op

@op(formula="x / (2 + abs(x))")
def lonely(x: TensorType) -> TensorType:
    \"\"\"x / (2 + |x|)\"\"\"
    refuse_unless(x.dtype in FLOATS, "lonely takes floats")
    return x
"""

USER_OP = """
from dataclasses import dataclass
import numpy as np
from satura.ops import UserAttribute, TensorType, op

@dataclass(frozen=True)
class Shift(UserAttribute):
    amount: int

def shifts(draw, result):
    return (result,), (Shift(draw.up_to(3)),)

@op(reference=lambda x, shift: np.roll(x, shift.amount), generator=shifts)
def rolled(x: TensorType, shift: Shift) -> TensorType:
    \"\"\"The elements in order, from another one on.\"\"\"
    return x

@rule
def unroll(x: Tensor, s: Shift) -> Law:
    \"\"\"rolled(x, s) = x\"\"\"
    return rewrites(rolled(x, s), x)
"""

BROKEN = {
    "no Python": ("def f(:", r"broken.py:1 cannot be run: SyntaxError: invalid"),
    "an exception": (HEAD + "\n1 / 0\n", r"broken.py:7 cannot be run: ZeroDivisionError"),
    "an exit": ("import sys\nsys.exit(0)", r"broken.py:2 cannot be run: SystemExit"),
    "a missing module": ("import no_such_module", r"broken.py:1 .*ModuleNotFoundError"),
    "no rules": ("from satura.rules.algebra import drop_unit", r"broken.py defines no rules"),
    "a rule twice": (HEAD + GOOD + GOOD, r"'undo' \(.*broken.py:12\): another .*:7, .*rename"),
    "a wrong rule": (
        HEAD + "@rule\ndef f(x: Tensor) -> Law:\n    '''f'''\n    return rewrites(x, x)",
        r"rule 'f' \(.*broken.py:\d+\)",
    ),
    "no text": ("\udcff", r"broken.py(:1)? cannot be run: .*decode byte 0xff"),
}


def write(path: Path, *parts: str) -> Path:
    path.write_text(HEAD + "".join(parts))
    return path


@pytest.mark.deep
def test_sound_rules_exit_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "good.py", GOOD)
    assert cli("check", file) == 0
    printed = capsys.readouterr().out
    assert re.search(r"undo\s*│\s*(tested|proved up to rank \d)\s*│\s*150\s*│\s*13\s*│", printed)
    assert "good.py" in printed


def test_a_refuted_rule_exits_with_1_and_shows_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "wrong.py", WRONG, IDLE)
    assert cli("check", "--seconds", 1000, file) == 1  # on a busy machine, too
    printed = capsys.readouterr().out
    assert f"{tmp_path / 'wrong.py'}:7" in printed and "is refuted" in printed
    assert re.search(r"idle\s*│\s*vacuous", printed)
    assert "unless long, line 14: too short" in printed.replace("\n", " ")
    program = printed[printed.index("import numpy") : printed.index("idle (")]
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.startswith("left ")


@pytest.mark.deep
def test_a_counterexample_with_a_users_op_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("check", write(tmp_path / "mine.py", USER_OP), "--json") == 1
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    found = rule["counterexample"]
    assert "Shift(amount=1)" in found["program"]
    run = subprocess.run(
        [sys.executable, "-c", found["program"]], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"left  {found['left']}\nright {found['right']}\n"


@pytest.mark.deep
def test_several_files_and_one_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is given twice is checked once."""
    monkeypatch.chdir(tmp_path)
    files = [write(tmp_path / "good.py", GOOD), write(tmp_path / "wrong.py", WRONG)]
    assert cli("check", *files, "good.py", "./good.py", "--json") == 1
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert [rule["rule"] for rule in rules] == ["undo", "forget"]
    assert [rule["place"].rpartition("/")[2] for rule in rules] == ["good.py:7", "wrong.py:7"]
    assert (
        rules[1]["verdict"] == "refuted"
        and "build.program(" in rules[1]["counterexample"]["program"]
    )
    assert cli("check", *files, "--rule", "undo", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["rules"]) == 1
    assert cli("check", *files, "--rule", "redo") == 2
    assert "is called 'redo'; those of the rule book" in capsys.readouterr().err
    assert cli("check", *files, "--rule", "undoo") == 2
    assert "did you mean 'undo'?" in capsys.readouterr().err
    assert cli("check", *files, "--rule=undoo", "--rule=undo", "--json-lines") == 2
    said = capsys.readouterr()
    assert [json.loads(line)["rule"] for line in said.out.splitlines()] == ["undo"]
    assert "'undoo'; did you mean 'undo'?" in said.err
    assert "the other rules were checked" in " ".join(said.err.split())


@pytest.mark.deep
def test_the_book_is_checked_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("check", "--rule", "cancel_negations", "--json") == 0
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert rule["rule"] == "cancel_negations" and rule["place"] == DEFAULT["cancel_negations"].place


@pytest.mark.deep
def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    file = write(tmp_path / "both.py", GOOD, WRONG)
    printed = {
        subprocess.run(
            [sys.executable, "-m", "satura", "check", str(file), "--json", "--seed", "3"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@pytest.mark.deep
def test_a_hostile_rule_ends_and_the_others_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "hostile.py", HOSTILE, GOOD)
    assert cli("check", file, "--seconds", "5", "--rule", "looping") == 1
    where = rf"loops, {file}:\d+, for p = \[.*\]"
    said = rf"rule 'looping' took too long in {where} \(the limit is 5 s of CPU time\)"
    shown = capsys.readouterr().out
    assert re.search(said, shown) and "--seconds" not in shown
    others = ["dying", "leaving", "raising", "undo"]
    assert cli("check", file, "--json", *(f"--rule={name}" for name in others)) == 1
    rules = {rule["rule"]: rule for rule in json.loads(capsys.readouterr().out)["rules"]}
    assert rules["dying"]["verdict"] == rules["leaving"]["verdict"] == "failed"
    assert (
        "exit status 9" in rules["dying"]["reason"] and "SystemExit" in rules["leaving"]["reason"]
    )
    assert rules["raising"]["verdict"] == "failed" and "IndexError" in rules["raising"]["reason"]
    assert rules["undo"]["verdict"] in ("tested", "proved")
    assert all(rule["place"].startswith(f"{file}:") for rule in rules.values())


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_clear_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = BROKEN[case]
    (tmp_path / "broken.py").write_bytes(text.encode(errors="surrogateescape"))
    assert cli("check", tmp_path / "broken.py") == 1
    message = capsys.readouterr().err
    assert message.startswith("satura: ") and message.count("\n") == 1
    assert re.search(expected, message), message


def test_a_file_that_never_ends_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "endless.py").write_text("while True:\n    pass\n")
    assert cli("check", tmp_path / "endless.py", "--seconds", "1") == 1
    assert "endless.py cannot be loaded" in capsys.readouterr().err


def test_rule_files_import_their_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "neighbour_rules.py", GOOD)
    write(tmp_path / "mine.py", "from neighbour_rules import undo\n", WRONG)
    assert [rule.name for rule in load_rules(tmp_path / "mine.py")] == ["forget"]
    sys.modules.pop("neighbour_rules")
    with pytest.raises(RuleError, match="cannot be read"):
        load_rules(tmp_path / "missing.py")


@pytest.mark.deep
def test_what_numpy_says_of_drawn_numbers_is_silent(tmp_path: Path) -> None:
    loud = """
import numpy as np

@attribute_function
def loud(p: Perm) -> Perm:
    return p if np.float32(3e38) * np.float32(len(p.order) + 9) else p

@rule
def undo(x: Tensor, p: Perm) -> Law:
    \"\"\"transpose(transpose(x, p), p inverted) = x\"\"\"
    return rewrites(transpose(transpose(x, p), loud(p).inverse), x)
"""
    file = write(tmp_path / "loud.py", loud)
    checked = subprocess.run(
        [sys.executable, "-m", "satura", "check", "--seconds", "1000", str(file)],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0 and "encountered" not in checked.stderr


def test_families_are_known_by_name_and_what_is_unknown_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    book = book_as_source()
    chosen = [name for name, _, _ in book.only(["transpose_past", "cancel_negations"]).rules]
    assert "transpose_past" in book.names and "transpose_past_cast" in chosen
    assert len(chosen) == 5
    asked = ["--rule", "redo", "--rule", "cancel_negation"]
    assert cli("check", *asked) == 2
    assert re.search(
        r"called 'redo', 'cancel_negation'; did you mean 'cancel_negations'\?; `satura rules`",
        " ".join(capsys.readouterr().err.split()),
    )


def test_wrong_usage_exits_with_2() -> None:
    assert cli("check", "missing.py") == 2


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e300", "86401"])
@pytest.mark.parametrize("command", [["check", "--rule", "twice"], ["why", "twice", "model.onnx"]])
def test_seconds_that_no_system_can_wait_for_are_a_wrong_call(
    command: list[str], seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(*command, "--seconds", seconds) == 2
    assert "'--seconds'" in capsys.readouterr().err


@pytest.mark.deep
def test_checking_starts_without_the_backend_and_the_language_of_the_engine() -> None:
    script = """
import sys
import satura.commands.check
from satura.rewrite.egraph.bindings import bindings
print({"numba", "onnx", "z3", "egglog"} & set(sys.modules))
from egglog import EGraph
import egglog.bindings
print(egglog.bindings is bindings)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\nTrue\n"


def test_a_file_without_rules_has_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of an op alone."""
    file = write(tmp_path / "alone.py", LONELY_OP)
    assert cli("check", file) == 0
    assert capsys.readouterr().out == f"{file}: no rules to check\n"


def test_a_name_of_the_book_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "mine.py", GOOD.replace("undo", "compose_transposes"))
    assert cli("check", file, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["rules"]
    assert "has a rule 'compose_transposes', too: rename yours" in found["hint"]
    assert cli("check", write(tmp_path / "other.py", GOOD), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["rules"]
    assert not found["hint"]
