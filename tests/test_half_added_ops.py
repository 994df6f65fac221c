"""What belongs to an op outside of its declaration; CONTRIBUTING.md says how each is added.

A part that an op lacks is named with the place where it goes, so that these tests lead through the
addition of an op or of a scalar function.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from satura import language
from satura.backend.helpers.scalars import helpers
from satura.backend.plan.compiled import compile_schedule
from satura.backend.plan.kernels import ALONE
from satura.rewrite.check.operands import DRAWN
from satura.rewrite.errors import OpError, SaturaError, UnsupportedError
from satura.rewrite.onnx.lower import context
from satura.rewrite.onnx.write.program import EMITTERS
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.ops.elementwise import BINARY, NUMBERS, UNARY, ScalarFunction
from satura.rewrite.ops.registry import REGISTRY, Kind, Op, op
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Axis
from satura.rewrite.types.tensor_type import FLOATS, DType, TensorType
from tests.trivial_scheduler import one_dispatch_per_node

NOT_DRAWN = ("input", "host", "item")  # what stands for them is drawn otherwise
WRITTEN_APART = ("input", "constant", "host", "item")  # by `_Names` of the same file
WITHOUT_LAWS = ("input", "host", "item", "recurrence", "scatter", "first_places")
PACKED_APART = ("recurrence",)

CANONICAL = [name for name, each in REGISTRY.items() if each.user is None]
FUNCTIONS = [f.name for f in (*UNARY.values(), *BINARY.values()) if f.expansion is None]


def missing(op: Op) -> list[str]:
    """What an op lacks, in the order of CONTRIBUTING.md."""
    name = op.name
    in_language = {each.rstrip("_") for each in language.__all__}
    parts = {
        "a method: rewrite/program/builder.py": hasattr(Builder, name),
        "a writer: EMITTERS of rewrite/onnx/write/program.py": name in (*EMITTERS, *WRITTEN_APART),
        "a kernel: ALONE of backend/plan/kernels.py": op.kind is not Kind.ALONE
        or name in (*ALONE, *PACKED_APART),
        "operands: DRAWN of rewrite/check/operands.py": name in (*DRAWN, *NOT_DRAWN),
        "a term: rewrite/language/terms.py and satura/language.py": name in in_language
        or name in WITHOUT_LAWS,
    }
    return [part for part, is_there in parts.items() if not is_there]


def missing_of_function(name: str) -> list[str]:
    """What a scalar function lacks."""
    function = UNARY[name] if name in UNARY else BINARY[name]
    calls = (each for each in ast.walk(ast.parse(function.formula)) if isinstance(each, ast.Call))
    called = {each.func.id for each in calls if isinstance(each.func, ast.Name)}
    parts = [
        f"a helper {helper}: backend/helpers/scalars.py"
        for helper in sorted(called - helpers().keys())
    ]
    for dtype in sorted(function.dtypes, key=lambda dtype: dtype.value):
        build = Builder()
        x = build.input("x", dtype, (3,))
        y = build.unary(name, x) if name in UNARY else build.binary(name, x, x)
        try:
            to_model(build.program({"y": y}))
        except UnsupportedError as error:
            parts.append(f"a writer for {dtype.value}: {error}")
    return parts


@pytest.mark.parametrize("name", CANONICAL)
def test_op_is_whole(name: str) -> None:
    parts = missing(REGISTRY[name])
    assert not parts, "\n".join([f"op {name} lacks", *parts])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_whole(name: str) -> None:
    parts = missing_of_function(name)
    assert not parts, "\n".join([f"function {name} lacks", *parts])


@pytest.fixture
def half_added() -> Iterator[Op]:
    """An op that is declared, and nothing else."""

    @op(kind=Kind.ALONE, reference=lambda x, axis: np.cumsum(x, axis.index, dtype=x.dtype))
    def half_added(x: TensorType, axis: Axis) -> TensorType:
        """Each element is the sum of those up to it along `axis`."""
        return x

    yield half_added
    del REGISTRY["half_added"]


def test_each_part_that_an_op_lacks_is_named(half_added: Op) -> None:
    assert [part.partition(":")[0] for part in missing(half_added)] == [
        "a method", "a writer", "a kernel", "operands", "a term",
    ]  # fmt: skip


def test_an_op_without_writer_or_kernel_is_an_error_that_says_so(half_added: Op) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (3, 4))
    program = build.program({"y": build.add("half_added", (x,), Axis(1))})
    with pytest.raises(UnsupportedError, match=r"op half_added .* EMITTERS of .*write\.program"):
        to_model(program)
    with pytest.raises(SaturaError, match=r"op half_added .* ALONE of .*plan\.kernels"):
        compile_schedule(one_dispatch_per_node(program), 1).run({"x": np.ones((3, 4), np.float32)})


def test_an_op_has_the_attributes_that_its_kind_demands() -> None:
    def half_added(x: TensorType, axis: Axis) -> TensorType:
        """Each element is the sum of those up to it along `axis`."""
        return x

    with pytest.raises(OpError, match=r"op half_added: .* a reduction are ReduceFn, Axes or Axis"):
        op(kind=Kind.REDUCTION, reference=np.cumsum)(half_added)
    assert "half_added" not in REGISTRY


@pytest.mark.parametrize(
    ("table", "arity", "dtypes"),
    [(UNARY, 1, NUMBERS), (BINARY, 2, NUMBERS), (BINARY, 2, frozenset({DType.BOOL}))],
    ids=["unary", "binary", "logical"],
)
def test_each_part_that_a_function_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch,
    table: dict[str, ScalarFunction], arity: int, dtypes: frozenset[DType],
) -> None:  # fmt: skip
    row = ScalarFunction("strange", np.square, dtypes, "odd(a)")
    monkeypatch.setitem(table, "strange", row)
    first, *others = missing_of_function("strange")
    assert first == "a helper odd: backend/helpers/scalars.py"
    assert len(others) == len(dtypes), arity
    assert all("'strange' cannot be saved: satura.rewrite.onnx.write." in each for each in others)


def test_functions_of_floats_and_integers_are_written_by_two_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = ScalarFunction("strange", np.square, NUMBERS, "a * a")
    monkeypatch.setitem(UNARY, "strange", row)
    files = [part.rpartition("write.")[2].split()[0] for part in missing_of_function("strange")]
    assert set(files) == {"elementwise", "integer"}
    assert files.count("elementwise") == len(FLOATS)


def not_imported(folder: Path) -> list[str]:
    """Modules of the folder with lowerings that its table.py does not import: nothing runs them."""
    table = ast.parse((folder / "table.py").read_text())
    froms = [each for each in ast.walk(table) if isinstance(each, ast.ImportFrom)]
    imported = {name.name for each in froms for name in each.names}
    own = {file.stem: file.read_text() for file in folder.glob("*.py")}
    registering = {name for name, text in own.items() if "lowering(" in text} - {"context"}
    return sorted(registering - imported)


def test_every_module_of_lowerings_is_imported_in_the_table(tmp_path: Path) -> None:
    folder = Path(context.__file__).parent
    assert not_imported(folder) == [], "name it in rewrite/onnx/lower/table.py"
    for file in folder.glob("*.py"):
        shutil.copy(file, tmp_path)
    (tmp_path / "planted.py").write_text('@lowering("Det")\ndef det(node): ...\n')
    assert not_imported(tmp_path) == ["planted"]
