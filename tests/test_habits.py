"""What people try first: calls in any form, wrong options, printing and pickling a Compiled."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import satura
from satura.backend import cores, target
from satura.errors import CallError, SaturaError
from satura.language import Law, RuleSet, Tensor, rewrites, rule, unary
from satura.pipeline.rule_file import load_rules
from satura.rewrite.errors import RuleDroppedWarning, RuleError
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.host_call import HostFallbackWarning
from satura.rewrite.program.program import Program
from satura.rewrite.system.files import ARTIFACT
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from satura.testing import assert_sound
from tests.command_line import cli
from tests.onnx_models import make_model, node

X = np.array([[1, -2, 3]], np.float32)
Y = np.array([[5, 7, 9]], np.float32)
Mistake = Callable[[satura.Compiled, Path], object]
Run = Callable[[satura.Compiled], dict[str, NDArray[np.generic]]]


@pytest.fixture(scope="module")
def program() -> Program:
    build = Builder()
    shape = (symbol("rows"), 3)
    x, y = build.input("x", DType.F32, shape), build.input("y", DType.F32, shape)
    return build.program({"difference": build.binary("sub", x, y)})


@pytest.fixture(scope="module")
def compiled(program: Program) -> satura.Compiled:
    return satura.compile(program, threads=1)


def test_all_public_names_are_listed_before_they_are_used() -> None:
    vars(satura).pop("compile", None)
    assert {*satura.__all__, "rules"} <= {*dir(satura)}
    vars(satura).pop("rules", None)  # it may be imported, and no attribute yet
    assert satura.rules.DEFAULT


def test_a_compiled_says_what_it_is(compiled: satura.Compiled) -> None:
    shown = "(x: f32[rows, 3], y: f32[rows, 3]) -> (difference: f32[rows, 3]), threads=1"
    assert repr(compiled) == f"<satura.Compiled {shown}>"


@pytest.mark.parametrize(
    "run",
    [lambda f: f.run([X, Y]), lambda f: f.run((X, Y)), lambda f: f.run(X, Y),
     lambda f: f.run({"y": Y, "x": X})],
    ids=["list", "tuple", "by position", "dict"],
)  # fmt: skip
def test_run_takes_arguments_in_any_form(compiled: satura.Compiled, run: Run) -> None:
    np.testing.assert_array_equal(run(compiled)["difference"], X - Y)


def test_an_input_may_have_the_name_self() -> None:
    build = Builder()
    x = build.input("self", DType.F32, (2,))
    negated = satura.compile(build.program({"y": build.unary("neg", x)}), threads=1)
    assert np.array_equal(negated(self=np.ones(2, np.float32)), [-1, -1])


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (lambda f: f.run([X, Y, X]), "3 arguments for the 2 inputs"),
        (lambda f: f.run(None, {"x": X, "y": Y}), "run takes the dict of arguments alone"),
        (lambda f: f.run(X), r"input 'y' \(f32\[rows, 3\]\) is missing"),
        (lambda f: f.run(X.astype(">f4"), Y), "in another byte order: convert it by astype"),
        (lambda f: f.run([[0.0] * 3], Y), r"convert it by np.asarray\(x, 'float32'\)"),
        (
            lambda f: f.run(X, Y, out={"difference": np.empty((1, 3), ">f4")}),
            "in another byte order: make it of dtype 'float32'",
        ),
        (lambda f: f.run(), r"input 'x' \(f32\[rows, 3\]\) is missing"),
        (lambda f: f.run({"x": X}, Y), "one dict of arguments, or arguments by position"),
    ],
)
def test_run_says_what_it_wants(compiled: satura.Compiled, run: Run, reason: str) -> None:
    with pytest.raises(CallError, match=reason):
        run(compiled)


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        (lambda f, at: satura.save(f, at / "new.onnx"), "a Program, not Compiled: give compiled"),
        (lambda f, at: satura.save(f.program, at), "cannot write '.*': Is a directory"),
        (lambda f, at: f.save(at), "cannot write '.*': Is a directory"),
        (lambda f, _: f.save(""), "a path is empty: name a file"),
        (lambda f, _: satura.save(f.program, ""), "a path is empty: name a file"),
        (lambda *_: satura.open(""), "a path is empty: name a file"),
        (lambda *_: satura.compile(""), "a path is empty: name a file"),
        (lambda _, at: satura.open(at / "nope"), "cannot open '.*nope': No such file"),
        (lambda _, at: satura.load(at / "saved"), "is a compiled program, not a model"),
        (lambda _, at: satura.open(__file__), "an ONNX model is for satura.compile"),
    ],
)
def test_mistakes_with_files_are_named(
    compiled: satura.Compiled, tmp_path: Path, mistake: Mistake, reason: str
) -> None:
    (tmp_path / "saved").write_bytes(ARTIFACT + bytes(9))
    with pytest.raises(SaturaError, match=reason):
        mistake(compiled, tmp_path)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickling_says_what_to_do_instead(
    compiled: satura.Compiled, copied: Callable[[object], object]
) -> None:
    with pytest.raises(CallError, match=r"compiled\.save\(path\)"):
        copied(compiled)


@pytest.mark.parametrize("integer", [np.int64, np.uint8])
def test_integers_of_numpy_are_integers(program: Program, integer: Callable[[int], int]) -> None:
    one = integer(1)
    compiled = satura.compile(
        program, threads=one, dims={"rows": (one, integer(4))}, limits=satura.Limits(rounds=one)
    )
    assert type(compiled.threads) is int and compiled.threads == 1
    compiled.prepare({"rows": one})
    assert compiled.measure({"x": X, "y": Y}, rounds=one)
    for wrong in (np.float64(1), np.bool_(True), np.array([1])):
        with pytest.raises(CallError, match="threads must be an int"):
            satura.compile(program, threads=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", ["2", 2.0, True, 0, -1])
def test_what_is_not_a_number_of_threads_is_refused(program: Program, threads: object) -> None:
    with pytest.raises(CallError, match="threads must be an int of at least 1"):
        satura.compile(program, threads=threads)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "options", "reason"),
    [
        (satura.compile, {"verify": "x"}, "verify is True or False, not 'x'"),
        (satura.compile, {"strict": 1}, "strict is True or False, not 1"),
        (satura.optimize, {"strict": "no"}, "strict is True or False, not 'no'"),
        (satura.open, {"trust": "no"}, "trust is True or False, not 'no'"),
        (satura.compile, {"progress": 3}, "progress is a function of .*, not 3"),
        (satura.compile, {"dims": {"rows": 10**30}}, r"sizes are from 1 to 2\*\*48"),
        (satura.compile, {"dims": {"rows": (1, 2**62)}}, r"sizes are from 1 to 2\*\*48"),
        (rule, {"reassociates": "yes"}, "reassociates is True or False, not 'yes'"),
        (satura.Limits, {"node": 3}, "no limit 'node'; the limits are rounds, nodes, enough"),
    ],
)
def test_options_of_no_meaning_are_refused(
    program: Program, call: Callable[..., object], options: dict[str, object], reason: str
) -> None:
    model = {satura.open: ["nope"], satura.Limits: [], rule: []}.get(call, [program])
    with pytest.raises(CallError, match=reason):
        call(*model, **options)


@pytest.mark.parametrize("other", [5, None, "relu", []])
def test_what_is_not_a_rule_is_not_tested(other: object) -> None:
    with pytest.raises(CallError, match="a rule is tested, as @rule declares one, and not"):
        assert_sound(other)  # type: ignore[arg-type]


@pytest.mark.parametrize("rules", [[], None, 5])
@pytest.mark.parametrize("precision", ["exact", "fp32"])
def test_what_is_not_a_rule_set_is_refused(program: Program, rules: object, precision: str) -> None:
    with pytest.raises(CallError, match="there is no rule set"):
        satura.compile(program, precision=precision, rules=rules)  # type: ignore[arg-type]


def test_threads_beyond_the_cores_are_not_used(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cores, target):
        monkeypatch.setattr(module, "usable_threads", lambda: 2)
    with pytest.warns(UserWarning, match="64 threads are more than the 2 CPUs: 2 are used"):
        assert satura.compile(program, threads=64).threads == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert satura.compile(program, threads=2).threads == 2
        assert satura.compile(program).threads == 2


def test_warnings_show_the_line_of_the_caller(program: Program) -> None:
    @rule
    def fails(x: Tensor, y: Tensor) -> Law:
        """x - y is what fails to be computed"""
        from satura.language import Scalar, attribute_function, binary

        @attribute_function
        def broken(scalar: object) -> Scalar:
            raise ValueError

        return rewrites(binary("sub", x, y), unary("neg", broken(x.type)))

    model = make_model([node("Det", "x", "y")], {"x": [4, 4]})
    calls: dict[type[Warning], Callable[[], Program]] = {
        HostFallbackWarning: lambda: satura.load(model),
        RuleDroppedWarning: lambda: satura.optimize(program, RuleSet(fails)),
    }
    for warning, call in calls.items():
        with pytest.warns(warning) as caught:
            call()
        line = call.__code__.co_firstlineno
        assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_what_became_of_a_model_is_said_in_its_ops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [node("Transpose", "x", "a"), node("Transpose", "a", "b"), node("Neg", "b")]
    path = tmp_path / "model.onnx"
    onnx.save(make_model(turns, {"x": (2, 3)}), path)
    for model, said in (
        (path, "3 nodes became 1 (-2 Transpose)\n"),
        (
            tmp_path / "new.onnx",
            "1 node, the same as before; no rule made the program cheaper",
        ),
    ):
        assert cli("optimize", model, tmp_path / "new.onnx") == 0
        assert said in capsys.readouterr().out


NZ = """<ir_version: 8, opset_import: ["": 17]> g (float[n, m] x) => (float[k] y) {
    r = Relu(x) i = NonZero(r) t = Transpose(i) g = GatherND(x, t) y = Exp(g) }"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NZ, "5 nodes, the same as before; 2 parts rewritten, 1 node stays as it is: NonZero 'i'"),
        (
            """<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y)
            <float w = {2}> { z = Add(w, x) y = Exp(z) }""",
            "2 nodes, the same as before; no rule",
        ),
    ],
    ids=["in parts", "commuted"],
)
def test_files_with_the_same_nodes_are_not_compared(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(text), path := tmp_path / "model.onnx")
    assert cli("optimize", path, out := tmp_path / "new.onnx", "--time") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert said in first and second == "not timed: both files have the same nodes"
    assert cli("optimize", path, out, "--time", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nodes"]["same"] and found["timing"] is None and found["removed"] == {}


def test_a_file_with_the_same_nodes_is_not_called_cheaper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules change the program of a Softmax, which is written as one again."""
    onnx.save(make_model([node("Softmax")], {"x": ("n", 3)}), path := tmp_path / "model.onnx")
    assert cli("optimize", path, tmp_path / "new.onnx", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nodes"]["same"] and not found["cheaper"]


def test_optimize_has_its_numbers_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("satura.commands.timing.SETTLING", 0.0)
    turns = [node("Transpose", "x", "a"), node("Transpose", "a", "b"), node("Neg", "b")]
    onnx.save(make_model(turns, {"x": ("n", 3)}), path := tmp_path / "model.onnx")
    options = ["--json", "--text", "--time", "--threads=1", "--dim=n=5", "--cost=default"]
    assert cli("optimize", path, tmp_path / "new.onnx", *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file"] == str(tmp_path / "new.onnx") and found["cheaper"]
    assert found["nodes"] == {"before": 3, "after": 1, "same": False}
    assert (found["removed"], found["added"]) == ({"Transpose": 2}, {})
    assert (found["parts"], found["kept"]) == (1, []) and "unary(%0) neg" in found["text"]
    timing = found["timing"]
    assert timing["sizes"] == {"n": 16} and timing["before-ms"] > 0 and timing["share"] > 0
    assert cli("optimize", path, tmp_path / "new.onnx", "--dim=m=5") == 2
    assert "there is no size 'm' in the model; its sizes are ['n']" in capsys.readouterr().err


def test_rules_can_be_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("rules", "--grep", "Compose_Transposes") == 0
    shown = capsys.readouterr().out
    assert "1 rule in 'default' that says 'Compose_Transposes'" in shown
    assert "rules/transpose.py" in shown and "rules/pad.py" not in shown
    assert cli("rules", "--grep", "no rule says this") == 0
    assert capsys.readouterr().out.startswith("0 rules")


@pytest.mark.parametrize("name", ["circle", "a\0b", "x" * 5000])
def test_names_of_no_file_of_rules(tmp_path: Path, name: str) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(RuleError, match="cannot be read"):
        load_rules(tmp_path / name)


@pytest.mark.deep
def test_bench_takes_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # no header is broken, whichever runtimes there are
    model = tmp_path / "model.onnx"
    build = Builder()
    satura.save(build.program({"y": build.unary("abs", build.input("x", DType.F32, (4,)))}), model)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from satura.language import *\n\n@rule\ndef forget(x: Tensor) -> Law:\n"
        '    """abs(x) = x, which is wrong"""\n    return rewrites(unary("abs", x), x)\n'
    )
    run = ["bench", model, "--rounds", "1", "--threads", "1", "--json"]
    errors = []
    for more in (["--with", wrong], ["--rules", "none"]):
        assert cli(*run, *more) == 0
        errors.append(json.loads(capsys.readouterr().out)["models"][0]["error"])
    assert errors[0] > 0 and errors[1] == 0
    assert cli(*run[:-1]) == 0
    assert "time / onnxruntime" in " ".join(capsys.readouterr().out.split())
