"""Models whose inputs decide shapes are compiled for the values of each call."""

from __future__ import annotations

from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import satura
from satura.backend.run.part import Part, Planned, Program
from satura.backend.run.signatures import Signatures, Sizes, values_of
from satura.rewrite.errors import CallError
from satura.rewrite.onnx.load import load_for
from satura.rewrite.program.program import Program as Source
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from tests.onnx_models import Inputs, Typed, make_model, node
from tests.tiers import deep_but

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def sum_over_axes() -> ModelProto:
    inputs: Inputs = {"x": (2, 3, 4), "axes": Typed(["k"])}
    return make_model([node("ReduceSum", "x axes", keepdims=0)], inputs, opset=18)


def compiled(model: ModelProto) -> satura.Compiled:
    result = satura.compile(model, threads=1)
    assert result.deciding
    return result


def test_each_value_has_its_program() -> None:
    result = compiled(sum_over_axes())
    for axes in ([0], [1], [0, 2], [-1]):
        got = result(X, np.array(axes))
        assert np.array_equal(got, X.sum(tuple(axes)))
        assert result.for_values({"axes": axes}).statistics["host-count"] == 0


def test_equal_values_share_a_program() -> None:
    result = compiled(sum_over_axes())
    first = result.for_values({"axes": np.array([1])}).program
    assert result.for_values({"axes": np.array([1]), "x": X}).program is first
    assert result.for_values({"axes": np.array([2])}).program is not first


def test_threads_that_ask_at_once_share_a_program() -> None:
    result = compiled(sum_over_axes())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(result.for_values, [{"axes": [2]}] * 4))
    assert len({id(each.program) for each in found}) == 1


ROWS = [(np.full((n, n + 2), 2, np.float32), np.array(pads)) for n, pads in (
    (3, [0, 1]), (3, [1, 0]), (4, [0, 1]), (3, [0, 1]), (1, [0, 1]), (4, [1, 0]),
)]  # fmt: skip


def padded_rows() -> ModelProto:
    """Twice the rows, padded: `n` and `m` are open, and `pads` decides."""
    nodes = [node("Add", "x x", "t"), node("Pad", "t pads - axes")]
    return make_model(nodes, {"x": ("n", "m"), "pads": Typed([2])}, {"axes": [1]}, 18)


def wrong_rows() -> list[int]:
    """Which of the calls give something else than NumPy."""
    result = compiled(padded_rows())
    wrong = []
    for number, (x, pads) in enumerate(ROWS):
        expected = np.pad(2 * x, ((0, 0), tuple(pads)))
        try:
            is_right = np.array_equal(result.run({"x": x, "pads": pads})["y"], expected)
        except (ValueError, CallError):
            is_right = False
        wrong += [] if is_right else [number]
    return wrong


def test_equal_keys_have_one_plan_and_what_a_key_lacks_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = compiled(padded_rows())
    plans: dict[object, Planned] = {}
    for x, pads in ROWS:
        result(x, pads)
        program = result.for_values({"pads": pads})._whole
        plan = dict(program.plans.ready)[("m", x.shape[1]), ("n", len(x))]
        assert plans.setdefault((len(x), tuple(pads)), plan) is plan
    assert len({id(plan) for plan in plans.values()}) == len(plans) == 5
    assert all(each.values in ({"pads": [0, 1]}, {"pads": [1, 0]}) for each in result.cache)
    heads = [str(each).partition(":")[0] for each in result.cache]
    assert "class of pads=[0, 1], m=5, n=3 (first sizes)" in heads
    assert not wrong_rows()
    sizes = Signatures.sizes

    def without_values(arguments: Mapping[str, Array], names: Set[str]) -> object:
        found = values_of(arguments, names)
        return tuple((name, dtype, shape, bytes(16)) for name, dtype, shape, _ in found)

    def without_a_size(self: Signatures, arguments: Mapping[str, Array]) -> Sizes:
        return (("m", 5), *sizes(self, arguments)[1:])

    with monkeypatch.context() as patch:
        for module in ("satura.backend.run.part", "satura.pipeline.parts"):
            patch.setattr(f"{module}.values_of", without_values)
        assert wrong_rows() == [1, 5]
    with monkeypatch.context() as patch:
        patch.setattr(Signatures, "sizes", without_a_size)
        assert wrong_rows() == [2, 4, 5]


