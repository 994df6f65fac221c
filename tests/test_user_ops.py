"""Ops that users declare: what is checked at the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.commands.pages import ops_page
from satura.errors import CallError, OpError, ProgramError
from satura.ops import (
    FLOATS,
    NUMBERS,
    Axis,
    Count,
    DType,
    Kind,
    Scalar,
    TensorType,
    UserAttribute,
    local_ops,
    op,
    refuse_unless,
)
from satura.pipeline.rule_file import load_rules
from satura.rewrite.ops import REGISTRY, USER_OPS
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.program.builder import Builder
from tests.user_ops import UserOps, user_ops


@pytest.fixture
def ops() -> Iterator[UserOps]:
    with user_ops() as declared:
        yield declared


def test_what_is_declared_is_known_until_the_context_ends() -> None:
    before = set(REGISTRY), set(UNARY), set(BINARY), set(USER_OPS)
    with user_ops() as ops:
        assert "softsign" in UNARY and "hypotenuse" in BINARY and "lerp" in REGISTRY
        assert ops.elu.kind is Kind.ELEMENTWISE and ops.rolled.kind is Kind.HOST
    assert (set(REGISTRY), set(UNARY), set(BINARY), set(USER_OPS)) == before
    with user_ops():  # the same declarations once more
        pass


def test_a_formula_decides_which_element_types_an_op_takes(ops: UserOps) -> None:
    for name, taken in (("softsign", FLOATS), ("hypotenuse", FLOATS)):
        table = UNARY if name == "softsign" else BINARY
        assert table[name].dtypes == taken
    build = Builder()
    x = build.input("x", DType.F16, (2, 3))
    q = build.input("q", DType.I8, (2, 3))
    s = build.input("s", DType.F32, (2, 3))
    assert build.type(build.add(ops.lerp, (x, x, x))) == TensorType(DType.F16, (2, 3))
    assert build.type(build.add(ops.dequantize, (q, s), Count(0))) == build.type(s)
    with pytest.raises(ProgramError, match="mixes f16 and f32; convert one"):
        build.add(ops.lerp, (x, x, s))
    with pytest.raises(ProgramError, match=r"0\.5 is not of type i8"):
        build.add(op(formula="x + alpha", domain="d", op_type="shifted")(_plus), (q,), _number(0.5))


def test_a_number_makes_an_op_no_less_general() -> None:
    with local_ops():
        clipped = op(formula="min(max(x, low), 6)")(_clipped)
        assert clipped.user is not None
        assert {dtypes[0] for dtypes, _ in clipped.user.signatures} == NUMBERS


def _clipped(x: TensorType, low: Scalar) -> TensorType:
    """x, but at least `low` and at most 6"""
    return x


def _plus(x: TensorType, alpha: Scalar) -> TensorType:
    """x + alpha"""
    return x


def _number(value: float) -> Scalar:
    return Scalar.of(value, DType.F32)


def _one(x: TensorType) -> TensorType:
    """Something of x."""
    return x


def _one_float(x: TensorType) -> TensorType:
    """Something of a float."""
    refuse_unless(x.dtype in FLOATS)
    return x


def _two(x: TensorType, y: TensorType) -> TensorType:
    """Something of x and y."""
    return x


def _untold(x: TensorType) -> TensorType:
    return x


def _along(x: TensorType, axis: Axis) -> TensorType:
    """Something along an axis."""
    return x


def _late(axis: Axis, x: TensorType) -> TensorType:
    """An attribute before its operand."""
    return x


def _many(*operands: TensorType) -> TensorType:
    """Any number of operands."""
    return operands[0]


def _plain(x: TensorType, count: int) -> TensorType:
    """An attribute that is not an attribute."""
    return x


@dataclass
class Melting(UserAttribute):
    """An attribute class whose values can change."""

    grade: int


def _melting(x: TensorType, state: Melting) -> TensorType:
    """An attribute that may be another one later."""
    return x


def _nameless(count: Count) -> TensorType:
    """No operand."""
    return TensorType(DType.F32, ())


def _smaller(x: TensorType) -> TensorType:
    """Another shape."""
    return x.with_shape(())


def _counted(x: TensorType) -> TensorType:
    """Another element type than the formula's."""
    return x.with_dtype(DType.I32)


def _picky(x: TensorType) -> TensorType:
    """Only matrices."""
    refuse_unless(x.rank == 2, "only matrices")
    return x


def _broken(x: TensorType) -> TensorType:
    """A type rule that fails."""
    return x.with_dtype(x.shape["rank"])  # type: ignore[call-overload]


