"""Ops that users declare: what is checked at the declaration, and their place in rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.api import rewritten
from satura.commands.pages import ops_page
from satura.errors import CallError, OpError, ProgramError, RuleError
from satura.ops import (
    FLOATS,
    Axes,
    Axis,
    Count,
    DType,
    Kind,
    OwnAttribute,
    Scalar,
    TensorType,
    local_ops,
    op,
    refuse_unless,
)
from satura.rewrite.build import Builder
from satura.rewrite.dsl import Law, Tensor, Varying, rewrites, rule
from satura.rewrite.ir import Program
from satura.rewrite.ops import OWN, REGISTRY
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.prove import prove
from satura.rewrite.statistics import statistics
from satura.rewrite.terms import unary
from satura.rulefile import load_rules
from satura.rules import BOOK, DEFAULT, NONE
from satura.rules.elementwise import movement, with_movement
from satura.testing import assert_sound, check
from tests.user_ops import Shift, UserOps, user_ops


@pytest.fixture
def ops() -> Iterator[UserOps]:
    with user_ops() as declared:
        yield declared


# Declarations


def test_what_is_declared_is_known_until_the_context_ends() -> None:
    before = set(REGISTRY), set(UNARY), set(BINARY), set(OWN)
    with user_ops() as ops:
        assert "softsign" in UNARY and "hypotenuse" in BINARY and "lerp" in REGISTRY
        assert ops.elu.kind is Kind.ELEMENTWISE and ops.rolled.kind is Kind.HOST
    assert (set(REGISTRY), set(UNARY), set(BINARY), set(OWN)) == before
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
    with pytest.raises(ProgramError, match=r"0\.5 is no i8"):
        build.add(op(formula="x + alpha", domain="d", op_type="shifted")(_plus), (q,), _number(0.5))


def _plus(x: TensorType, alpha: Scalar) -> TensorType:
    """x + alpha"""
    return x


def _number(value: float) -> Scalar:
    return Scalar.of(value, DType.F32)


def _one(x: TensorType) -> TensorType:
    """Something of x."""
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
    """An attribute that is no attribute."""
    return x


@dataclass
class Melting(OwnAttribute):
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
    (_one, {"formula": "x * (1 + "}, "is no Python expression"),
    (_one, {"formula": "x + z"}, "there is no 'z'"),
    (_two, {"formula": "x + why"}, "there is no 'why'"),
    (_one, {"formula": "sqroot(x)"}, "there is no function 'sqroot'; did you mean 'sqrt'?"),
    (_one, {"formula": "max(x)"}, "'max(x)': max takes 2 arguments"),
    (_one, {"formula": "x.real"}, "'x.real' cannot stand in a formula"),
    (_one, {"formula": "x // 2"}, "'x // 2' cannot stand in a formula"),
    (_one, {"formula": "-x if x else x"}, "the condition of '-x if x else x' is no bool"),
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
    (_plain, {"reference": np.copy}, "'count: int' is no operand (TensorType) and no attribute"),
    (_melting, {"reference": np.copy}, "Melting must be a dataclass, and frozen"),
    (_nameless, {"reference": np.copy}, "it needs an operand"),
    (_one, {"formula": "x", "domain": ""}, "its domain is that of ONNX's own ops"),
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


def test_the_decorator_needs_its_parentheses() -> None:
    with pytest.raises(OpError, match=r"write @op\(…\)"):
        op(_one)  # type: ignore[arg-type]


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


# Rules


def test_ops_stand_in_rules_by_their_own_name(ops: UserOps) -> None:
    @rule
    def odd(x: Tensor) -> Law:
        """softsign(-x) = -softsign(x)"""
        return rewrites(ops.softsign(unary("neg", x)), unary("neg", ops.softsign(x)))

    @rule
    def swapped(x: Tensor, y: Tensor) -> Law:
        """hypotenuse(x, y) = hypotenuse(y, x)"""
        return rewrites(ops.hypotenuse(x, y), ops.hypotenuse(y, x))

    @rule
    def sorted_twice(x: Tensor, axis: Axis) -> Law:
        """sorted(sorted(x)) = sorted(x), along one axis"""
        return rewrites(ops.sorted_rows(ops.sorted_rows(x, axis), axis), ops.sorted_rows(x, axis))

    for law in (odd, swapped, sorted_twice):
        assert_sound(law)
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    ordered = build.add(ops.sorted_rows, (build.add("sorted_rows", (x,), Axis(1)),), Axis(1))
    found = satura.optimize(build.program({"y": ordered}), rules=DEFAULT + sorted_twice)
    assert [node.op.name for node in found.nodes] == ["input", "sorted_rows"]


def test_wrong_laws_about_them_are_refuted(ops: UserOps) -> None:
    @rule
    def elu_of_relu(x: Tensor, alpha: Scalar) -> Law:
        """elu(relu(x), alpha) = relu(x), but not for an infinite alpha"""
        return rewrites(ops.elu(unary("relu", x), alpha), unary("relu", x))

    @rule
    def lerp_of_one(x: Tensor, t: Tensor) -> Law:
        """lerp(x, x, t) = x, but not where x or t is infinite"""
        return rewrites(ops.lerp(x, x, t), x)

    @rule
    def sorted_everywhere(x: Tensor, axis: Axis, p: Axis) -> Law:
        """sorted(sorted(x, a), b) = sorted(x, b), but sorting along a pairs other elements"""
        return rewrites(ops.sorted_rows(ops.sorted_rows(x, axis), p), ops.sorted_rows(x, p))

    for law in (elu_of_relu, lerp_of_one, sorted_everywhere):
        report = check(law)
        assert report.verdict == "refuted", report


def test_a_wrong_use_in_a_rule_is_an_error(ops: UserOps) -> None:
    with pytest.raises(RuleError, match=r"lerp\(x, y, t\) is given 2 arguments"):

        @rule
        def short(x: Tensor) -> Law:
            """lerp(x, x) = x"""
            return rewrites(ops.lerp(x, x), x)

    with pytest.raises(RuleError, match="elu takes a"):

        @rule
        def swapped(x: Tensor, alpha: Scalar, a: Axes) -> Law:
            """elu(x, a) = x"""
            return rewrites(ops.elu(x, a), x)


def test_an_attribute_that_nothing_draws_asks_for_a_generator(ops: UserOps) -> None:
    @rule
    def rolled_twice(x: Tensor, a: Shift) -> Law:
        """rolled(rolled(x, a), a) = rolled(x, a)"""
        return rewrites(ops.rolled(ops.rolled(x, a), a), ops.rolled(x, a))

    with pytest.raises(OpError, match="a Shift cannot be drawn; give the op a generator"):
        check(rolled_twice)


# Movement


def names(program: Program) -> list[str]:
    return [node.op.name for node in program.nodes if node.op.kind is not Kind.SOURCE]


def channels_first(ops: UserOps) -> Program:
    """Transposes around one op of each kind, with one operand broadcast."""
    build = Builder()
    x, y = (build.input(name, DType.F32, (1, 4, 5, 3)) for name in "xy")
    left, right = (build.transpose(node, (0, 3, 1, 2)) for node in (x, y))
    weight = build.broadcast(build.constant([[[[0.25]]]], DType.F32), (1, 3, 4, 5))
    mixed = build.add(ops.lerp, (left, build.add(ops.softsign, (right,)), weight))
    bent = build.add(ops.elu, (build.add("hypotenuse", (mixed, left)),), _number(0.5))
    return build.program({"y": build.transpose(bent, (0, 2, 3, 1))})


def test_layouts_move_through_them(ops: UserOps) -> None:
    program = channels_first(ops)
    assert names(program).count("transpose") == 3
    found = satura.optimize(program)
    assert sorted(names(found)) == ["binary", "broadcast", "elu", "lerp", "unary"]


def residual(act: Callable[[Builder, int, int], int]) -> Program:
    """Three convolutions, channels first outside, each followed by `act` with a shortcut."""
    build, random = Builder(), np.random.default_rng(0)
    x = build.input("x", DType.F32, (1, 8, 6, 6))
    for _ in range(3):
        weights = build.constant(random.standard_normal((3, 3, 8, 8)).astype(np.float32))
        window = build.window(DType.F32, (3, 3), lo=(1, 1), hi=(1, 1))
        y = build.conv(build.transpose(x, (0, 2, 3, 1)), weights, window)
        x = act(build, build.transpose(y, (0, 3, 1, 2)), x)
    return build.program({"y": x})


def test_networks_of_them_take_as_many_dispatches_as_with_ops_of_satura(ops: UserOps) -> None:
    def usual(build: Builder, y: int, x: int) -> int:
        return build.binary("add", build.unary("relu", y), x)

    def own(build: Builder, y: int, x: int) -> int:
        channels = np.linspace(0, 1, 8, dtype=np.float32).reshape((1, 8, 1, 1))
        weight = build.broadcast(build.constant(channels), (1, 8, 6, 6))
        return build.add(ops.lerp, (build.add(ops.elu, (y,), _number(0.5)), x, weight))

    counts = [
        statistics(rewritten(residual(act)).schedule)["dispatch-count"] for act in (usual, own)
    ]
    assert counts[0] == counts[1]


def test_their_laws_are_in_force_where_those_of_the_book_are(ops: UserOps) -> None:
    program = channels_first(ops)
    assert len(with_movement(NONE, program)) == 0
    reduced = with_movement(DEFAULT.without("transpose_past_select"), program)
    assert "transpose_past_lerp" not in reduced and "reshape_past_lerp" in reduced
    assert "transpose_past_lerp" in with_movement(DEFAULT, program)
    models = {model for law, model in movement(ops.lerp)} | {m for _, m in movement(ops.elu)}
    assert models <= {law.name for laws in BOOK.values() for law in laws}


SAMPLES = {  # each kind of law once: two ops have the same law in the same way
    "lerp": ("transpose_past", "reshape_out_of_second_of", "transpose_out_of_third_of"),
    "elu": ("pad_out_of", "fold", "concat_into"),
    "dequantize": ("reshape_past", "broadcast_out_of", "slice_into"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_laws_of_movement_are_sound(name: str, ops: UserOps) -> None:
    laws = {law.name: law for law, _ in movement(getattr(ops, name))}
    for kind in SAMPLES[name]:
        report = check(laws[f"{kind}_{name}"])
        assert report.verdict == "tested", report


def test_reshapes_slices_and_pads_move_through_them(ops: UserOps) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (4, 6))
    shaped = build.add(ops.elu, (build.reshape(x, (2, 2, 6)),), _number(0.5))
    cut = build.slice(build.add(ops.elu, (x,), _number(2.0)), (0, 0), (1, 6))
    program = build.program({"shaped": build.reshape(shaped, (4, 6)), "cut": cut})
    found = satura.optimize(program)
    assert names(found).count("reshape") == 0
    sliced = found.nodes[dict(found.outputs)["cut"]]
    assert sliced.op.name in ("elu", "slice")
    assert sum(node.op.name == "elu" for node in found.nodes) == 2


def test_a_law_of_movement_that_drops_an_attribute_is_refuted(ops: UserOps) -> None:
    @rule
    def forgets(x: Varying, alpha: Scalar, beta: Scalar) -> Law:
        """elu(elu(x, a), b) = elu(elu(x, a), a): a wrong law"""
        return rewrites(ops.elu(ops.elu(x, alpha), beta), ops.elu(ops.elu(x, alpha), alpha))

    assert check(forgets).verdict == "refuted"
    assert prove(forgets).status != "proved"


def test_laws_of_movement_are_proved(ops: UserOps) -> None:
    laws = {law.name: law for op_ in (ops.elu, ops.lerp) for law, _ in movement(op_)}
    for name in ("transpose_past_elu", "slice_into_lerp", "broadcast_out_of_lerp"):
        assert prove(laws[name]).status == "proved"
