"""Files of `satura experiment` and `satura rules --worth`: what stands in them, and who writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from math import inf, nan
from pathlib import Path

import pytest
from typer.testing import CliRunner

from satura.commands import experiment as experiment_module
from satura.commands import worth as worth_module
from satura.commands.cli import app
from satura.commands.worth import Worth
from satura.experiments import Trial, read_trials, table, trials, write_trials
from satura.experiments.table import read_rows, update_rows
from satura.rewrite.errors import CallError, FileError
from satura.rewrite.extract.gym import read_gym
from tests.test_answers import CIRCLE
from tests.tried_models import graph_file


@pytest.mark.parametrize("command", ["trials", "worth"])
def test_rows_that_another_process_writes_meanwhile_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    out = tmp_path / "both.csv"

    def of_another(name: str) -> Trial | Worth:
        if command == "worth":
            return Worth("exact", name, "other", "1", True, *(1.0,) * 2, *(1,) * 6)
        return replace(next(trials({"g": CIRCLE})), model=name)

    def write(name: str) -> None:
        row = of_another(name)
        update_rows(out, type(row), lambda now: [*now, row])

    def writing_meanwhile(*given: object) -> Iterator[Trial | Worth]:
        for name in ("a", "b"):
            write(f"other {name}")
            yield of_another(name)

    if command == "worth":
        monkeypatch.setattr(worth_module, "worths", writing_meanwhile)
        arguments = ["rules", "exact", "--worth", "light_squeezenet", "--csv", str(out)]
    else:
        monkeypatch.setattr(experiment_module, "trials", writing_meanwhile)
        arguments = ["experiment", str(graph_file(tmp_path)), "--csv", str(out)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    rows = read_rows(out, type(of_another("a")))
    names = {row.law if isinstance(row, Worth) else row.model for row in rows}
    assert names == {"a", "b", "other a", "other b"}


COUNT = """
import sys
from dataclasses import asdict, replace
from satura.experiments import ChoiceGraph, trials
from satura.experiments.table import update_rows
(trial,) = trials({"g": ChoiceGraph(1, (0,), ((),), (1.0,), (0,))})
for number in range(40):
    row = replace(trial, model=f"{sys.argv[2]} {number}")
    update_rows(sys.argv[1], type(trial), lambda now: [*now, row])
"""


def test_processes_that_write_to_one_file_lose_no_row(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    command = [sys.executable, "-c", COUNT, str(out)]
    processes = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    assert {row.model for row in read_trials(out)} == {f"{n} {i}" for n in "ab" for i in range(40)}


def test_a_file_of_many_rows_is_not_written_after_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But soon after, and whatever ends the work."""
    out, counts, seconds = tmp_path / "t.csv", [0], [1.0]
    (trial,) = trials({"g": CIRCLE})
    found: list[Trial] = []

    def passing() -> float:
        seconds[0] += 0.01
        return seconds[0]

    def write(path: Path, kind: type[Trial], change: Callable[[list[Trial]], list[Trial]]) -> None:
        counts[0] += 1
        update_rows(path, kind, change)  # type: ignore[arg-type]

    monkeypatch.setattr(table, "monotonic", passing)
    monkeypatch.setattr(table, "update_rows", write)
    with pytest.raises(KeyboardInterrupt), table.updated(out, Trial, lambda now: found) as update:
        for number in range(100):
            found.append(replace(trial, model=str(number)))
            update()
        raise KeyboardInterrupt
    assert read_trials(out) == found and 5 < counts[0] < 20
    with table.updated(None, Trial, lambda now: found) as update:
        update()


@pytest.mark.parametrize(
    ("command", "option", "name", "message"),
    [
        ("experiment", "--csv", ".", "it is a folder: name a file in it"),
        ("experiment", "--csv", "no/t.csv", "there is no folder"),
        ("rules --worth", "--csv", ".", "it is a folder: name a file in it"),
        ("rules --worth", "--csv", "no/t.csv", "there is no folder"),
        ("experiment", "--plot", ".", "it is a folder: name a file in it"),
        ("experiment", "--plot", "p.xyz", r"a plot does not end in '\.xyz'; endings are .*, png, "),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    command: str, option: str, name: str, message: str,
) -> None:  # fmt: skip
    if option == "--plot":
        pytest.importorskip("matplotlib")
    monkeypatch.setattr(experiment_module, "trials", None)
    monkeypatch.setattr(worth_module, "worths", None)
    arguments = [*command.split(), str(graph_file(tmp_path)), option, str(tmp_path / name)]
    refused = CliRunner().invoke(app, arguments)
    assert isinstance(refused.exception, CallError)
    assert re.search(message, str(refused.exception))


def test_the_table_is_printed_also_where_the_plot_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Path, found: list[Trial]) -> None:
        raise FileError("the disk is full")

    monkeypatch.setattr(experiment_module, "check_plot", lambda path: None)
    monkeypatch.setattr(experiment_module, "plot_trials", failing)
    arguments = ["experiment", str(graph_file(tmp_path)), "--plot", str(tmp_path / "p.png")]
    shown = CliRunner().invoke(app, arguments)
    assert isinstance(shown.exception, FileError) and "egraph" in shown.stdout


def _with(trial: Trial, column: str, value: float) -> Trial:
    return Trial(**{**asdict(trial), column: value})