def test_a_file_has_the_programs_for_values_that_there_were(tmp_path: Path) -> None:
    result, path = compiled(padded_rows()), tmp_path / "rows.satura"
    with pytest.raises(CallError, match="each value of pads, and so far for none"):
        result.save(path)
    for x, pads in ROWS[:2]:
        result(x, pads)
    result.save(path)
    opened = satura.open(path)
    assert opened.inputs == result.inputs and opened.deciding == result.deciding == ("pads",)
    bound = opened.bind({"x": ROWS[0][0], "pads": ROWS[0][1]})
    path.chmod(0o666)
    with pytest.warns(UserWarning, match="compiled again"):
        again = satura.open(path)
    for program in (opened, again):
        for x, pads in ROWS:
            np.testing.assert_array_equal(program(x, pads), result(x, pads))
    np.testing.assert_array_equal(bound()["y"], result(*ROWS[0]))
    with pytest.raises(CallError, match=r"no program for pads=\[1, 1\], but for 2 other values"):
        opened(ROWS[0][0], np.array([1, 1]))
    with pytest.raises(CallError, match="'pads', which decides shapes, is missing among"):
        opened(ROWS[0][0])
    with pytest.raises(CallError, match="no input 'z'"):
        opened.run({"x": ROWS[0][0], "pads": ROWS[0][1], "z": ROWS[0][0]})
    only = tmp_path / "one.satura"
    result.for_values({"pads": [1, 0]}).save(only)
    np.testing.assert_array_equal(satura.open(only)(ROWS[1][0]), result(*ROWS[1]))


def test_a_file_has_equal_weights_of_its_programs_once(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    nodes = [
        node("Constant", "", "w", value=numpy_helper.from_array(weights)),
        node("MatMul", "x w", "product"), node("Relu", "product", "positive"),
        node("ReduceSum", "positive axes", keepdims=0),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (2, 256), "axes": Typed(["k"])}, opset=18)
    result, path = compiled(model), tmp_path / "weights.satura"
    sizes = []
    for axis in (0, 1):
        result(weights[:2], np.array([axis]))
        result.save(path)
        sizes.append(path.stat().st_size)
    assert sizes[1] - sizes[0] < weights.nbytes <= sizes[0]


def test_results_go_where_the_caller_says() -> None:
    result = compiled(sum_over_axes())
    x, axes, y = X.copy(), np.array([1]), np.empty((2, 4), np.float32)
    assert result.run({"x": x, "axes": axes}, out={"y": y})["y"] is y
    assert np.array_equal(y, x.sum(1))
    bound = result.bind({"x": x, "axes": axes}, out={"y": y})
    x += 1
    assert bound()["y"] is y and np.array_equal(y, x.sum(1))


