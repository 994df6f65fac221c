"""A chain of parts: programs around a node whose results have extents that only data decide."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import NoReturn

import numpy as np

from satura.backend.plan.compiled import CompiledSchedule
from satura.backend.run.class_report import ClassReport
from satura.backend.run.out import refuse_unfit
from satura.backend.run.part import Part, Planned, Program
from satura.backend.run.signatures import Sizes, values_of
from satura.pipeline.flow import in_python
from satura.pipeline.widened import fitting, of_any_size
from satura.rewrite.errors import CallError, HostFallbackWarning, ModelError, warn_caller
from satura.rewrite.onnx.asked import Asked
from satura.rewrite.onnx.cut import OpenExtents, cut, with_values
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.inlined import inlined
from satura.rewrite.onnx.inputs import declared_inputs
from satura.rewrite.onnx.load import named_sizes
from satura.rewrite.onnx.made_sequences import tensors_among
from satura.rewrite.onnx.order import short_label
from satura.rewrite.onnx.upgrade import upgrade
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import Dim, SymbolicDim, symbols_of
from satura.rewrite.types.shown import kind_of
from satura.rewrite.types.tensor_type import Array, TensorType

_ENTRY = 1 << 12  # bytes of a table's entry


class Chain(Program):
    """What comes before the node, the node on the host, and what comes after it.

    The part after it takes the node's results as inputs, their extents as sizes of their own, and
    what else comes before it with the extents that it mostly has: a call where it has others makes
    that part anew, for sizes of their own. The `parts` are what comes before, and after where there
    is anything; each may be a chain again.
    """

    def __init__(
        self, model: ModelApart, found: OpenExtents,
        make: Callable[[ModelApart], CompiledSchedule], values: Mapping[str, Array],
    ) -> None:  # fmt: skip
        """`values` are those of the inputs that decide shapes, `make` compiles a part.

        Raises Asked where values of other inputs decide shapes in a part.
        """
        whole = upgrade(with_values(model, values))
        apart = inlined(whole) if found.is_inlined else whole
        parts = cut(apart, found.outputs)
        graph = apart.proto.graph
        before = make(parts.before)
        self._cut, self._make, self._passed = parts, make, dict(before.outputs)
        self._results = found.types
        try:
            after = self._after(self._passed)
        except ModelError:
            if not any(map(_takes_numbers, before.programs)):
                raise
            self._passed = {name: of_any_size(each, name) for name, each in self._passed.items()}
            after = self._after(self._passed)
        self.parts = (before, *after)
        node = parts.cut_node
        self.node = short_label(node)
        self._op, self._wanted = node.op_type, [name for name in node.output if name]
        self._ends = [value.name for value in graph.output]
        inputs = declared_inputs(graph)
        self._node = in_python(parts, {**inputs, **self._passed}, make, before.threads)
        types = {**inputs, **self._results}
        for part in self.parts:
            types |= part.outputs
        outputs = {name: types[name] for name in self._names(types)}
        for part in self.parts:
            types |= part.shown[1]
        shown = inputs, {name: types[name] for name in outputs}
        super().__init__(values_of(values, values.keys()), inputs, outputs, shown=shown)
        how = "Python takes its turns" if self._node.bodies else "the node runs on the host"
        warn_caller(f"{found}: {how}, between two programs", HostFallbackWarning)

    def _names(self, values: Container[str]) -> list[str]:
        """What the outputs are called, of which sequences have as many tensors as `values` have."""
        return tensors_among(self._ends, values)

    def _after(self, passed: Mapping[str, TensorType]) -> tuple[CompiledSchedule, ...]:
        """The part after the node, if there is one, for what is passed to it of these types."""
        rest = self._cut.after(passed)
        try:
            return () if rest is None else (self._make(rest),)
        except Asked as asked:
            raise Asked(self._cut.deciding(asked.names)) from None

    @property
    def _all(self) -> tuple[CompiledSchedule, ...]:
        """The parts, and what the node has inside."""
        return (*self.parts, *self._node.bodies)

    def __str__(self) -> str:
        return f"the node between two programs ('{self._op}')"

    def _made(self, sizes: Sizes, progress: object = None) -> Planned:
        return Planned(self.run, self.bind, _ENTRY)

    def prepare(self, sizes: Sizes) -> None:
        """Raise CallError: each part has sizes of its own."""
        raise CallError(
            "sizes of results depend on data, so there are several programs and not one to prepare:"
            " ask each of its `parts`"
        )

    @property
    def size(self) -> int:
        return super().size + sum(program.size for part in self._all for program in part.programs)

    @property
    def classes(self) -> list[ClassReport]:
        return [report for part in self._all for report in part.classes]

    def release(self) -> None:
        for part in self._all:
            part.release()

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Outputs by name; those that `out` names are copied to its arrays. Raises CallError."""
        before = self.parts[0]
        passed = before.run(_chosen(arguments, before))
        values = dict(arguments) | passed
        try:
            results = self._node.run(values)
        except Exception as error:
            read = (name for name in self._node.reads if name in values)
            given = ", ".join(f"'{name}' {kind_of(values[name])}" for name in read)
            raise CallError(
                f"node {self.node}, which runs in Python, does not take {given}: {error}"
            ) from error
        sizes = named_sizes(self.inputs, arguments)
        for name, result in zip(self._wanted, results, strict=True):
            type_, array = self._results[name], np.asarray(result)
            if array.ndim != type_.rank and not array.size:  # of nothing the reference drops axes
                array = array.reshape([_extent(dim, sizes) for dim in type_.shape])
            values[name] = array.astype(type_.dtype.numpy, copy=False)
        for part in self._fitting(values, passed):
            values |= part.run(_chosen(values, part))
        outputs = {name: values[name] for name in self._names(values)}
        return outputs if out is None else _copied(outputs, out, list(arguments.values()))

    def _fitting(self, values: Mapping[str, Array], passed: Iterable[str]) -> tuple[Part, ...]:
        """The part after the node, which takes all `values` as they are, and names `passed` to it.

        Of a sequence there may be more tensors than before, or fewer.
        """
        sizes = named_sizes({**self.inputs, **self._results}, values)
        with self._making:
            types = fitting(self._passed, passed, values, sizes)
            if types != self._passed:
                self.parts, self._passed = (self.parts[0], *self._after(types)), types
            return self.parts[1:]

    def bind(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> NoReturn:
        """Raise CallError: extents are not known before the call."""
        raise CallError("sizes of results depend on data: use run, not bind")


def _takes_numbers(program: Program) -> bool:
    """Whether a program is for numbers where the model has open sizes: those of a call may be
    others, and what it computes has other extents then."""
    declared = program.declared or {}
    return any(
        isinstance(stated, SymbolicDim) and isinstance(dim, int)
        for name, type_ in program.inputs.items() if name in declared
        for stated, dim in zip(declared[name].shape, type_.shape, strict=True)
    )  # fmt: skip


def _extent(dim: Dim, sizes: Mapping[str, int]) -> int:
    """An extent of a result without elements: 0 where it is not known."""
    return evaluate(dim, sizes) if symbols_of([dim]) <= sizes.keys() else 0


def _chosen(values: Mapping[str, Array], part: Part) -> dict[str, Array]:
    return {name: values[name] for name in part.inputs}


def _copied(
    outputs: dict[str, Array], out: Mapping[str, Array], inputs: list[Array]
) -> dict[str, Array]:
    """The outputs, in the arrays of `out` where there are such. Raises CallError for unfit ones."""
    refuse_unfit({name: (x.dtype, x.shape) for name, x in outputs.items()}, out, inputs)
    for name, array in out.items():
        np.copyto(array, outputs[name])
    return outputs | dict(out)
