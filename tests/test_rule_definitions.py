"""Rules at their definition: what is recorded, where they stand, and whose names they may take."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace

import pytest

from satura.pipeline.rule_file import load_rules
from satura.rewrite.check.instances import draw_instance
from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import (
    Law,
    Rule,
    RuleSet,
    Tensor,
    attribute_function,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.language.terms import binary, concat, scalar, transpose, type_of
from satura.rewrite.language.type_check import ANY_DTYPE, ANY_RANK, PossibleTypes
from satura.rewrite.types.attributes import Axis, BinaryFn, Perm, UnaryFn
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules import DEFAULT


def not_declared(x: Tensor, p: Perm) -> Law:
    """a law without its decorator"""
    return rewrites(transpose(x, p), x, p.is_identity)


def test_annotations_that_say_nothing_about_variables_do_not_matter() -> None:
    def unannotated(x: Tensor, p: Perm):  # type: ignore[no-untyped-def]
        """transpose(x, p) = x where p is the identity"""
        return rewrites(transpose(x, p), x, p.is_identity)

    def unresolved(x: Tensor, p: Perm) -> Lw:  # type: ignore[name-defined]  # noqa: F821
        """transpose(x, p) = x where p is the identity"""
        return rewrites(transpose(x, p), x, p.is_identity)

    assert rule(unannotated).variables == rule(unresolved).variables == {"x": Tensor, "p": Perm}


@pytest.mark.parametrize(
    "sorts",
    [
        "x: \"'Tensor'\", p: 'Perm'", "x: Annotated[Tensor, 'any'], p: Annotated['Perm', 1]",
        "x: Tensor, p: Perm, /", "x: Tensor, /, p: Perm", "x: Tensor, *, p: Perm",
    ],
)  # fmt: skip
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_sorts_are_given_as_any_parameters_are(sorts: str, future: str) -> None:
    text = f"{future}from typing import Annotated\n{HEAD}@rule\ndef law({sorts}) -> Law:\n"
    text += "    'a law'\n    return rewrites(transpose(transpose(x, p), p.inverse), x)\n"
    law = vars(_module_of(text, "/a/file.py"))["law"]
    assert law.variables == {"x": Tensor, "p": Perm}


def test_conditions_are_negated_and_joined() -> None:
    @rule
    def law(x: Tensor, p: Perm) -> Law:
        """a law for perms of three axes that move something"""
        moves = ~p.is_identity
        return rewrites(transpose(x, p), x, (x.type.rank == 3) & moves)  # type: ignore[arg-type]

    (direction,) = law.directions
    type_ = TensorType(DType.F32, (1, 1, 1))
    (condition,) = direction.conditions
    assert str(condition) == "(x.type.rank == 3) & ~p.is_identity"
    assert direction.holds(condition, {"x": type_, "p": Perm((1, 0, 2))})
    assert not direction.holds(condition, {"x": type_, "p": Perm((0, 1, 2))})


def test_calls_that_fit_are_recorded() -> None:
    @attribute_function
    def first(*axes: Axis, kind: UnaryFn | BinaryFn, fill: Scalar | None = None) -> Axis:
        return axes[0]

    @rule
    def law(f: BinaryFn, v: Scalar, x: Tensor, y: Tensor, axis: Axis) -> Law:
        """a call with a union, a default and any number of axes"""
        axes = first(axis, axis, kind=f, fill=v)
        return rewrites(binary(f, concat(x, y, axis), scalar(v)), concat(y, x, axes))

    axis, values = Axis(1), {"f": BinaryFn("add"), "v": Scalar.of(1, DType.F32)}
    assert law.directions[0].compute({"axis": axis, **values}) == (axis,)


HEAD = """\
from satura.language import (
    Law, Perm, Tensor, rewrites, rule, transpose, unary
)

"""
LAW = """\
@rule
def {name}(x: Tensor) -> Law:
    \"\"\"a law\"\"\"
    return rewrites(unary("neg", unary("neg", x)), {right})

"""


def _module_of(text: str, file: str) -> ModuleType:
    """The module of this text, with its lines where tracebacks look for them."""
    module = ModuleType("a_module_of_rules")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), vars(module))
    return module


def _load(path: Path, text: str, module: ModuleType | None = None) -> ModuleType:
    """The module that `path` is after `text` is written there, loaded anew or again."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("a_file_of_rules", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec) if module is None else module
    exec(compile(text, str(path), "exec"), vars(found))
    return found