def test_few_programs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    result = compiled(sum_over_axes())
    size = result.for_values({"axes": np.array([0])})._whole.plans.size

    def program(axis: int) -> Source:
        return result.for_values({"axes": np.array([axis])}).program

    monkeypatch.setattr("satura.backend.run.part.MOST_PROGRAMS", 5 * size // 2)
    result = compiled(sum_over_axes())
    first, second, third = map(program, range(3))
    assert program(2) is third
    assert program(1) is second
    assert program(0) is not first
    assert program(1) is second  # of the others called last


def test_interface() -> None:
    result = compiled(sum_over_axes())
    assert list(result.inputs) == ["x", "axes"]
    assert result.deciding == ("axes",)
    assert "for each value of axes" in repr(result)
    assert np.array_equal(result.run({"x": X, "axes": np.array([0])})["y"], X.sum(0))
    assert np.array_equal(result.run(X, np.array([0]))["y"], X.sum(0))
    assert np.array_equal(np.asarray(result(X, axes=np.array([0]))), X.sum(0))


def test_errors_name_what_is_missing() -> None:
    result = compiled(sum_over_axes())
    with pytest.raises(CallError, match="for_values"):
        _ = result.program
    with pytest.raises(CallError, match="'axes', which decides shapes, is missing"):
        result.run({"x": X})
    with pytest.raises(CallError, match=r"input 'x'.*is missing"):
        result.run({"axes": np.array([0])})
    with pytest.raises(CallError, match=r"input 'axes' must be i64\[k\], not float64\[1\]"):
        result(X, np.array([0.0]))
    with pytest.raises(CallError, match="no input 'z'"):
        result.run({"x": X, "axes": np.array([0]), "z": X})


@pytest.mark.parametrize("shape", [(-1, -1), (-2, 3), (2**40, 2**40)])
def test_a_call_whose_values_do_not_fit_is_refused(shape: tuple[int, int]) -> None:
    inputs: Inputs = {"x": ("n", "m"), "shape": Typed([2])}
    result = compiled(make_model([node("Reshape", "x shape")], inputs))
    message = r"no program can be made for this call: .*\(Reshape\)"
    for call in (result.run, result.bind, result.measure):
        with pytest.raises(CallError, match=message):
            call({"x": np.ones((2, 3), np.float32), "shape": np.array(shape)})


def test_a_model_is_loaded_for_values() -> None:
    program = satura.load(sum_over_axes(), values={"axes": np.array([1])})
    assert np.array_equal(satura.interpret(program, {"x": X})["y"], X.sum(1))
    with pytest.raises(CallError, match="no input 'z'"):
        satura.load(sum_over_axes(), values={"z": X})


def test_values_may_be_computed_from_inputs() -> None:
    nodes = [node("Concat", "rows columns", "both", axis=0), node("Reshape", "x both")]
    names = ("rows", "columns")
    inputs: Inputs = {"x": (2, 3, 4), **dict.fromkeys(names, Typed([1]))}
    result = compiled(make_model(nodes, inputs, opset=18))
    assert result.deciding == names
    assert np.array_equal(result(X, np.array([4]), np.array([6])), X.reshape(4, 6))


def test_a_branch_may_ask_for_more() -> None:
    """Only where the condition holds is `k` asked for."""
    results = [onnx.ValueInfoProto(name=name) for name in "ab"]
    taken = helper.make_graph([node("Unsqueeze", "x k", "a")], "then", [], results[:1])
    other = helper.make_graph([node("Identity", "x", "b")], "else", [], results[1:])
    chosen = node("If", "c", then_branch=taken, else_branch=other)
    inputs: Inputs = {"x": (2, 3, 4), "c": Typed([], TensorProto.BOOL), "k": Typed([1])}
    result = compiled(make_model([chosen], inputs, opset=18))
    no, yes = np.array(False), np.array(True)
    k = np.array([1])
    assert np.array_equal(result(X, no, k), X)
    assert np.array_equal(result(X, yes, k), X[:, None])
    assert np.array_equal(result(X, no, k), X)
    assert result.deciding == ("c", "k")


def test_what_was_made_for_fewer_values_is_saved(tmp_path: Path) -> None:
    """A loop of no turns is the same under each condition, which later calls decide by, too."""
    state = onnx.ValueInfoProto(name="s")
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    turn = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    ends = [onnx.ValueInfoProto(name=name) for name in ("d", "t", "u")]
    steps = [node("Identity", "c", "d"), node("Neg", "s", "t"), node("Identity", "t", "u")]
    body = helper.make_graph(steps, "body", [turn, flag, state], ends)
    inputs: Inputs = {"x": (2,), "m": Typed([]), "go": Typed([], TensorProto.BOOL)}
    loop = node("Loop", "m go x", "y z", body=body)
    result = compiled(make_model([loop], inputs, opset=18, outputs=["y", "z"]))
    x, go = np.ones(2, np.float32), np.array(True)
    assert [result.run([x, np.array(m), go])["y"][0] for m in (0, 1)] == [1, -1]
    assert result.deciding == ("m", "go")
    result.save(tmp_path / "m.satura")
    opened = satura.open(tmp_path / "m.satura")
    assert opened.deciding == ("m", "go")
    for each, m, expected in ((go, 0, 1), (~go, 0, 1), (go, 1, -1)):
        assert opened.run([x, np.array(m), each])["y"][0] == expected
    with pytest.raises(CallError, match="has no program for go=False, m=1"):
        opened.run([x, np.array(1), ~go])


class Unplanned(Program):
    """A program that nobody runs."""

    def _made(self, sizes: Sizes, progress: object = None) -> Planned:
        raise AssertionError


def test_programs_for_fewer_values_stay_when_more_decide() -> None:
    def search(arguments: Mapping[str, Array], names: Set[str]) -> Program:
        return Unplanned(
            values_of(arguments, {*names, *("b" if arguments["a"].any() else "")}), {}, {}
        )

    both = {"a": np.array([1]), "b": np.array([2])}
    part = Part(1, [], frozenset("a"), search, dict.fromkeys("ab", TensorType(DType.I64, (1,))))
    part.for_values({"a": np.array([0])})
    assert ",".join(part.deciding) == "a"
    few = part.programs
    assert part.for_values(both).programs == part.programs[:1] and len(part.programs) == 2
    assert ",".join(part.deciding) == "a,b"
    assert part.for_values({**both, "a": np.array([0])}).programs == few
    with pytest.raises(CallError, match="'b', which decides shapes, is missing"):
        part.for_values({"a": np.array([3])})


def test_sizes_of_bound_inputs_are_known_elsewhere() -> None:
    inputs: Inputs = {"x": ("k", 6), "shape": Typed(["k"])}
    model = make_model([node("Reshape", "x shape")], inputs, opset=18)
    program, names = load_for(model, {"shape": np.array([3, 4])})
    assert names == {"shape"}
    assert program.nodes[program.inputs[0]].type.shape == (2, 6)


@pytest.mark.parametrize("shape", [[2, 3], [65]])
def test_data_are_not_asked_for(shape: list[int | str]) -> None:
    """The number of rows that a mask leaves is not a key of programs."""
    nodes = [node("Reshape", "mask flat", "line"), node("Compress", "x line")]
    inputs: Inputs = {"x": (2, 3, 4), "mask": Typed(shape, TensorProto.BOOL), "flat": Typed([1])}
    with pytest.raises(satura.errors.UnsupportedError):
        load_for(make_model(nodes, inputs, opset=18), {"flat": np.array([-1])})


PADS = [  # shape, pads before and after axis 1: trivial, growing, shifting, emptying, of size 1
    ((3, 5), (0, 0)), ((3, 5), (2, 1)), ((3, 5), (-1, 1)), ((3, 5), (-3, -2)), ((3, 5), (0, -4)),
    ((3, 5), (-5, 2)), ((3, 5), (2, -5)), ((3, 1), (1, 1)), ((3, 0), (0, 0)), ((3, 0), (1, 1)),
    ((0, 5), (2, 1)), ((1, 7), (-6, 0)), ((1, 1), (0, 0)),
    ((3, 1), (3, -2)), ((3, 0), (2, -1)), ((3, 1), (-2, 3)),
]  # fmt: skip


@pytest.mark.deep
def test_pads_that_come_with_a_call_are_what_they_are_then() -> None:
    """Equal pads have one program without trivial pads, and other sizes compile nothing."""
    nodes = [node("Pad", "x pads - axes", "p"), node("ReduceSum", "p axes", keepdims=0)]
    model = make_model(nodes, {"x": ("n", "m"), "pads": Typed([2])}, {"axes": [1]}, 18)
    result = compiled(model)
    programs: dict[tuple[int, int], satura.Compiled] = {}
    for shape, pads in PADS:
        x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        before, after = pads
        wide = np.pad(x, ((0, 0), (max(before, 0), max(after, 0))))
        wide = wide[:, max(-before, 0) : wide.shape[1] - max(-after, 0)]
        np.testing.assert_array_equal(result(x, np.array(pads)), wide.sum(1))
        program = result.for_values({"pads": np.array(pads)})
        assert programs.setdefault(pads, program).program is program.program
        ops = {node.op.name for node in program.program.nodes}
        assert ("pad" in ops, "slice" in ops) == (max(pads) > 0, min(pads) < 0)
        classes = []
        for rows in (40, 41):
            result(np.zeros((rows, rows + 10), np.float32), np.array(pads))
            classes.append(len(program.cache))
        assert classes[0] == classes[1]
    with pytest.raises(
        CallError, match=r"Pad.* -3 cut more than axis 1 has, 5 elements where m = 5"
    ):
        result(np.zeros((3, 5), np.float32), np.array([-3, -3]))


def test_resizes_by_values_are_movements_of_each_size() -> None:
    inputs: Inputs = {"x": (1, 1, 2, 3), "sizes": Typed([4])}
    result = compiled(make_model([node("Resize", "x - - sizes", mode="nearest")], inputs))
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    for high, wide in ((1, 1), (2, 3), (1, 2)):  # times; the first is trivial
        sizes = np.array([1, 1, 2 * high, 3 * wide])
        np.testing.assert_array_equal(result(x, sizes), x.repeat(high, 2).repeat(wide, 3))
        program = result.for_values({"sizes": sizes}).program
        assert {node.op.name for node in program.nodes} <= {"input", "broadcast", "reshape"}
        assert len(program.nodes) == 1 or (high, wide) != (1, 1)


def sliced(start: int, end: int, step: int) -> ModelProto:
    bounds = {name: [each] for name, each in zip("seat", (start, end, 0, step), strict=True)}
    return make_model([node("Slice", "x s e a t")], {"x": ("n",)}, bounds, 18)


LEAST, FAR = np.iinfo(np.int64).min, np.iinfo(np.int64).max
SLICES = [(0, 3, 1), (-4, 99, 1), (3, 99, 1), (-3, 9, 1), (-2, LEAST, -1), (5, 1, -2), (1, -2, 2)]
SLICES += [(0, FAR, -1), (3, FAR, -2), (0, LEAST, -1)]


@pytest.mark.parametrize("bounds", deep_but([SLICES[4], *SLICES[-3::2]], SLICES))
def test_bounds_of_slices_are_clamped_at_every_size(bounds: tuple[int, int, int]) -> None:
    start, end, step = bounds
    result = satura.compile(sliced(*bounds), threads=1)
    for n in (9, 1, 0, 4, 10, 30):
        x = np.arange(n, dtype=np.float32)
        first = max(start, -n) if step < 0 else start
        expected = x[first : None if end == LEAST else end : step]
        np.testing.assert_array_equal(result(x), expected, f"n = {n}")
        np.testing.assert_array_equal(result(x), expected, f"n = {n}")
    assert result.statistics["host-count"] == 0


def test_sizes_that_no_program_runs_at_are_refused() -> None:
    model = sliced(0, 4, 1)
    model.graph.node[0].output[0] = "first"
    model.graph.node.append(node("Add", "first four"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "four"))
    result = satura.compile(model, threads=1)
    assert np.array_equal(result(np.ones(6, np.float32)), np.full(4, 2, np.float32))
    with pytest.raises(CallError, match=r"does not run at these sizes: .* 3 against 4 where"):
        result(np.ones(3, np.float32))
    assert np.array_equal(result(np.ones(1, np.float32)), np.full(4, 2, np.float32))


def test_a_file_has_sizes_that_are_taken_for_equal_elsewhere(tmp_path: Path) -> None:
    """Rows and columns are mostly equal; where they are not, one of them is 1."""
    model = make_model([node("Add", "x z")], {"x": ("a",), "z": ("b",)}, opset=18)
    result, path = satura.compile(model, threads=1), tmp_path / "sum.satura"
    line, one = np.arange(5, dtype=np.float32), np.ones(1, np.float32)
    for x, z in ((line, line), (line, one)):
        np.testing.assert_array_equal(result(x, z), x + z)
    alone = result.cache[-1]
    assert alone.facts == ("a == 5", "b == 1") and "takes some of" in str(alone.missed)
    result.save(path)
    opened = satura.open(path)
    for x, z in ((line, line), (line, one), (line[:3], line[:3])):
        np.testing.assert_array_equal(opened(x, z), x + z)
    np.testing.assert_array_equal(opened(line[:3], one), line[:3] + 1)
    with pytest.raises(CallError, match="but must be 3 as axis 0 of input 'x' is"):
        opened(line[:3], line)


def test_a_file_has_the_sizes_that_the_program_for_all_others_excludes(tmp_path: Path) -> None:
    result = satura.compile(sliced(-4, 99, 1), threads=1)
    result.save(tmp_path / "last.satura", [{"n": 5}, {"n": 2}, {"n": 101}])
    opened = satura.open(tmp_path / "last.satura")
    (tmp_path / "last.satura").chmod(0o666)
    with pytest.warns(UserWarning, match="compiled again"):
        again = satura.open(tmp_path / "last.satura")
    for n, first in ((5, 1), (2, 0), (101, 97), (3, 0)):
        x = np.arange(n, dtype=np.float32)
        for program in (opened, again):
            np.testing.assert_array_equal(program(x), x[first:99])