def relu(x: TensorType) -> TensorType:
    """A name that satura has."""
    return x


def known(x: TensorType) -> TensorType:
    """A name that the e-graph has."""
    return x


MISTAKES = [
    (_one, {"formula": "x * (1 + "}, "is not a Python expression"),
    (_one, {"formula": "x + z"}, "there is no 'z'"),
    (_two, {"formula": "x + why"}, "there is no 'why'"),
    (_one, {"formula": "sqroot(x)"}, "there is no function 'sqroot'; did you mean 'sqrt'?"),
    (_one, {"formula": "max(x)"}, "'max(x)': max takes 2 arguments"),
    (_one, {"formula": "x.real"}, "'x.real' cannot stand in a formula"),
    (_one, {"formula": "x // 2"}, "'x // 2' cannot stand in a formula"),
    (_one, {"formula": "-x if x else x"}, "the condition of '-x if x else x' is not a bool"),
    (_one, {"formula": "not x + 1"}, "it takes no element type"),
    (_one, {"formula": "2 * x", "reference": lambda x: 3 * x}, "its formula gives"),
    (_one, {"formula": "x / 2", "reference": lambda x: x / 2}, "refuse this element type"),
    (_one, {"formula": "neg(x)", "reference": np.negative}, ""),
    (_one, {"formula": "abs(x)", "reference": lambda x: x.nothing}, "its reference failed on"),
    (_one, {"formula": "abs(x)", "reference": lambda x: x.sum()}, "its reference gave shape []"),
    (_one, {"formula": "neg(x)", "reference": lambda x: -x[:]}, "failed on (f64[])"),
    (_along, {"formula": "x"}, "'axis' is a Axis; attributes of an op with a formula"),
    (_smaller, {"formula": "x"}, "has the shape of its operands"),
    (_counted, {"formula": "x"}, "gives i32, but its formula f64"),
    (_picky, {"formula": "x"}, "takes every shape"),
    (_broken, {"formula": "x"}, "its type rule failed on (f64[2, 3]): TypeError"),
    (_one, {}, "it needs a formula, or a reference"),
    (_one, {"kind": Kind.REDUCTION, "formula": "x"}, "leave out its kind"),
    (_untold, {"formula": "x"}, "the docstring is missing"),
    (_late, {"reference": np.copy}, "the operand 'x' must come before the attributes"),
    (_many, {"reference": np.copy}, "give every operand a parameter of its own"),
    (
        _plain,
        {"reference": np.copy},
        "'count: int' is neither an operand (TensorType) nor an attribute",
    ),
    (_melting, {"reference": np.copy}, "Melting must be a dataclass, and frozen"),
    (_nameless, {"reference": np.copy}, "it needs an operand"),
    (_one, {"formula": "x", "domain": ""}, "its domain is that of ONNX's own ops"),
    (_one, {"formula": "x", "domain": "my dom"}, "'my dom' is not a domain in ONNX"),
    (_one, {"formula": "x", "op_type": "a b/c"}, "its op_type 'a b/c' is not a name in ONNX"),
    (_one, {"formula": "x", "domain": "my-org.ops_2", "op_type": "One_2"}, ""),
    (_one_float, {"formula": "x + 0", "reference": np.copy}, "0.0 where its reference gives -0.0"),
    (_one_float, {"formula": "-(-x)", "reference": np.copy}, ""),
    (_one_float, {"formula": "-x", "reference": lambda x: np.where(x != x, np.nan, -x)}, ""),
    (relu, {"formula": "x"}, "choose another"),
    (known, {"formula": "x"}, "this name has a meaning in the e-graph"),
]  # fmt: skip


@pytest.mark.parametrize(("type_rule", "arguments", "message"), MISTAKES)
def test_a_mistake_is_an_error_at_the_declaration(
    type_rule: object, arguments: dict[str, object], message: str
) -> None:
    line = type_rule.__code__.co_firstlineno  # type: ignore[attr-defined]
    with local_ops():
        if not message:
            op(**arguments)(type_rule)  # type: ignore[arg-type]
            return
        with pytest.raises(OpError) as caught:
            op(**arguments)(type_rule)  # type: ignore[arg-type]
    text = str(caught.value)
    assert message in text
    assert f"op '{type_rule.__name__}' ({__file__}:{line})" in text  # type: ignore[attr-defined]