def test_two_rules_of_one_name_in_a_file_are_reported_with_both_places(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    twice = HEAD + LAW.format(name="law", right="x") + LAW.format(name="law", right="x")
    with pytest.raises(RuleError) as caught:
        _load(path, twice)
    assert f"rule 'law' ({path}:10): another rule is called 'law', at {path}:5" in str(caught.value)
    assert "rename one" in str(caught.value)


DECORATORS = """\
import functools

def plain(function):
    @functools.wraps(function)
    def call(*arguments, **keywords):
        return function(*arguments, **keywords)
    return call

def made(rule, function, name):
    function.__name__ = name
    return rule(function)
"""

KEPT = {
    "in a list": ("RULES = [{law}]", ["law"]),
    "in a set": ("RULES = RuleSet({law})", ["law"]),
    "in a table": ("RULES = {{'a': {law}}}", ["law"]),
    "under a decorator of this file": ("law = attribute_function({law})", ["law"]),
    "over a decorator of another file": ("law = rule(plain(law))", ["law"]),
    "by a function of another file": ("made(rule, law, 'other')", ["other"]),
    "in a loop": (
        "for name in ('one', 'two'):\n    law.__name__ = name\n    rule(law)", ["one", "two"]
    ),
    "in a text": ("exec('@rule\\ndef law(x: Tensor) -> Law:\\n    \"l\"\\n    return body(x)')",
                  ["law"]),
}  # fmt: skip


@pytest.mark.parametrize("how", KEPT)
def test_rules_count_wherever_their_file_keeps_them(tmp_path: Path, how: str) -> None:
    (tmp_path / "decorators_of_rules.py").write_text(DECORATORS)
    statement, names = KEPT[how]
    text = HEAD + (
        "from satura.language import RuleSet, attribute_function\n"
        "from satura.rules.algebra import drop_unit\n"
        "from decorators_of_rules import made, plain\n"
        "def body(x):\n    return rewrites(unary('neg', unary('neg', x)), x)\n"
        "def law(x: Tensor) -> Law:\n    'a law'\n    return body(x)\n"
    )
    path = tmp_path / "rules.py"
    path.write_text(text + statement.format(law="rule(law)") + "\n")
    for _ in range(2):
        assert [law.name for law in load_rules(path)] == names
    if "text" not in how:
        assert all(law.place == f"{path}:10" for law in load_rules(path))


REPEATED = {
    "a loop": (
        "for f in ('neg', 'bitnot'):\n    @rule\n    def law(x: Tensor) -> Law:\n"
        "        'a law'\n        return rewrites(unary(f, unary(f, x)), x)\n",
        r"two rules are called 'law': .*:6 and .*:6; .*in a loop.*`function.__name__ = …`",
    ),
    "a function": (
        "def made(f):\n    @rule\n    def law(x: Tensor) -> Law:\n        'a law'\n"
        "        return rewrites(unary(f, unary(f, x)), x)\n    return law\n"
        "a = made('neg'); b = made('bitnot')\n",
        r"two rules are called 'law': .*:6 and .*:6; .*in a loop.*`function.__name__ = …`",
    ),
    "two blocks": (
        "if True:\n    @rule\n    def law(x: Tensor) -> Law:\n        'a law'\n"
        "        return rewrites(unary('neg', unary('neg', x)), x)\n"
        "try:\n    @rule\n    def law(x: Tensor) -> Law:\n        'a law'\n"
        "        return rewrites(unary('bitnot', unary('bitnot', x)), x)\nfinally:\n    pass\n",
        r"two rules are called 'law': .*:6 and .*:11; rename one",
    ),
}


@pytest.mark.parametrize("how", REPEATED)
def test_no_rule_of_a_file_is_lost_to_another_of_its_name(tmp_path: Path, how: str) -> None:
    text, message = REPEATED[how]
    (tmp_path / "rules.py").write_text(HEAD + text)
    with pytest.raises(RuleError, match=message):
        load_rules(tmp_path / "rules.py")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("rule(rule(law))", "a Rule"), ("@rule\nclass Law2:\n    'a law'", "a class"),
        ("rule(5)", "an int"), ("rule(functools.partial(law))", "a partial"),
        ("rule(reassociates=True)('law')", "a str"), ("rule(classmethod(law))", "a classmethod"),
    ],
)  # fmt: skip
def test_a_rule_is_a_function(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "rules.py"
    text = LAW.format(name="law", right="x").removeprefix("@rule\n")
    path.write_text(f"import functools\n{HEAD}{text}{line}\n")
    message = rf"rules.py:10: @rule stands directly above a function, not above {what}$"
    with pytest.raises(RuleError, match=message):
        load_rules(path)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("rules.txt", b""), ("rules", b""), ("bom.py", b"\xef\xbb\xbf"),
        ("latin.py", b"# -*- coding: latin-1 -*-\n# \xe9\n"),
    ],
)  # fmt: skip
def test_any_file_of_python_will_do(tmp_path: Path, name: str, data: bytes) -> None:
    text = HEAD + LAW.format(name="law", right="x")
    (tmp_path / name).write_bytes(data + text.encode())
    (law,) = load_rules(tmp_path / name)
    assert "def law" in law.source
    (tmp_path / name).write_bytes(data + text.replace("law", "low").encode())
    (law,) = load_rules(tmp_path / name)
    assert law.name == "low", "what is read is what is run"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("Tenser", "did you mean 'Tensor'?"),
        ("later(1)\n\ndef later(): ...", "yet: what a law uses must be defined above it"),
        ("later\n\nclass later: ...", "yet: what a law uses must be defined above it"),
        ("reshape", "`from satura.language import reshape`"),
    ],
)  # fmt: skip
def test_names_that_are_not_there_are_corrected(tmp_path: Path, line: str, advice: str) -> None:
    (tmp_path / "rules.py").write_text(HEAD + line)
    with pytest.raises(RuleError) as caught:
        load_rules(tmp_path / "rules.py")
    assert "rules.py:5 cannot be run" in str(caught.value)
    assert str(caught.value).endswith(advice)


