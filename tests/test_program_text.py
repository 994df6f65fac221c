"""Programs as text: what is written is read back as the same program, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.models import TINY, build
from satura.rewrite.errors import ProgramError
from satura.rewrite.onnx.load import load
from satura.rewrite.program import attribute_reader
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.parse import parse
from satura.rewrite.program.program import Program
from satura.rewrite.program.reader import Reader
from satura.rewrite.types.attributes import Attribute, Count, HostCall, Shape, Slices, UserAttribute
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import COMPUTED, DType, TensorType
from tests.random_programs import random_program
from tests.tiers import deep_but
from tests.user_ops import Shift, user_ops

SCALED = """\
%0 = input() "x" : f32[n, 3]
%1 = constant() [0.5, -0.0, nan] : f32[1, 3]
%2 = broadcast(%1) [n, 3] : f32[n, 3]
%3 = binary(%0, %2) mul : f32[n, 3]
output "y" = %3"""


def assert_read_back(program: Program) -> None:
    text = str(program)
    again = parse(text, program.constants)
    assert again == program
    assert str(again) == text


@pytest.mark.parametrize("first", deep_but([0, 20], range(0, 100, 20)))
def test_random_programs_are_read_back(first: int) -> None:
    for seed in range(first, first + 20):
        assert_read_back(random_program(seed)[0])


@pytest.mark.parametrize("name", deep_but(["tiny_resnet_qdq", "tiny_bert", "tiny_swin"], TINY))
def test_benchmark_models_are_read_back(name: str) -> None:
    assert_read_back(load(build(name)))


def test_text_may_have_blank_lines_and_other_numbers() -> None:
    lines = SCALED.replace("%3", "%30").splitlines()
    assert parse("\n\n".join(["", *lines, ""])) == parse(SCALED)


def test_nodes_of_other_operands_are_two() -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (2,)) for name in "xy")
    differences = {build.binary("sub", *pair) for pair in ((x, y), (y, x), (x, x), (y, y))}
    assert len(differences) == 4


def test_equal_nodes_are_one() -> None:
    text = SCALED.replace('output "y"', '%4 = binary(%0, %2) mul : f32[n, 3]\noutput "y"')
    assert parse(text) == parse(SCALED)


@pytest.mark.parametrize("dtype", COMPUTED)
def test_constants_are_read_back_bit_by_bit(dtype: DType) -> None:
    size = dtype.itemsize
    if dtype is DType.BOOL:
        array = np.array([True, False])
    else:
        patterns = [0, 1, 1 << 8 * size - 1, (1 << 8 * size) - 1, (1 << 8 * size - 1) - 1, 0x5A]
        array = np.array(patterns, f"u{size}").view(dtype.numpy)
    build = Builder()
    vector, none = build.constant(array), build.constant(array[:0])
    scalars = [build.constant(each) for each in array]
    program = build.program({str(i): v for i, v in enumerate([vector, none, *scalars])})
    assert_read_back(program)
    assert parse(str(program)).nodes[0].constant.array.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.F16, DType.BF16])
def test_usual_values_are_written_as_usual(dtype: DType) -> None:
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.5]).astype(dtype.numpy)
    assert str(Constant(values)) == "[nan, inf, -inf, -0.0, 0.5]"
    assert str(Scalar.of(np.nan, dtype)) == f"{dtype}(nan)"


def test_large_constants_stand_in_a_table() -> None:
    build = Builder()
    program = build.program({"y": build.constant(np.arange(9.0)), "z": build.constant([1, 2])})
    (label,) = program.constants
    assert f"constant() {label} : f64[9]" in str(program)
    assert_read_back(program)
    with pytest.raises(ProgramError, match=f"line 1: the elements of constant {label} are not"):
        parse(str(program))
    with pytest.raises(ProgramError, match="line 1: the elements that are given for"):
        parse(str(program), {label: np.arange(9.0) + 1})


def dims() -> st.SearchStrategy[Dim]:
    leaves = st.one_of(
        st.integers(-9, 9), st.sampled_from(["n", "seq_len", "batch size", 'a"//b', ""]).map(symbol)
    )

    def computed(parts: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
        return st.one_of(
            st.builds(lambda a, b: a + b, parts, parts),
            st.builds(lambda a, b: a * b, parts, parts),
            st.builds(lambda a, b: a // b if isinstance(b, int) and b else a - b, parts, parts),
            st.builds(lambda a, b: a if isinstance(b, int) else a // b, parts, parts),
        )

    return st.recursive(leaves, computed, max_leaves=8)


@given(dims())
def test_dims_are_read_back(dim: Dim) -> None:
    build = Builder()
    assert_read_back(build.program({"y": build.add("extent", (), Shape((dim,)))}))


@given(dims(), dims())
def test_slices_of_computed_sizes_are_read_back(start: Dim, size: Dim) -> None:
    slices = Slices((start, 1), (size, 2), (3, -1))
    assert attribute_reader.read_attribute(Reader(str(slices)), Slices, {}) == slices


# Not st.text(): to look up all of Unicode takes Hypothesis two seconds.
LETTERS = st.one_of(
    st.sampled_from("aZ_0 %=:,()[]{}#'\"\\\n\t\r\0é\u2028"),
    st.integers(0, 0x10FFFF).map(chr).filter(lambda each: not "\ud800" <= each <= "\udfff"),
)
NAMES = st.lists(LETTERS).map("".join)


@given(NAMES, NAMES)
def test_names_of_any_characters_are_read_back(name: str, other: str) -> None:
    build = Builder()
    x = build.input(name, DType.F32, (2,))
    assert_read_back(build.program({other: build.unary("neg", x)}))


def test_host_calls_are_read_back() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (symbol("n"), 4))
    types = (TensorType(DType.F32, (symbol("n"), 4)), TensorType(DType.I64, ()))
    call = HostCall("Two", "of.some one", 7, bytes(range(40)), types, salt=3)
    first = build.host((x,), call)
    assert_read_back(build.program({"y": first, "z": build.item(first, 1)}))


def test_ops_of_users_are_read_back_by_name() -> None:
    with user_ops() as ops:
        build = Builder()
        x = build.input("x", DType.F32, (4, 4))
        y = build.add(ops.elu, (build.add(ops.softsign, (x,)),), Scalar.of(np.nan, DType.F32))
        z = build.add(ops.rolled, (build.add(ops.lerp, (x, y, y)),), Shift(1, -2))
        program = build.program({"z": z})
        assert "rolled(%4) Shift(axis=1, amount=-2)" in str(program).replace("%3", "%4")
        assert_read_back(program)
    with pytest.raises(ProgramError, match="line 3: there is no op 'elu'"):
        parse(str(program).replace("softsign", "neg"))


@dataclass(frozen=True)
class Perm(UserAttribute):
    """A user's class that is called as one of satura's."""

    name: str
    numbers: tuple[int | float | None, ...]
    dim: Dim
    type: TensorType
    fill: Scalar


def test_attributes_of_users_may_hold_plain_values_dims_and_attributes() -> None:
    n = symbol("n")
    type_ = TensorType(DType.BF16, (2 * (n // 2), 3))
    fill = Scalar(DType.F32, bytes.fromhex("0100807f"))
    value = Perm("a) ' (", (-1, -0.5, float("-inf"), None), n // 3 - 2 * n, type_, fill)
    read = attribute_reader.read_attribute(Reader(f" {value!r} : f32[]"), Perm, {})
    assert read == value
    for wrong in ("Perm(1)", "Perm(name=print(1))", "Perm(name='x')", "Axis(index=1)", "Perm("):
        with pytest.raises(ProgramError, match="Perm"):
            attribute_reader.read_attribute(Reader(wrong), Perm, {})


def test_every_class_of_attributes_can_be_read() -> None:
    read = {*attribute_reader._READERS, Constant, UserAttribute}
    assert read == set(get_args(Attribute))


def test_floor_divisions_in_products_are_python() -> None:
    n, m = symbol("n"), symbol("m")
    for dim in (2 * (n // 2), (n // 2) * (m // 2), m - n // 2, -(n // 2) * m):
        assert eval(str(dim), {"n": n, "m": m}) == dim


@pytest.mark.parametrize(
    ("line", "replacement", "message"),
    [
        ("%0 =", "%0", "line 1: expected '=', not 'input"),
        ('"x"', "x", "line 1: expected a name in quotes, not 'x : f32"),
        ('"x"', '"\\q"', "line 1: .* is not a name in quotes"),
        ("f32[n, 3]", "f31[n, 3]", "line 1: there is no element type 'f31'"),
        ("f32[n, 3]", "f32[n 3]", r"line 1: expected ',', not '3\]'"),
        ("f32[n, 3]", "f32[3//0, 3]", "line 1: a size is divided by zero"),
        ("f32[n, 3]", f"f32[{'(' * 5000}n, 3]", "line 1: more than 100 parentheses"),
        ("-0.0", "zero", "line 2: these are not elements of f32: .*'zero'"),
        ("-0.0", "nan:3f800000", "line 2: these are not elements of f32: .* is a number"),
        ("-0.0", "nan:1ffffffff", "line 2: these are not elements of f32: .* more bits than f32"),
        ("-0.0, nan", "-0.0", r"line 2: 2 elements do not make f32\[1, 3\]"),
        (" : f32[1, 3]", " : u8[1, 3]", "line 2: these are not elements of u8"),
        ("broadcast(%1)", "brodcast(%1)", "line 3: there is no op 'brodcast'"),
        ("%2 = b", "%1 = b", "line 3: %1 is defined twice"),
        ("[n, 3] : f32[n, 3]\n%3", "[n, 4] : f32[n, 4]\n%3", "line 3: .*broadcast"),
        ("[n, 3] : f32[n, 3]\n%3", "[n, 3] : f32[n, 4]\n%3", r"line 3: %2 is f32\[n, 3\], not"),
        ("%0, %2", "%0, %7", "line 4: %7 is not defined above"),
        ("%0, %2", "%0", "line 4: binary takes 2 operands"),
        (" mul", " 3", "line 4: expected a function, not '3 : f32"),
        (" mul", " mull", "line 4: .*mull"),
        (" mul", " mul add", "line 4: expected ':', not 'add : f32"),
        ("= %3", "= %3 %2", "line 5: expected the end of the line, not '%2'"),
        ("= %3", "=", "line 5: expected a node such as %12, not the end of the line"),
        ("= %3", '= %3\noutput "y" = %0', "line 6: two outputs are called 'y'"),
    ],
)
def test_errors_name_the_line(line: str, replacement: str, message: str) -> None:
    assert line in SCALED
    with pytest.raises(ProgramError, match=message):
        parse(SCALED.replace(line, replacement, 1))


@given(st.data())
def test_damaged_text_is_a_program_or_an_error(data: st.DataObject) -> None:
    program = random_program(data.draw(st.integers(0, 30)))[0]
    text = str(program)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(["", "0", "-1", "%", "(", "]", '"', "n", "99", " ", "\n"]))
    try:
        again = parse(text[:at] + other + text[at + 1 :], program.constants)
    except ProgramError as error:
        assert str(error).startswith("line ")
    else:
        again.verify()


def test_what_is_read_back_computes_the_same() -> None:
    x = np.array([[1, 2, 3]], np.float32)
    assert (
        interpret(parse(SCALED), {"x": x})["y"].tobytes()
        == (x * np.array([0.5, -0.0, np.nan], np.float32)).tobytes()
    )


def test_an_item_needs_a_host_call() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2,))
    with pytest.raises(ProgramError, match="item takes a host call"):
        build.add("item", (x,), Count(0))
    first = build.host((x,), HostCall("One", "", 7, b"", (TensorType(DType.F32, (2,)),)))
    with pytest.raises(ProgramError, match="the number of one of its results"):
        build.item(first, 1)
