"""Weights are in memory once: read from the model's file where they are needed, then let go."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import satura
from satura.errors import CallError, ModelError
from satura.rewrite.onnx import files
from satura.rewrite.onnx.files import read_apart, read_model
from satura.rewrite.onnx.outline import Outline, outline
from satura.rewrite.program.host_call import HostFallbackWarning
from satura.rewrite.types import stored
from satura.rewrite.types.copies import reshaped, row_major
from satura.rewrite.types.remade import SMALLEST_REMADE
from satura.rewrite.types.stored import Stored, StoredFile
from satura.rewrite.types.tensor_type import Array
from tests.host_models import one_node
from tests.tiers import deep_but

EDGE = 512
LAYERS = 6
SLACK = 1 << 20  # bytes of everything but weights


def layers(path: Path, edge: int = EDGE, count: int = LAYERS, is_apart: bool = False) -> int:
    """Write x · |w₁| · |w₂| … for x [n, edge], and give the bytes of the weights."""
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    data = path.with_suffix(".data")
    with data.open("wb") as file:
        for number in range(count):
            name = f"w{number}"
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[edge, edge])
            array = random.standard_normal((edge, edge), np.float32) / np.float32(edge)
            if is_apart:
                tensor.data_location = TensorProto.EXTERNAL
                place = {"location": data.name, "offset": file.tell(), "length": array.nbytes}
                for key, value in place.items():
                    tensor.external_data.add(key=key, value=str(value))
                file.write(array.data)
            else:
                tensor.raw_data = array.tobytes()
            weights.append(tensor)
            nodes.append(helper.make_node("Abs", [name], [f"t{number}"]))
            nodes.append(helper.make_node("MatMul", [last, f"t{number}"], [f"y{number}"]))
            last = f"y{number}"
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", edge]) for name in ("x", last)
    ]
    graph = helper.make_graph(nodes, "layers", values[:1], values[1:], weights)
    opset = helper.make_opsetid("", 18)
    path.write_bytes(helper.make_model(graph, opset_imports=[opset]).SerializeToString())
    return 4 * count * edge**2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "layers.onnx"
    layers(path)
    return path


@pytest.mark.parametrize("is_apart", deep_but([True], [False, True]), ids=["inside", "apart"])
def test_compiled_weights_are_held_once(tmp_path: Path, is_apart: bool) -> None:
    """Bytes of arrays: 2.2 times the weights while the program is compiled, 1.15 times after."""
    path = tmp_path / "model.onnx"
    weights = layers(path, is_apart=is_apart)
    x = np.ones((3, EDGE), np.float32)
    expected = satura.compile(path)(x)  # imports and kernels are there when the bytes are counted
    gc.collect()
    tracemalloc.start()
    try:
        compiled = satura.compile(path, dims={"n": 3})  # not what was kept of the compile before
        found = compiled(x)
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.array_equal(found, expected)
    assert weights <= held <= 1.15 * weights + SLACK
    assert peak <= 2.2 * weights + SLACK


def test_the_bytes_of_a_model_are_not_copied(model: Path) -> None:
    content = model.read_bytes()
    tracemalloc.start()
    try:
        program = satura.load(content)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < SLACK < len(content)
    assert program == satura.load(model) == satura.load(onnx.load(model))


def test_host_calls_do_not_read_constants_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((1, 8, 64, 64)).astype(np.float32)
    rois = np.array([[0, 0, 9, 9]], np.float32)
    given: dict[str, Array] = {"x": x, "rois": rois, "batch": np.zeros(1, np.int64)}
    content = one_node("RoiAlign", given, constants="x batch").model.SerializeToString()
    with pytest.warns(HostFallbackWarning):
        compiled = satura.compile(content)
    monkeypatch.delattr(Stored, "copy_to")
    for _ in range(2):
        assert np.isfinite(compiled.run({"rois": rois})["y"]).all()


def test_a_file_that_was_replaced_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    layers(path)
    program = satura.load(path)
    (before, *_) = program.constants.values()
    before = before.copy()
    path.with_suffix(".new").write_bytes(b"another")
    path.with_suffix(".new").replace(path)
    assert any(np.array_equal(before, each) for each in program.constants.values())
    path.unlink()
    (y,) = satura.compile(program).run(np.ones((1, EDGE), np.float32)).values()
    assert y.shape == (1, EDGE)


@pytest.mark.parametrize("is_shorter", [True, False], ids=["shorter", "written to"])
def test_a_file_that_was_written_to_is_refused(tmp_path: Path, is_shorter: bool) -> None:
    path = tmp_path / "model.onnx"
    layers(path)
    program = satura.load(path)
    if is_shorter:
        os.truncate(path, 100)
    else:
        with path.open("r+b") as file:
            file.seek(SMALLEST_REMADE)
            file.write(b"0000")
        os.utime(path, ns=(0, 0))  # clocks of file systems may be coarse
    with pytest.raises(CallError, match=r"model.onnx' has changed since it was loaded"):
        satura.compile(program).run(np.ones((1, EDGE), np.float32))


def test_a_file_that_becomes_shorter_while_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    layers(path, count=1)

    def shortened(content: BinaryIO, size: int) -> Outline | None:
        os.truncate(path, 100)
        return outline(content, size)

    monkeypatch.setattr(files, "outline", shortened)
    with pytest.raises(ModelError, match=r"model.onnx' has changed"):
        satura.load(path)


def test_links_of_a_store_by_content(tmp_path: Path) -> None:
    """Links beside the model lead to where it is a link to, and its data nowhere else."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    layers(blobs / "model.onnx", count=1, is_apart=True)
    for name, target in {"model.onnx": "a1", "model.data": "b2"}.items():
        (blobs / name).rename(blobs / target)
        (snapshot / name).symlink_to(f"../../blobs/{target}")
    expected = np.fromfile(blobs / "b2", np.float32)
    (found,) = satura.load(snapshot / "model.onnx").constants.values()
    assert np.array_equal(found.reshape(-1), expected)
    proto = ModelProto.FromString((blobs / "a1").read_bytes())
    proto.graph.initializer[0].external_data[0].value = "../../blobs/b2"
    (blobs / "a1").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="outside the model's folder"):
        satura.load(snapshot / "model.onnx")
    (blobs / "b2").rename(tmp_path / "b2")
    (blobs / "b2").symlink_to("../b2")
    with pytest.raises(ModelError, match="outside the model's folder"):
        satura.load(snapshot / "model.onnx")