@pytest.mark.parametrize(
    ("column", "value", "is_refused"),
    [("cost", nan, True), ("bound", inf, True), ("gap", nan, True), ("gap", inf, False)],
)
def test_numbers_of_a_file_are_finite(
    tmp_path: Path, column: str, value: float, is_refused: bool
) -> None:
    """But for a gap above a bound of 0."""
    out, graph = tmp_path / "t.csv", graph_file(tmp_path)
    (trial,) = trials({"egraph": read_gym(graph.read_text()).graph})
    changed = _with(trial, "bound", 0.0) if column == "gap" else trial
    write_trials(out, [replace(trial, model="g"), _with(changed, column, value)])
    shown = CliRunner().invoke(app, ["experiment", str(graph), "--csv", str(out), "--json"])
    if is_refused:
        assert isinstance(shown.exception, CallError)
        expected = rf"t\.csv, line 3: {column} is {value}, which is not a finite number"
        assert re.search(expected, str(shown.exception))
    else:
        assert shown.exit_code == 0


@pytest.fixture
def lines(tmp_path: Path) -> tuple[Path, list[str]]:
    """A file of two trials, and its lines."""
    out = tmp_path / "t.csv"
    (trial,) = trials({"g": CIRCLE}, extractors=("exact",))
    write_trials(out, [trial, replace(trial, model="h")])
    return out, out.read_text().splitlines()


def with_value(line: str, column: str, value: str) -> str:
    values = line.split(",")
    values[[each.name for each in fields(Trial)].index(column)] = value
    return ",".join(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: with_value(line, "cost", "abc"), "line 3: cost is 'abc', not a number"),
        (lambda line: with_value(line, "copies", "1.5"), "line 3: copies is '1.5', not a whole"),
        (
            lambda line: with_value(line, "dispatches", "-4"),
            "line 3: dispatches is -4, which is below",
        ),
        (lambda line: with_value(line, "cost", "-1"), r"line 3: cost is -1\.0, which is below 0"),
        (
            lambda line: with_value(line, "bound", "9"),
            r"line 3: bound is 9\.0, which is above cost, 7",
        ),
        (lambda line: with_value(line, "gap", "0.5"), r"line 3: gap is 0\.5, and 0\.0 by cost and"),
        (lambda line: line[:20], "line 3: it has . values, not 17"),
        (lambda line: line + ",", "line 3: it has 18 values, not 17"),
        (lambda line: '"' + line, "line 3: it cannot be read as CSV"),
        (
            lambda line: line + "\r\n" + with_value(line, "enodes", "6"),
            "line 4: it says something else of what line 3 is about",
        ),
    ],
)
def test_a_wrong_line_is_named(
    lines: tuple[Path, list[str]], change: Callable[[str], str], message: str
) -> None:
    out, (header, first, second) = lines
    out.write_text("\r\n".join([header, first, change(second)]))
    with pytest.raises(CallError, match=rf"t\.csv, {message}.*; remove the line$"):
        read_trials(out)


def test_blank_lines_and_a_mark_before_the_header_say_nothing(
    lines: tuple[Path, list[str]],
) -> None:
    """Nor does a line that was written twice, or a gap of six digits."""
    out, (header, first, second) = lines
    found = read_trials(out)
    text = "\r\n".join(
        [header, "", first, " ", "," * 16, second, with_value(second, "gap", "1e-5")]
    )
    out.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_trials(out) == [*found, replace(found[1], gap=1e-5)]


def test_an_infinite_gap_is_null_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = trials({"g": CIRCLE})
    without = replace(trial, bound=0.0, gap=inf)
    monkeypatch.setattr(experiment_module, "trials", lambda *given: iter([without]))
    shown = CliRunner().invoke(app, ["experiment", str(graph_file(tmp_path)), "--json"])
    assert shown.exit_code == 0 and json.loads(shown.stdout)[0]["gap"] is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
@pytest.mark.parametrize("option", ["--csv", "--plot"])
def test_what_could_not_be_written_is_an_error(tmp_path: Path, option: str) -> None:
    if option == "--plot":
        pytest.importorskip("matplotlib")
    (tmp_path / "full").symlink_to("/dev/full")  # a file beside it would stand here
    graph = graph_file(tmp_path)
    files = {*tmp_path.iterdir()}
    refused = CliRunner().invoke(app, ["experiment", str(graph), option, str(tmp_path / "full")])
    assert isinstance(refused.exception, FileError)
    assert re.search("cannot write .*full': No space left", str(refused.exception))
    assert {*tmp_path.iterdir()} == files


@pytest.mark.parametrize(
    "content", [b"precious", b"a,b\n", b"\x7fELF\x00\xff\n", b"\n", b'model,"']
)
def test_foreign_files_of_one_line_are_not_replaced(tmp_path: Path, content: bytes) -> None:
    csv = tmp_path / "notes.txt"
    csv.write_bytes(content)
    graph = str(Path(__file__).parent / "egraph.json")
    done = CliRunner().invoke(app, ["experiment", graph, "--csv", str(csv)])
    assert isinstance(done.exception, CallError) and csv.read_bytes() == content
    assert "is not a file of trials, which begins with their header: name another one" in str(
        done.exception
    )
    csv.write_bytes(b"")
    assert CliRunner().invoke(app, ["experiment", graph, "--csv", str(csv)]).exit_code == 0
    assert len(read_trials(csv)) == 1
