"""A model whose inputs decide shapes: compiled for the values of these inputs, when they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar

from satura.backend.plan.plans import Elsewhere
from satura.backend.run.bound import Bound
from satura.pipeline.compiled import Compiled
from satura.pipeline.cut import CompiledParts
from satura.pipeline.models import Model
from satura.rewrite.errors import CallError, ModelError, UnsupportedError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.onnx.asked import Asked
from satura.rewrite.onnx.checks import declared_inputs
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.files import ModelApart, read_apart
from satura.rewrite.onnx.load import load_at, load_for
from satura.rewrite.program.arguments import as_arrays
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, TensorType

MOST_PROGRAMS = 16
"""How many programs are kept for different values; the one that was longest not called goes."""

Given = TypeVar("Given")
_Key = tuple[tuple[str, str, tuple[int, ...], bytes], ...]


class Specialised(Compiled):
    """A Compiled for every values of the inputs that decide shapes.

    The first call with given values loads, rewrites and compiles the model for them; later ones
    find the program by the values. What a program has (`program`, `statistics`, `report`) is asked
    of `for_values(...)`.
    """

    def __init__(
        self, model: ModelApart, asked: Asked, make: Callable[[Program], Compiled], threads: int
    ) -> None:
        self._model = model
        self._deciding = asked.names
        self._make = make
        self._threads = threads
        self._programs: dict[_Key, Compiled] = {}

    @property
    def deciding(self) -> tuple[str, ...]:
        """The inputs that are known to decide shapes, in call order."""
        return tuple(name for name in self.inputs if name in self._deciding)

    def for_values(self, values: Mapping[str, object]) -> Compiled:
        """The program for these values of the inputs that decide shapes, without these inputs.

        Other inputs are left aside. Raises CallError where the value of one is missing.
        """
        arrays = as_arrays(values)
        key = self._key(arrays)
        found = None if key is None else self._programs.pop(key, None)
        if key is None or found is None:
            program, names = load_for(self._model, arrays, self._deciding)
            if names != self._deciding:  # these values led where others of them are needed
                self._deciding, self._programs = names, {}
            found = self._make(program)
            key = self._key(arrays)
        assert key is not None
        programs = self._programs
        programs[key] = found  # at the end: the last that was called
        for oldest in list(programs)[:-MOST_PROGRAMS]:
            programs.pop(oldest, None)
        return found

    def _key(self, arrays: Mapping[str, Array]) -> _Key | None:
        """What tells values from others; None where one is missing."""
        if not self._deciding <= arrays.keys():
            return None
        chosen = ((name, arrays[name]) for name in sorted(self._deciding))
        return tuple((name, x.dtype.str, x.shape, x.tobytes()) for name, x in chosen)

    @property
    def inputs(self) -> dict[str, TensorType]:
        """Types of all inputs by name, in call order."""
        return declared_inputs(self._model.proto.graph)

    @property
    def threads(self) -> int:
        """How many threads a call runs on."""
        return self._threads

    def run(
        self, arguments: Mapping[str, object] | Sequence[object] | Array = (), *more: object,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """As `Compiled.run`; the first call with new values of the deciding inputs compiles."""
        given = dict(self._named(arguments, more))
        special = self.for_values(given)
        return special.run(self._others(given), out=out)

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """As `Compiled.bind`, on the program for the values that deciding inputs have now."""
        special = self.for_values(arguments)
        return special.bind(self._others(arguments), out)

    def __call__(self, *arguments: object, **named: object) -> Array | tuple[Array, ...]:
        """As `Compiled.__call__`; the first call with new values compiles."""
        every = self._mixed(arguments, named)
        special = self.for_values(every)
        return special(**self._others(every))

    def _others(self, arguments: Mapping[str, Given]) -> dict[str, Given]:
        return {name: value for name, value in arguments.items() if name not in self._deciding}

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {type_}" for name, type_ in self.inputs.items())
        return (
            f"<satura.Compiled ({inputs}) for each value of {', '.join(self.deciding)},"
            f" threads={self.threads}>"
        )

    def __getattr__(self, name: str) -> NoReturn:
        """Say where it is to be found: a program is known only for values."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise CallError(
            f"the values of {', '.join(self.deciding)} decide shapes, so there is a program only"
            " for values of them: ask for_values({...}), or load(model, values={...}), or give"
            f" --value {self.deciding[0]}=... on the command line"
        )


def elsewhere(
    model: Model, source: Program, search: Callable[[Program], Schedule]
) -> Elsewhere | None:
    """What gives the schedule for sizes that the program `source` of `model` excludes.

    Those are sizes that do not fulfil its conditions, or differ where it takes them for equal. None
    where it excludes none, or where nothing but a program is given.
    """
    if isinstance(model, Program):
        return None
    apart = read_apart(model)
    declared = declared_inputs(apart.proto.graph)
    nodes = (source.nodes[index] for index in source.inputs)
    if not source.conditions and declared == {node.input_name: node.type for node in nodes}:
        return None

    def at(sizes: Mapping[str, int]) -> Schedule | None:
        try:
            return search(load_at(apart, sizes))
        except (ModelError, UnsupportedError):
            return None  # what excludes them says why

    return Elsewhere(declared, at)


def compiled_or_specialised(
    model: Model, make: Callable[[Model], Compiled], threads: int
) -> Compiled:
    """What `make` makes of the model, which is read once.

    Where inputs decide shapes that is for their values, and where data do it is of two parts.
    """
    if isinstance(model, Program):
        return make(model)
    apart = read_apart(model)
    try:
        return make(apart)
    except Asked as asked:
        return Specialised(apart, asked, make, threads)
    except OpenExtents as found:
        return CompiledParts(
            apart, found, lambda part: compiled_or_specialised(part, make, threads)
        )