def test_few_of_many_files_are_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MOST_KEPT", 3)
    paths = [tmp_path / str(number) for number in range(9)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 10)
    gc.collect()
    before = len([*Path("/proc/self/fd").iterdir()])
    opened = [StoredFile(path) for path in paths]
    assert len([*Path("/proc/self/fd").iterdir()]) <= before + 3
    for path in paths:
        path.rename(path.with_suffix(".old"))
        path.write_bytes(b"0123456789")
    seen = 0
    for number, file in enumerate(opened):  # bytes as they were, or an error
        try:
            assert Stored(file, 2, 5).bytes().tobytes() == bytes([number]) * 5
            seen += 1
        except ModelError as error:
            assert "has changed" in str(error)
    assert seen <= 3


def test_a_model_read_apart_is_the_model(model: Path) -> None:
    content = model.read_bytes()
    whole = ModelProto.FromString(content)
    assert len(read_apart(content).weights) == LAYERS
    assert read_model(content) == read_model(model) == whole
    # Messages of a field that comes twice are merged, and of bytes the last count.
    raw = TensorProto(name="twice", raw_data=bytes(SMALLEST_REMADE)).SerializeToString()
    again = TensorProto(raw_data=b"1" * SMALLEST_REMADE).SerializeToString()
    merged = content + delimited(
        ModelProto, "graph", delimited(onnx.GraphProto, "initializer", raw + again)
    )
    assert read_model(merged) == ModelProto.FromString(merged)


def delimited(message: type[ModelProto | onnx.GraphProto], field: str, content: bytes) -> bytes:
    """A message with this content in a field."""
    length = len(content)
    size = [length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14]
    return bytes([message.DESCRIPTOR.fields_by_name[field].number << 3 | 2, *size]) + content


def test_what_ends_early_is_not_a_model(model: Path) -> None:
    content = model.read_bytes()
    for length in (1, 100, SMALLEST_REMADE, len(content) // 2, len(content) - 1):
        with pytest.raises(ModelError, match="not an ONNX model"):
            read_apart(content[:length])


@pytest.mark.long
def test_more_than_two_gigabytes(tmp_path: Path) -> None:
    """A model with external data is loaded, runs, is saved and is loaded again."""
    path, saved = tmp_path / "large.onnx", tmp_path / "saved.onnx"
    edge = 8192
    weights = layers(path, edge, 9, is_apart=True)
    assert weights > 2.2 * 2**30
    program = satura.load(path)
    satura.save(program, saved)
    x = np.random.default_rng(1).standard_normal((2, edge), np.float32)
    expected: Array = x
    for array in program.constants.values():
        expected = np.matmul(expected, np.abs(array))
    artifact = tmp_path / "large.satura"
    compiled = satura.compile(path)
    assert np.allclose(np.asarray(compiled(x)), expected, atol=1e-3)
    compiled.save(artifact)
    del compiled
    assert np.array_equal(satura.open(artifact)(x), satura.compile(saved)(x))


def test_files_that_nobody_reads_are_closed_when_the_next_is_opened(model: Path) -> None:
    gc.collect()
    files = [stored.StoredFile(model) for _ in range(3)]
    kept = len(stored._KEPT)
    del files[:2]
    files.append(stored.StoredFile(model))
    assert len(stored._KEPT) == kept - 1
    assert all(os.fstat(descriptor) for _, descriptor in stored._KEPT)


def test_no_file_is_left_to_the_interpreter_to_close(model: Path) -> None:
    code = "import satura, sys; satura.load(sys.argv[1]); kept = satura.compile(sys.argv[1])"
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code, str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.bool_])
def test_permuted_weights_are_copied_once_in_blocks(dtype: type[np.generic]) -> None:
    bits = np.random.default_rng(0).integers(0, 2, 300 * 5 * 130 * 7)
    x = bits.astype(dtype).reshape(300, 5, 130, 7)
    empty, one, turned = x[:0].T, x[:1, :1, :1, :1].T, x[::-1, :, ::2].transpose(2, 3, 0, 1)
    wide = np.broadcast_to(x[:, :, :1, :1], x.shape).T
    for seen in (x, x.T, turned, x.transpose(0, 2, 1, 3), x.swapaxes(2, 3), wide, one, empty):
        found = row_major(seen, (seen.size,))
        assert found.flags.owndata and np.array_equal(found.reshape(seen.shape), seen)
    assert row_major(x[0, 0, 0, 0], ()) == x[0, 0, 0, 0]
    assert np.shares_memory(reshaped(x.T, (7, 130, 5, 3, 100)), x)
    tracemalloc.start()
    try:
        flat = reshaped(x.T, (7 * 130, 5 * 300))
        assert tracemalloc.get_traced_memory()[1] < x.nbytes + SLACK / 8
    finally:
        tracemalloc.stop()
    assert np.array_equal(flat, np.reshape(x.T, flat.shape)) and flat.flags.owndata