def test_a_file_may_be_loaded_again_after_a_change(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    law = LAW.format(name="law", right="x")
    module = _load(path, HEAD + law)
    assert vars(_load(path, HEAD + "# a comment\n" + law, module))["law"].line == 6


def test_a_rule_may_not_hide_an_op() -> None:
    with pytest.raises(RuleError, match=r"would hide the op 'transpose'.*rename the rule"):
        _module_of(HEAD + LAW.format(name="transpose", right="x"), "<a text>")


def test_rule_sets_say_what_is_no_rule_and_what_comes_twice(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    text = HEAD + LAW.format(name="law", right="x")
    first, again = (vars(_load(path, text))["law"] for _ in range(2))
    assert isinstance(first, Rule)
    with pytest.raises(RuleError, match="a file loaded twice is to be imported once"):
        RuleSet(first) + again
    other = vars(_load(tmp_path / "others.py", text))["law"]
    with pytest.raises(RuleError) as caught:
        RuleSet(first) + RuleSet(other)
    assert f"{path}:5 and {tmp_path / 'others.py'}:5" in str(caught.value)
    assert "rename one, or leave one out: .without('law')" in str(caught.value)
    with pytest.raises(RuleError, match=r"takes rules, not <function .*is @rule missing above it"):
        RuleSet(not_declared)  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="add sets with \\+"):
        RuleSet(RuleSet(first))  # type: ignore[arg-type]
    with pytest.raises(RuleError, match=r"takes rules, not \[.*RuleSet\(\*rules\)") as caught:
        RuleSet([first] * 9)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


def test_a_rule_of_an_interpreter_or_a_notebook_has_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = HEAD + LAW.format(name="law", right="x")
    typed = vars(_module_of(text, "<stdin>"))["law"]
    assert (typed.place, typed.line) == ("<stdin>:5", 5)

    def label(file: str) -> tuple[str, str] | None:
        return ("Cell", "In[3]") if file == "/tmp/ipykernel_7/123.py" else None

    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=label))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert vars(_module_of(text, "/tmp/ipykernel_7/123.py"))["law"].place == "In[3]:5"
    wrong = HEAD + LAW.format(name="law", right="y")
    with pytest.raises(RuleError, match=r"rule 'law' \(In\[3\]:8\): NameError: name 'y'"):
        _module_of(wrong, "/tmp/ipykernel_7/123.py")
    assert vars(_module_of(text, "/a/file.py"))["law"].place == "/a/file.py:5"


def test_a_helper_below_its_rule_is_named() -> None:
    text = HEAD + LAW.format(name="law", right="later(x)") + "def later(x):\n    return x\n"
    with pytest.raises(RuleError, match="'later' is not defined yet: what a law uses must be"):
        _module_of(text, "/a/file.py")


def test_rules_without_source_differ_by_their_code() -> None:
    def digest(right: str) -> str:
        text = HEAD + LAW.format(name="law", right=right)
        scope: dict[str, object] = {}
        exec(compile(text, "<unknown>", "exec"), scope)
        law = scope["law"]
        assert isinstance(law, Rule)
        return law.digest

    assert digest("x") == digest("x") != digest('unary("abs", x)')


def test_what_is_drawn_is_among_the_types_that_are_possible() -> None:
    drawn = 0
    for direction in (direction for law in DEFAULT for direction in law.directions):
        dtypes, ranks = PossibleTypes().of(direction.left, ANY_DTYPE, ANY_RANK)
        for seed in range(12):
            instance = draw_instance(direction, Random(seed))
            if instance is not None:
                type_ = type_of(direction.left, instance.bindings)
                assert type_.dtype in dtypes and type_.rank in ranks, direction
                drawn += 1
    assert drawn > 400
