"""Broken and unsupported models: one clear error each, naming the place and the reason."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import satura
from satura.pipeline.inputs import random_inputs
from satura.rewrite.errors import ModelError, SaturaError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.interpreter import interpret
from tests.random_programs import random_program
from tests.tiers import seeds

F32 = TensorProto.FLOAT


def healthy() -> ModelProto:
    """relu(x·w + b), whose parts the table below breaks."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], name="dense"),
        helper.make_node("Add", ["product", "b"], ["sum"], name="bias"),
        helper.make_node("Relu", ["sum"], ["y"], name="activation"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", F32, [2, 3])],
        [helper.make_tensor_value_info("y", F32, [2, 4])],
        [
            numpy_helper.from_array(np.ones((3, 4), np.float32), "w"),
            numpy_helper.from_array(np.ones(4, np.float32), "b"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_the_healthy_model_loads() -> None:
    assert load(healthy()).outputs[0][0] == "y"


Break = Callable[[ModelProto], object]


def constant_of_shape(dims: list[int]) -> Break:
    def change(model: ModelProto) -> None:
        graph = model.graph
        graph.initializer.append(numpy_helper.from_array(np.array(dims, np.int64), "dims"))
        graph.node.append(helper.make_node("ConstantOfShape", ["dims"], ["huge"], name="fill"))

    return change


def extra(op_type: str, *inputs: str, domain: str = "", **attributes: object) -> Break:
    """Add a node called 'extra'."""

    def change(model: ModelProto) -> None:
        added = helper.make_node(op_type, inputs, ["extra_result"], name="extra", domain=domain)
        added.attribute.extend(helper.make_attribute(k, value) for k, value in attributes.items())
        model.graph.node.append(added)

    return change


def set_opset(version: int) -> Break:
    return lambda model: setattr(model.opset_import[0], "version", version)


def declare(name: str, code: int, dims: list[int] | None) -> Break:
    def change(model: ModelProto) -> None:
        values = [*model.graph.input, *model.graph.output]
        value = next(value for value in values if value.name == name)
        value.CopyFrom(helper.make_tensor_value_info(name, code, dims))

    return change


def initializer(dims: list[int], code: int, raw: bytes) -> Break:
    def change(model: ModelProto) -> None:
        tensor = model.graph.initializer[0]
        tensor.CopyFrom(TensorProto(name="w", dims=dims, data_type=code, raw_data=raw))

    return change


def numbers(**fields: list[int]) -> Break:
    def change(model: ModelProto) -> None:
        tensor = TensorProto(name="w", dims=[3, 4], data_type=F32)
        for field, values in fields.items():
            getattr(tensor, field).extend(values)
        model.graph.initializer[0].CopyFrom(tensor)

    return change


def sequence_input(model: ModelProto) -> None:
    inner = helper.make_tensor_type_proto(F32, [2])
    kind = helper.make_sequence_type_proto(inner)
    model.graph.input[0].CopyFrom(helper.make_value_info("x", kind))


def loop(model: ModelProto) -> None:
    number = helper.make_tensor_value_info("number", TensorProto.INT64, [])
    goes_on = helper.make_tensor_value_info("goes_on", TensorProto.BOOL, [])
    body = helper.make_graph([], "body", [number, goes_on], [goes_on, number])
    node = helper.make_node("Loop", ["", ""], ["l"], name="again", body=body)
    model.graph.node.append(node)


def recursive_function(model: ModelProto) -> None:
    call = helper.make_node("F", ["a"], ["b"], domain="own")
    imports = [helper.make_opsetid("own", 1)]
    model.functions.append(helper.make_function("own", "F", ["a"], ["b"], [call], imports))
    model.opset_import.append(helper.make_opsetid("own", 1))
    extra("F", "x", domain="own")(model)


# What is done to the healthy model, the error and what its message must name.
BROKEN: dict[str, tuple[Break, type[SaturaError], list[str]]] = {
    "cycle": (
        lambda m: m.graph.node[0].input.__setitem__(0, "y"),
        ModelError, ["'dense' (MatMul)", "cycle"],
    ),
    "waits for itself": (
        lambda m: m.graph.node[2].input.__setitem__(0, "y"),
        ModelError, ["'activation' (Relu)", "cycle"],
    ),
    "dangling input": (
        lambda m: m.graph.node[1].input.__setitem__(1, "nowhere"),
        ModelError, ["'bias' (Add)", "'nowhere'", "nothing computes"],
    ),
    "name computed twice": (
        lambda m: m.graph.node[1].output.__setitem__(0, "product"),
        ModelError, ["'bias' (Add)", "'product'", "already has a value"],
    ),
    "input computed again": (
        lambda m: m.graph.node[0].output.__setitem__(0, "x"),
        ModelError, ["'dense' (MatMul)", "'x'", "already has a value"],
    ),
    "two inputs of one name": (
        lambda m: m.graph.input.append(m.graph.input[0]), ModelError, ["two inputs", "'x'"],
    ),
    "two initializers of one name": (
        lambda m: m.graph.initializer.append(m.graph.initializer[0]),
        ModelError, ["two initializers", "'w'"],
    ),
    "output that nothing computes": (
        lambda m: setattr(m.graph.output[0], "name", "z"), ModelError, ["output 'z'"],
    ),
    "no outputs": (lambda m: m.graph.ClearField("output"), ModelError, ["no outputs"]),
    "unknown op": (extra("Frobnicate", "x"), ModelError, ["'extra'", "no op 'Frobnicate'", "17"]),
    "op of a later opset": (extra("Gelu", "x"), ModelError, ["'extra'", "no op 'Gelu'", "17"]),
    "unknown domain": (
        extra("Fused", "x", domain="com.example"), UnsupportedError, ["'extra'", "com.example"],
    ),
    "unknown attribute": (
        extra("Relu", "x", slope=1.0), ModelError, ["'extra' (Relu)", "slope"],
    ),
    "attribute of another type": (
        extra("Concat", "x", "x", axis="one"),
        ModelError, ["'extra' (Concat)", "attribute 'axis' must be of kind int, not string"],
    ),
    "attribute of another type in control flow": (
        extra("If", "x", then_branch=1, else_branch=helper.make_graph([], "body", [], [])),
        ModelError, ["'extra' (If)", "attribute 'then_branch' must be of kind graph, not int"],
    ),
    "missing attribute": (extra("Concat", "x", "x"), ModelError, ["'extra' (Concat)", "axis"]),
    "too many inputs": (extra("Relu", "x", "x"), ModelError, ["'extra' (Relu)", "input size 2"]),
    "missing input": (extra("Add", "x", ""), ModelError, ["'extra' (Add)"]),
    "axis out of range": (
        extra("Concat", "x", "x", axis=2), ModelError, ["'extra' (Concat)", "axis 2"],
    ),
    "wrong rank": (declare("x", F32, [6]), ModelError, ["'dense' (MatMul)", "6"]),
    "rank of a convolution": (
        extra("Conv", "x", "w"), ModelError, ["'extra' (Conv)", "rank 2"],
    ),
    "shapes that do not multiply": (
        declare("x", F32, [2, 5]), ModelError, ["'dense' (MatMul)", "inner extents"],
    ),
    "shapes that do not broadcast": (
        extra("Add", "x", "b"), ModelError, ["'extra' (Add)", "[2, 3] and [4]"],
    ),
    "element types that differ": (
        declare("x", TensorProto.DOUBLE, [2, 3]), ModelError, ["'dense' (MatMul)", "f64", "f32"],
    ),
    "declared output shape": (
        declare("y", F32, [2, 5]), ModelError, ["output 'y'", "float[2, 5]", "f32[2, 4]"],
    ),
    "declared output rank": (declare("y", F32, [2]), ModelError, ["output 'y'", "f32[2, 4]"]),
    "declared output type": (
        declare("y", TensorProto.INT64, [2, 4]),
        ModelError, ["output 'y'", "int64[2, 4]", "f32[2, 4]"],
    ),
    "input type that is none": (
        declare("x", 99, [2, 3]), UnsupportedError, ["input 'x': element type 99 is not"],
    ),
    "declared output type that is none": (
        declare("y", 99, [2, 3]), UnsupportedError, ["output 'y': element type 99 is not"],
    ),
    "numbers in the field of another type": (
        numbers(int64_data=[1] * 12), ModelError, ["'w'", "12 elements in float_data", "has 0"],
    ),
    "too few numbers beside others": (
        numbers(float_data=[1] * 11, int64_data=[1] * 12), ModelError, ["'w'", "has 11"],
    ),
    "absurd extent": (declare("x", F32, [10**15, 3]), ModelError, ["elements"]),
    "absurd fill": (constant_of_shape([10**15]), ModelError, ["'fill'", "elements"]),
    "negative fill": (constant_of_shape([-4]), ModelError, ["'fill'", "negative"]),
    "absurd initializer": (
        initializer([10**8, 10**7], F32, bytes(48)), ModelError, ["'w'", "48"],
    ),
    "negative initializer": (initializer([-3, 4], F32, bytes(48)), ModelError, ["'w'", "negative"]),
    "short initializer": (initializer([3, 4], F32, bytes(44)), ModelError, ["'w'", "48", "44"]),
    "initializer of strings": (
        initializer([1], TensorProto.STRING, b""), UnsupportedError, ["'w'", "string"],
    ),
    "complex input": (
        declare("x", TensorProto.COMPLEX64, [2, 3]), UnsupportedError, ["input 'x'", "complex64"],
    ),
    "input without a rank": (declare("x", F32, None), UnsupportedError, ["input 'x'", "rank"]),
    "input that is a sequence": (sequence_input, UnsupportedError, ["input 'x'", "sequence"]),
    "loop": (loop, UnsupportedError, ["'again' (Loop)", "number of steps"]),
    "result of unknown size": (
        extra("NonZero", "x"), UnsupportedError, ["'extra' (NonZero)", "depends on data"],
    ),
    "opset too old": (set_opset(0), UnsupportedError, ["opset 0"]),
    "opset too new": (
        set_opset(999), UnsupportedError, ["opset 999", "older ones where the onnx"],
    ),
    "function that calls itself": (
        recursive_function, ModelError, ["'extra' (F): in its body", "…", "than 64 deep"],
    ),
    "reshape of wrong size": (
        lambda m: (
            m.graph.initializer.append(numpy_helper.from_array(np.array([5, -1]), "shape")),
            extra("Reshape", "x", "shape")(m),
        ),
        ModelError, ["'extra' (Reshape)", "6 elements"],
    ),
    "unknown mode of a pad of nothing": (
        lambda m: (
            m.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, -1, 0]), "pads")),
            extra("Pad", "x", "pads", mode="mirror")(m),
        ),
        ModelError, ["'extra' (Pad)", "'mode' is 'mirror'", "constant, reflect, edge, wrap"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_model(case: str) -> None:
    change, kind, names = BROKEN[case]
    model = healthy()
    change(model)
    with pytest.raises(kind) as caught:
        load(model.SerializeToString())
    message = str(caught.value)
    assert all(name in message for name in names), message
    assert "\n" not in message


CONTENTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "truncated": (healthy().SerializeToString()[:120], "truncated"),
    "garbage": (bytes(range(256)) * 8, "not an ONNX model"),
    "text": (b"this is not a model\n" * 20, "not an ONNX model"),
    "without a graph": (ModelProto(ir_version=8).SerializeToString(), "no graph"),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_broken_file(case: str, tmp_path: Path) -> None:
    content, reason = CONTENTS[case]
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.onnx") as caught:
        load(path)
    assert reason in str(caught.value)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"missing\.onnx.*No such file"):
        load(tmp_path / "missing.onnx")
    with pytest.raises(ModelError, match="directory"):
        load(tmp_path)


# External data


def external(folder: Path, **fields: object) -> Path:
    """The healthy model with its weights in another file, described by `fields`."""
    model = healthy()
    tensor = model.graph.initializer[0]
    (folder / "model").mkdir()
    (folder / "model" / "w.bin").write_bytes(tensor.raw_data)
    (folder / "secret.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in fields.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "model" / "model.onnx"
    onnx.save(model, path)
    return path


def test_external_data_is_read(tmp_path: Path) -> None:
    assert load(external(tmp_path, location="w.bin", offset=0, length=48)).outputs


EXTERNAL: dict[str, tuple[dict[str, object], str]] = {
    "outside the folder": ({"location": "../secret.bin"}, "outside"),
    "absolute": ({"location": "{folder}/secret.bin"}, "outside"),
    "through a link": ({"location": "link.bin"}, "outside"),
    "no location": ({"offset": 0}, "outside"),
    "missing": ({"location": "other.bin"}, "no file 'other.bin'"),
    "a folder": ({"location": "inner"}, "no file 'inner'"),
    "short": ({"location": "w.bin", "offset": 4}, "48 bytes are needed"),
    "wrong length": ({"location": "w.bin", "length": 12}, "48 bytes are needed"),
    "negative length": ({"location": "w.bin", "length": -1}, "must not be negative"),
    "negative offset": ({"location": "w.bin", "offset": -4}, "must not be negative"),
    "offset that is not a number": ({"location": "w.bin", "offset": "x"}, "must be integers"),
}


@pytest.mark.parametrize("case", EXTERNAL)
def test_broken_external_data(case: str, tmp_path: Path) -> None:
    fields, reason = EXTERNAL[case]
    filled = {key: str(value).format(folder=tmp_path) for key, value in fields.items()}
    path = external(tmp_path, **filled)
    (path.parent / "link.bin").symlink_to(tmp_path / "secret.bin")
    (path.parent / "inner").mkdir()
    with pytest.raises(ModelError, match="tensor 'w'") as caught:
        load(path)
    assert reason in str(caught.value)


def test_external_data_needs_a_path(tmp_path: Path) -> None:
    path = external(tmp_path, location="w.bin")
    with pytest.raises(ModelError, match="path"):
        load(path.read_bytes())
    with pytest.raises(ModelError, match="path"):
        load(onnx.load(path, load_external_data=False))


def test_damaged_bytes_give_errors_of_ours() -> None:
    check_damaged_bytes(0)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(50))
def test_ten_thousand_damaged_files_compile_or_give_errors_of_ours(seed: int) -> None:
    model = to_model(random_program(seed)[0]) if seed % 2 else healthy()
    check_damaged_bytes(seed, model, 200, check_compiled)


def check_compiled(content: bytes) -> None:
    """A model, compiled, gives what the interpreter gives, unless it is too large to be run."""
    program = load(content)
    types = [program.nodes[index].type for index in range(len(program.nodes))]
    if all(isinstance(type_.size, int) and type_.size < 1e5 for type_ in types):
        arguments = random_inputs(program, {})
        found = satura.compile(content, threads=1).run(arguments)
        with np.errstate(all="ignore"):
            for name, expected in interpret(program, arguments).items():
                assert found[name].shape == expected.shape and found[name].dtype == expected.dtype
                wide = [np.asarray(x).astype(np.float64) for x in (found[name], expected)]
                known = np.isfinite(wide[0]) & np.isfinite(wide[1])  # sums overflow in any order
                bound = 1e-2 * np.abs(wide[1][known]).max(initial=1.0)
                assert np.all(np.abs(wide[0] - wide[1])[known] <= bound)


def check_damaged_bytes(
    seed: int,
    model: ModelProto | None = None,
    count: int = 400,
    run: Callable[[bytes], object] = load,
) -> None:
    """Whatever is done to the bytes, the model runs or one of our errors is raised."""
    generator = random.Random(seed)
    content = (model or healthy()).SerializeToString()
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(count):
            damaged = bytearray(content)
            for _ in range(generator.choice([1, 1, 2, 4])):
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            try:
                run(bytes(damaged))
            except SaturaError:
                refused += 1
    assert refused  # of a model that is mostly weights, little is


@pytest.mark.parametrize("other", [None, 3, ["m.onnx"]])
def test_what_is_not_a_model_is_said_to_be_none(other: object) -> None:
    with pytest.raises(ModelError, match="a model is a path, its bytes"):
        load(other)  # type: ignore[arg-type]


def test_names_of_parsed_models_are_read_like_those_of_files() -> None:
    model = healthy()
    model.graph.value_info.add().CopyFrom(model.graph.input[0])
    for values in (model.graph.input, model.graph.output, model.graph.value_info):
        dim = values[0].type.tensor_type.shape.dim[0]
        before, dim.dim_param = dim.dim_value, "q"
        content = model.SerializeToString().replace(b"q", b"\xff")
        dim.dim_value = before
        for given in (content, ModelProto.FromString(content)):
            with pytest.raises(ModelError, match="not valid UTF-8"):
                load(given)


def test_texts_that_mean_nothing_may_be_of_any_encoding() -> None:
    model = healthy()
    model.doc_string = "qqq"
    load(model.SerializeToString().replace(b"qqq", b"\xff\xff\xff"))


def test_no_values_are_known_of_no_elements_by_unknown_many() -> None:
    nodes = [
        helper.make_node("Split", ["x", "sizes"], ["most", "none"], axis=0),
        helper.make_node("Add", ["none", "one"], ["moved"]),
        helper.make_node("TopK", ["moved", "k"], ["y", "at"], axis=1),
    ]
    sizes = numpy_helper.from_array(np.array([4, 0]), "sizes")
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", F32, [4, "b"])],
        [helper.make_tensor_value_info("y", F32, None)],
        [
            sizes, numpy_helper.from_array(np.array([11]), "k"),
            numpy_helper.from_array(np.array(1, np.float32), "one"),
        ],
    )  # fmt: skip
    program = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    found = interpret(program, {"x": np.ones((4, 12), np.float32)})
    assert found["y"].shape == (0, 11)


@pytest.mark.parametrize(
    ("shape", "shown"),
    [([2, None, "n"], r"float\[2, \?, n\]"), ([], r"float\[\]"), (None, r"int64\[\.\.\.\]")],
)
def test_an_output_of_another_type_shows_what_is_open(
    shape: list[int | str | None] | None, shown: str
) -> None:
    model = healthy()
    code = TensorProto.INT64 if shape is None else F32
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", code, shape))
    message = rf"^output 'y' is declared as {shown}, but computed is f32\[2, 4\]$"
    with pytest.raises(ModelError, match=message):
        load(model)