def test_a_second_op_of_a_name_is_refused(ops: UserOps) -> None:
    with pytest.raises(OpError, match=r"an op of this name is declared at .*user_ops.py:\d+"):

        @op(formula="x")
        def softsign(x: TensorType) -> TensorType:
            """Another one."""
            return x

    with pytest.raises(OpError, match="elu has the same name and domain in ONNX models"):
        op(formula="x", domain="test.domain", op_type="MyElu")(_one)


LOOPS = {
    "another formula": "@op(formula=f'x * {k}')",
    "another number in a default": "@op(reference=lambda x, k=k: x * k)",
    "another number in a closure": "@op(reference=times(k))",
    "another ONNX name": "@op(formula='x', op_type=f'F{k}')",
}


@pytest.mark.parametrize("how", LOOPS)
def test_no_op_is_lost_to_another_of_its_line(tmp_path: Path, how: str) -> None:
    head = "from satura.ops import TensorType, op\ndef times(k):\n    return lambda x: x * k\n"
    body = "    def scaled(x: TensorType) -> TensorType:\n        'x scaled'\n        return x\n"
    path = tmp_path / "scaled.py"
    with local_ops():
        path.write_text(f"{head}for k in (2, 3):\n    {LOOPS[how]}\n{body}")
        with pytest.raises(OpError, match=r"'scaled' \(.*scaled.py:5\): this line has declared"):
            load_rules(path)
        for numbers in ("2", "3", "3, 3"):  # edited and loaded again; the same one again
            path.write_text(f"{head}for k in ({numbers},):\n    {LOOPS[how]}\n{body}")
            load_rules(path)


def test_ops_of_a_loop_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "scaled.py").write_text(
        "from satura.ops import TensorType, op\nfor k in (2, 3):\n"
        "    def scaled(x: TensorType) -> TensorType:\n        'x scaled'\n        return x\n"
        "    scaled.__name__ = f'scaled_{k}'\n    op(formula=f'x * {k}')(scaled)\n"
    )
    with local_ops():
        assert len(load_rules(tmp_path / "scaled.py")) == 0
        assert {"scaled_2", "scaled_3"} <= USER_OPS.keys()


@pytest.mark.parametrize("what", [UserOps, 5, np.exp, satura])
def test_an_op_is_a_function(what: object) -> None:
    with pytest.raises(
        OpError, match=r"test_user_ops.py:\d+: @op\(…\) stands directly above a func"
    ):
        op(formula="x")(what)  # type: ignore[arg-type]


def test_the_decorator_needs_its_parentheses() -> None:
    with pytest.raises(OpError, match=r"^op '_one' \(.*test_user_ops.py:\d+\): write @op\(…\)"):
        op(_one)  # type: ignore[arg-type]
    with pytest.raises(OpError, match=r"^.*test_user_ops.py:\d+: the kind of an op is .*'x \+ 1'"):
        op("x + 1")  # type: ignore[arg-type]


def test_a_reference_that_errs_is_named_at_the_call(ops: UserOps) -> None:
    def grown(x: TensorType) -> TensorType:
        """One more than the type rule says."""
        return x

    def wrecked(x: TensorType) -> TensorType:
        """Writes to its operand."""
        return x

    def overwrite(x: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> object:
        x += 1  # type: ignore[misc]
        return x

    append = op(reference=lambda x: np.append(x, x))(grown)
    write = op(reference=overwrite)(wrecked)
    for declared, message in ((append, "gave float32\\[4\\] where"), (write, "read-only")):
        build = Builder()
        program = build.program({"y": build.add(declared, (build.input("x", DType.F32, (2,)),))})
        with pytest.raises(CallError, match=rf"op '{declared.name}' \(.*{message}"):
            satura.interpret(program, {"x": np.ones(2, np.float32)})


def test_the_page_of_canonical_ops_does_not_change() -> None:
    before = ops_page()
    with user_ops():
        assert ops_page() == before


DECLARES = '''
from satura.ops import TensorType, op

@op(formula="x * x * x")
def cubed(x: TensorType) -> TensorType:
    """x to the third power"""
    return x
'''


def test_a_file_that_declares_ops_is_a_file_of_rules(tmp_path: Path) -> None:
    (tmp_path / "cubed.py").write_text(DECLARES)
    with local_ops():
        for _ in range(2):  # again, as where a file is checked and then used
            assert len(load_rules(tmp_path / "cubed.py")) == 0
            assert "cubed" in UNARY
        (tmp_path / "other.py").write_text(DECLARES)
        with pytest.raises(OpError, match=r"declared at .*cubed\.py:4; rename one"):
            load_rules(tmp_path / "other.py")
