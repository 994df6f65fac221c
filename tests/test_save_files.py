"""Saved models: names, constants, host nodes, files and whole networks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from benchmarks.models import TINY, build, example_inputs
from satura.rewrite.errors import CallError, ProgramError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.save import save, to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType, TensorType
from tests.onnxruntime_reference import assert_close, run
from tests.saved_programs import arguments_of, check, values
from tests.tiers import deep_but


@pytest.mark.parametrize("name", deep_but(TINY[::9], TINY))
def test_networks_come_back_as_they_were(name: str) -> None:
    original = build(name)
    program = load(original)
    saved = to_model(program)
    onnx.checker.check_model(saved, full_check=True)
    assert [value.name for value in saved.graph.input] == [v.name for v in original.graph.input]
    again = load(saved)
    for sizes in {"batch": 2, "seq": 9}, {"batch": 1, "seq": 1}:
        arguments = example_inputs(original, sizes)
        expected = run(original, arguments)
        for got, wanted in zip(run(saved, arguments), expected, strict=True):
            assert_close(got, wanted, 1e-5)
        for got, wanted in zip(interpret(again, arguments).values(), expected, strict=True):
            assert_close(got, wanted, 1e-5)


def test_a_chain_of_concats_is_one_node() -> None:
    build = Builder()
    parts = [build.input(f"x{at}", DType.F32, (2, at + 1)) for at in range(4)]
    shared = build.concat(parts[:2], 1)
    program = build.program({"y": build.concat([shared, *parts[2:]], 1), "shared": shared})
    check(program, arguments_of(program))
    nodes = [node for node in to_model(program).graph.node if node.op_type == "Concat"]
    assert sorted(len(node.input) for node in nodes) == [2, 3]


def test_sizes_without_an_input_to_read_them_from() -> None:
    build = Builder()
    build.input("x", DType.F32, (2 * symbol("k"),))
    with pytest.raises(ProgramError, match="'k'"):
        to_model(build.program({"y": build.extent(symbol("k"))}))


def test_names_of_inputs_and_outputs_stay() -> None:
    build = Builder()
    x = build.input("v0", DType.F32, (3,))
    y = build.unary("relu", x)
    two = build.constant(np.array([1, 2, 3], np.float32))
    program = build.program({"v1": y, "same": y, "v0_again": x, "constant": two})
    model = to_model(program)
    assert [value.name for value in model.graph.input] == ["v0"]
    assert [value.name for value in model.graph.output] == ["v1", "same", "v0_again", "constant"]
    check(program, arguments_of(program))


def test_an_input_can_be_an_output() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (3,))
    check(build.program({"x": x}), {"x": np.array([1, 2, 3], np.float32)})
    with pytest.raises(ProgramError, match="'x'"):
        to_model(build.program({"x": build.unary("neg", x)}))


def test_equal_constants_are_stored_once() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 6, 6, 8))
    weight = build.constant(values(DType.F32, (3, 3, 8, 8), special=False))
    window = build.window(DType.F32, (3, 3), lo=(1, 1), hi=(1, 1))
    y = build.conv(build.conv(x, weight, window), weight, window)
    model = to_model(build.program({"y": y}))
    assert [tuple(tensor.dims) for tensor in model.graph.initializer] == [(8, 8, 3, 3)]


def _host_program(node: onnx.NodeProto, opset: int, types: Sequence[TensorType]) -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    call = HostCall(node.op_type, node.domain, opset, node.SerializeToString(), tuple(types))
    first = build.host([x], call)
    results = [first, *(build.item(first, at) for at in range(1, len(types)))]
    return build.program({f"y{at}": result for at, result in enumerate(results)})


def test_host_nodes_are_stored_as_they_are() -> None:
    node = helper.make_node("TopK", ["i0", "i1"], ["o0", "o1"], axis=0, largest=0)
    build = Builder()
    x, k = build.input("x", DType.F32, (4, 3)), build.constant(np.array([2]))
    types = TensorType(DType.F32, (2, 3)), TensorType(DType.I64, (2, 3))
    call = HostCall("TopK", "", 17, node.SerializeToString(), types)
    first = build.host([x, k], call)
    program = build.program({"places": build.item(first, 1), "sorted": build.unary("neg", first)})
    check(program, arguments_of(program, special=False))


def test_host_nodes_that_changed_their_meaning_are_refused() -> None:
    node = helper.make_node("Softmax", ["i0"], ["o0"])
    program = _host_program(node, 11, [TensorType(DType.F32, (2, 3))])
    with pytest.raises(UnsupportedError, match="Softmax of opset 11"):
        to_model(program)
    node = helper.make_node("ReduceL1", ["i0"], ["o0"], axes=[1])
    program = _host_program(node, 13, [TensorType(DType.F32, (2, 1))])
    (kept,) = to_model(program).graph.node
    assert len(kept.input) == 2 and not kept.attribute


def test_host_nodes_of_other_domains_keep_their_domain() -> None:
    node = helper.make_node("Mystery", ["i0"], ["o0"], domain="com.example", depth=3)
    model = to_model(_host_program(node, 2, [TensorType(DType.F32, (2, 3))]))
    assert {entry.domain: entry.version for entry in model.opset_import}["com.example"] == 2
    (kept,) = [node for node in model.graph.node if node.domain == "com.example"]
    assert kept.op_type == "Mystery" and kept.attribute[0].i == 3


def _weighty() -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (5, 37))
    for seed in range(3):
        weight = build.constant(values(DType.F32, (37, 37), seed, special=False))
        x = build.matmul(x, weight)
    return build.program(
        {"y": build.binary("add", x, build.constant(np.ones((5, 37), np.float32)))}
    )


def test_save_writes_one_file(tmp_path: Path) -> None:
    save(_weighty(), tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    program = _weighty()
    arguments = arguments_of(program, special=False)
    (output,) = run(onnx.load(tmp_path / "model.onnx"), arguments)
    assert_close(output, interpret(program, arguments)["y"])


def test_large_constants_go_to_a_file_next_to_the_model(tmp_path: Path) -> None:
    program = _weighty()
    path = tmp_path / "model.onnx"
    save(program, path, largest_file=1000)
    data = [other for other in tmp_path.iterdir() if other != path]
    assert_close(
        interpret(load(path), arguments_of(program))["y"],
        interpret(program, arguments_of(program))["y"],
    )
    assert len(data) == 1 and data[0].name.startswith("model.onnx.")
    assert path.stat().st_size < 4000 <= data[0].stat().st_size
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    arguments = arguments_of(program, special=False)
    (output,) = session.run(None, arguments)
    assert_close(output, interpret(program, arguments)["y"])
    before = data[0].read_bytes()
    save(program, path, largest_file=1000)
    assert data[0].read_bytes() == before and len(list(tmp_path.iterdir())) == 2
    path.chmod(0o600)
    save(program, path, largest_file=1000)
    assert [each.stat().st_mode & 0o777 for each in (path, *data)] == [0o600] * 2


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failed_save_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    path = tmp_path / "model.onnx"
    save(_weighty(), path, largest_file=1000)
    before = {other.name: other.read_bytes() for other in tmp_path.iterdir()}
    calls = []

    def broken(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) > failing:
            raise OSError("disk full")
        return self.rename(target)

    monkeypatch.setattr(Path, "replace", broken)
    build = Builder()
    other = build.binary(
        "mul", build.input("x", DType.F32, (37, 37)), build.constant(np.eye(37, dtype=np.float32))
    )
    with pytest.raises(OSError, match="disk full"):
        save(build.program({"y": other}), path, largest_file=1000)
    after = {other.name: other.read_bytes() for other in tmp_path.iterdir()}
    assert {name: after.get(name) for name in before} == before
    assert not [name for name in after if name.endswith(".tmp")]


def test_a_link_to_a_model_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.onnx").symlink_to("model.onnx")
    save(_weighty(), tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink()
    assert load(tmp_path / "model.onnx").outputs


def test_constants_are_not_put_beside_a_device(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").symlink_to("/dev/null")
    with pytest.raises(CallError, match="not a file"):
        save(_weighty(), tmp_path / "model.onnx", largest_file=1000)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_what_is_computed_from_constants_is_stored() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 8, 9, 300))
    variance, scale = (build.constant(np.full(300, v, np.float32)) for v in (3, 5))
    small = build.broadcast(build.reshape(build.constant(np.float32(1)), (1,)), (300,))
    root = build.unary("sqrt", build.binary("add", variance, small))
    factor = build.reshape(build.binary("div", scale, root), (1, 1, 1, 300))
    scaled = build.binary("mul", x, build.broadcast(factor, (2, 8, 9, 300)))
    model = to_model(build.program({"y": scaled}))
    assert [node.op_type for node in model.graph.node] == ["Mul"]
    (stored,) = model.graph.initializer
    assert np.array_equal(numpy_helper.to_array(stored), np.full((1, 1, 1, 300), 2.5, np.float32))


def test_what_is_larger_than_its_constants_is_not_stored() -> None:
    build = Builder()
    weight = build.cast(build.constant(np.arange(100, dtype=np.int8).repeat(20)), DType.F32)
    doubled = build.binary(
        "mul", weight, build.broadcast(build.constant(np.full(1, 2, np.float32)), (2000,))
    )
    model = to_model(
        build.program({"y": build.concat([build.input("x", DType.F32, (1,)), doubled], 0)})
    )
    assert sum(len(tensor.raw_data) for tensor in model.graph.initializer) < 2100
