"""A model with a node whose results have extents that only data decide: compiled in two parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np
from onnx.reference import ReferenceEvaluator

from satura.backend.run.bound import Bound
from satura.pipeline.compiled import Compiled
from satura.pipeline.models import Model
from satura.rewrite.errors import CallError, warn_caller
from satura.rewrite.onnx.checks import declared_inputs
from satura.rewrite.onnx.cut import OpenExtents, cut
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.upgrade import upgrade
from satura.rewrite.program.arguments import as_arrays
from satura.rewrite.program.host_call import HostFallbackWarning
from satura.rewrite.types.tensor_type import Array, TensorType


class CompiledParts(Compiled):
    """A Compiled of what comes before the node, the node on the host, and what comes after it.

    The part after it takes the node's results as inputs, their extents as sizes of their own.
    """

    def __init__(
        self, model: ModelApart, found: OpenExtents, make: Callable[[Model], Compiled]
    ) -> None:
        apart = upgrade(model)
        parts = cut(apart, found.outputs)
        graph = apart.proto.graph
        self._inputs = declared_inputs(graph)
        self._before = make(parts.before)
        self._node = ReferenceEvaluator(parts.node)
        after = parts.after(self._before.outputs)
        self._after = None if after is None else make(after)
        ends = {} if self._after is None else self._after.outputs
        self._open = found.types
        types = {**self._before.outputs, **self._open, **ends}
        self._outputs = {value.name: types[value.name] for value in graph.output}
        warn_caller(
            f"{found}: the node runs on the host, between two programs", HostFallbackWarning
        )

    @property
    def inputs(self) -> dict[str, TensorType]:
        """Types of all inputs by name, in call order."""
        return self._inputs

    @property
    def outputs(self) -> dict[str, TensorType]:
        """Types of the outputs by name."""
        return self._outputs

    @property
    def threads(self) -> int:
        """How many threads a call runs on."""
        return self._before.threads

    def run(
        self, arguments: Mapping[str, object] | Sequence[object] | Array = (), *more: object,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """As `Compiled.run`, but for `out`: extents are not known before the call."""
        if out is not None:
            raise CallError("sizes of results depend on data: run without out")
        given = as_arrays(self._named(arguments, more))
        for name in given.keys() - self.inputs.keys():
            raise CallError(f"there is no input {name!r}; the inputs are {list(self.inputs)}")
        for name in self.inputs.keys() - given.keys():
            raise CallError(f"input {name!r} ({self.inputs[name]}) is missing")
        values = given | self._before.run(_chosen(given, self._before))
        try:
            results = self._node.run(None, {name: values[name] for name in self._node.input_names})
        except Exception as error:
            raise CallError(f"the reference implementation failed: {error}") from error
        for name, result in zip(self._node.output_names, results, strict=True):
            type_, array = self._open[name], np.asarray(result)
            if array.ndim != type_.rank and not array.size:  # of nothing the reference drops axes
                array = array.reshape([dim if isinstance(dim, int) else 0 for dim in type_.shape])
            values[name] = array.astype(type_.dtype.numpy, copy=False)
        if self._after is not None:
            values |= self._after.run(_chosen(values, self._after))
        return {name: values[name] for name in self.outputs}

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """Raises CallError: extents are not known before the call."""
        raise CallError("sizes of results depend on data: use run, not bind")

    @property
    def parts(self) -> tuple[Compiled, ...]:
        """What is compiled: before the node, and after it where anything reads its results."""
        return (self._before,) if self._after is None else (self._before, self._after)

    def __getattr__(self, name: str) -> NoReturn:
        """Say where it is to be found: no program is the whole model."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise CallError(
            "sizes of results depend on data, so there are several programs and not one to look at"
            " or to save: ask each of its `parts`"
        )


def _chosen(values: Mapping[str, Array], part: Compiled) -> dict[str, Array]:
    return {name: values[name] for name in part.inputs}
