"""Random ONNX models of open sizes, whose shapes are computed: in calls some sizes are the same.

    python -m tests.open_models SEED [COUNT]

runs COUNT models from SEED on, and prints what differs from onnxruntime.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from onnx import ModelProto, NodeProto, printer
from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    RuntimeException,
)

import satura
from satura.rewrite.errors import CallError, ModelError, UnsupportedError
from satura.rewrite.program.reference import evaluator
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import make_model, node
from tests.onnxruntime_reference import session

T = TypeVar("T")

_CALLS, _TRIED = 20, 8
_TOLERANCE = 1e-4
_AXES = ("ab", "cd", "ef")
_COLUMNS = "bdf"
_KINDS: tuple[Callable[[int, int], int], ...] = (
    lambda n, _: n, lambda n, _: n, lambda n, _: n, lambda n, m: n + m, lambda n, _: n // 2,
    lambda n, m: m, lambda n, m: 1,
)  # fmt: skip
"""What a size may be in all calls of a model, by two that are drawn for each: rows by n and m,
columns by m and n."""

Sizes = dict[str, int]


@dataclass
class _Model:
    random: np.random.Generator
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, object] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)  # matrices of f32
    numbers: list[str] = field(default_factory=list)  # i64[1]

    def one_of(self, *choices: T) -> T:
        return choices[int(self.random.integers(len(choices)))]

    def value(self) -> str:
        """One of the values, mostly a late one."""
        return self.values[-1 - min(int(self.random.exponential(2)), len(self.values) - 1)]

    def number(self) -> str:
        return self.numbers[int(self.random.integers(len(self.numbers)))]

    def constant(self, value: object) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def call(self, op: str, inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(op, inputs, name, **attributes))
        return name

    def axis(self) -> int:
        return int(self.random.integers(2))

    def slice(self, x: str, start: str, end: str, axis: int, step: int = 1) -> str:
        axes, steps = self.constant([axis]), self.constant([step])
        return self.call("Slice", f"{x} {start} {end} {axes} {steps}")

    def shape(self, *dims: str) -> str:
        return self.call("Concat", " ".join(dims), axis=0)


Step = Callable[[_Model], str]


def _size(model: _Model) -> None:
    """An extent, or what is computed of others, at most 40."""
    if model.random.random() < 0.4:
        start = model.axis()
        found = model.call("Shape", model.value(), start=start, end=start + 1)
    else:
        number = model.constant([model.one_of(1, 2, 3, 7)])
        op = model.one_of("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Clip", "Where")
        if op == "Clip":
            found = model.call(op, f"{model.number()} {number} {model.constant([9])}")
        elif op == "Where":
            less = model.call("Less", f"{model.number()} {model.number()}")
            found = model.call(op, f"{less} {model.number()} {number}")
        elif op in ("Div", "Mod"):
            found = model.call(op, f"{model.number()} {number}")
        else:
            other = model.number() if model.random.random() < 0.5 else number
            found = model.call(op, f"{model.number()} {other}")
    model.numbers.append(model.call("Min", f"{found} {model.constant([40])}"))


def _part(model: _Model) -> str:
    start = model.one_of(-15, -3, -1, 0, 0, 2)
    end = model.one_of(-1, 3, 15, 2**40, 2**40)
    step = model.one_of(1, 1, 2, -1)
    if step < 0:
        start, end = end, start
    ends = model.constant([start]), model.constant([end])
    return model.slice(model.value(), *ends, model.axis(), step)


def _computed_part(model: _Model) -> str:
    ends = [model.number(), model.constant([0]), model.constant([2**40])]
    kind = int(model.random.integers(4))
    if kind == 0:
        start, end = ends[1], ends[0]
    elif kind == 1:
        start, end = ends[0], ends[2]
    elif kind == 2:
        start, end = model.call("Neg", ends[0]), ends[2]
    else:
        start, end = ends[0], model.number()
    return model.slice(model.value(), start, end, model.axis())


def _padded(model: _Model) -> str:
    zero, amount = model.constant([0]), model.number()
    pads = [zero] * 4
    pads[int(model.random.integers(4))] = amount
    mode = model.one_of("constant", "edge")
    return model.call("Pad", f"{model.value()} {model.shape(*pads)}", mode=mode)


def _reshaped(model: _Model) -> str:
    rest = model.constant([-1])
    dims = [model.number(), rest]
    return model.call("Reshape", f"{model.value()} {model.shape(*dims[:: model.one_of(1, -1)])}")


def _gathered(model: _Model) -> str:
    ends = [model.call("Squeeze", f"{each}") for each in (model.number(), model.number())]
    one = model.constant(np.int64(1))
    start = model.constant(np.int64(0)) if model.random.random() < 0.5 else ends[1]
    places = model.call("Range", f"{start} {ends[0]} {one}")
    return model.call("Gather", f"{model.value()} {places}", axis=model.axis())


def _product(model: _Model) -> str:
    x, y = model.value(), model.value()
    if model.random.random() < 0.5:
        y = model.call("Transpose", y, perm=[1, 0])
    return model.call("Tanh", model.call("MatMul", f"{x} {y}"))


def _combined(model: _Model) -> str:
    f = model.one_of("Add", "Mul", "Max")
    return model.call(f, f"{model.value()} {model.value()}")


def _joined(model: _Model) -> str:
    return model.call("Concat", f"{model.value()} {model.value()}", axis=model.axis())


def _expanded(model: _Model) -> str:
    return model.call("Expand", f"{model.value()} {model.shape(model.number(), model.number())}")


def _along(model: _Model) -> str:
    axis = model.axis()
    op = model.one_of("CumSum", "ReduceSum", "Softmax", "Trilu", "Transpose", "Tanh")
    if op == "CumSum":
        return model.call(op, f"{model.value()} {model.constant(np.int64(axis))}")
    if op == "ReduceSum":
        return model.call(op, f"{model.value()} {model.constant([axis])}")
    if op == "Transpose":
        return model.call(op, model.value(), perm=[1, 0])
    if op == "Trilu":
        return model.call(op, model.value(), upper=axis)
    return model.call(op, model.value(), **({"axis": axis} if op == "Softmax" else {}))


def _largest(model: _Model) -> str:
    found = model.call("TopK", f"{model.value()} {model.number()}", axis=model.axis())
    model.nodes[-1].output.append(f"{found}_places")
    return found


_STEPS: dict[Step, float] = {
    _combined: 4, _along: 4, _part: 3, _computed_part: 3, _joined: 2, _padded: 1, _reshaped: 1,
    _gathered: 1, _product: 1, _expanded: 1, _largest: 1,
}  # fmt: skip


def open_model(seed: int) -> tuple[ModelProto, Iterator[Sizes]]:
    """A model that runs for most sizes, and sizes of calls without end."""
    random = np.random.default_rng([seed, 12])
    model = _Model(random)
    model.values = [f"x{number}" for number in range(int(random.integers(2, 4)))]
    inputs = {name: tuple(axes) for name, axes in zip(model.values, _AXES, strict=False)}
    names = [name for axes in inputs.values() for name in axes]
    kinds = {name: _KINDS[int(random.integers(len(_KINDS)) * random.random())] for name in names}
    sizes = _sizes(kinds, random)
    model.numbers = [model.constant([2])]
    steps, weights = [*_STEPS], np.array([*_STEPS.values()])
    for _ in range(int(random.integers(4, 12))):
        before = len(model.nodes), len(model.numbers)
        for _ in range(int(random.integers(3))):
            _size(model)
        found = steps[int(random.choice(len(steps), p=weights / weights.sum()))](model)
        if _mostly_runs(make_model(model.nodes, inputs, model.constants, 18, [found]), sizes):
            model.values.append(found)
        else:
            del model.nodes[before[0] :], model.numbers[before[1] :]
    read = {name for each in model.nodes for name in each.input}
    ends = [name for name in model.values if name not in read and name not in inputs]
    return make_model(model.nodes, inputs, model.constants, 18, ends or model.values[-1:]), sizes


def _sizes(
    kinds: Mapping[str, Callable[[int, int], int]], random: np.random.Generator
) -> Iterator[Sizes]:
    """Sizes of these kinds, without end, some of them 1."""
    while True:
        n, m = (int(random.choice([0, 1, 1, 2, 3, 5, 7, 8, 16, 17, 30])) for _ in range(2))
        found = {}
        for name, kind in kinds.items():
            pair = (m, n) if name in _COLUMNS else (n, m)
            found[name] = kind(*pair) if random.random() > 0.1 else 1
        yield found


def _mostly_runs(model: ModelProto, sizes: Iterator[Sizes]) -> bool:
    """Whether onnxruntime runs most of some calls."""
    try:
        runs = session(model)
    except (Fail, InvalidGraph):
        return False
    done = 0
    for number in range(_TRIED):
        try:
            runs.run(None, arguments(model, next(sizes), number))
            done += 1
        except (Fail, InvalidArgument, RuntimeException):
            continue
    return done * 4 >= _TRIED * 3


def arguments(model: ModelProto, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {
        value.name: random.standard_normal(
            [sizes[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
    }


def differences(seed: int, folder: Path) -> list[str]:
    """What differs from onnxruntime in calls of a model, of every third one after it was saved.

    A model may be refused that runs for hardly any sizes; and a call where onnxruntime refuses it,
    or the reference does: of a concat onnxruntime lets empty parts have any shape.
    """
    model, sizes = open_model(seed)
    try:
        reference = session(model)
        program: satura.Compiled | satura.Opened = satura.compile(model, threads=1)
    except (Fail, InvalidGraph, ModelError, UnsupportedError):
        return []
    found: list[str] = []
    for number in range(_CALLS):
        if number == _CALLS // 2 and seed % 3 == 0 and isinstance(program, satura.Compiled):
            program.save(folder / "program")
            program = satura.open(folder / "program", trust=True)
        given = next(sizes)
        inputs = arguments(model, given, number)
        try:
            expected = reference.run(None, inputs)
        except (Fail, InvalidArgument, RuntimeException):
            expected = None
        try:
            results = program.run(inputs)
        except CallError as error:
            if expected is not None and _runs(model, inputs):
                found.append(f"{given}: {error}")
            continue
        for result, other in zip(results.values(), expected or (), strict=bool(expected)):
            if result.shape != other.shape:
                found.append(f"{given}: {result.shape}, not {other.shape}")
            elif relative_error({"y": result}, {"y": other}) > _TOLERANCE:
                found.append(f"{given}: other values")
    return found


def _runs(model: ModelProto, inputs: Mapping[str, Array]) -> bool:
    """Whether the reference implementation runs a call."""
    try:
        evaluator(model).run(None, dict(inputs))
    except Exception:
        return False
    return True


def main(seed: int, count: int) -> int:
    """Print what differs; 1 where there is anything."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for each in range(seed, seed + count):
            try:
                found = differences(each, Path(folder))
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            wrong += bool(found)
            if found:
                print(f"{each}:", *found[:3], printer.to_text(open_model(each)[0]), sep="\n")
    print(f"{wrong} of {count} models differ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*map(int, [*sys.argv[1:], "100"][:2])))
