"""ONNX in: a model file becomes a Program of canonical ops.

Every node is lowered by its own definition; nothing is folded, cancelled or simplified here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

from onnx import ModelProto

from satura.rewrite.errors import (
    CallError,
    ModelError,
    RefusedSizesError,
    SaturaError,
    UnsupportedError,
    advice,
)
from satura.rewrite.onnx.asked import Asked, bind_inputs
from satura.rewrite.onnx.calls import Call
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.defaults import without_defaults
from satura.rewrite.onnx.files import ModelApart, read_apart
from satura.rewrite.onnx.importer import Importer
from satura.rewrite.onnx.inlined import inlined
from satura.rewrite.onnx.inner_graphs import check_bodies
from satura.rewrite.onnx.inputs import declared_inputs, stated_extents
from satura.rewrite.onnx.lower.tensors import SameSize, Tensors
from satura.rewrite.onnx.upgrade import upgrade
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import evaluate, substitute
from satura.rewrite.types.dims import Dim, SymbolicDim, symbol, symbols_of
from satura.rewrite.types.size_condition import SizeCondition, sizes_text
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes

_USUAL_SIZE = 16
_OTHER_SIZES = (64, 256, 1, 2, 3, 4, 6, 8, 12, 32)
_MOST_BROADCASTS = 8  # that are tried, the last ones first, where no program has equal sizes
_IN_PARTS = "satura.compile and `satura run` run such a model in parts"
_FOR_VALUES = "satura.compile and `satura run` compile such a model for the values of each call"
_HOW_CHOSEN = (
    "sizes decide what has to be a number here, and none of the usual ones fits: name yours, as in"
)

Source = str | Path | bytes | ModelProto | ModelApart


def load(
    model: Source, values: Mapping[str, Array] | None = None, usual: Mapping[str, int] = {}
) -> Program:
    """The program of an ONNX model, given as a path, its bytes, or a ModelProto.

    Raises ModelError for a model that is broken, UnsupportedError for one that uses something
    satura cannot run; both name the node. Warns with HostFallbackWarning for nodes that only the
    reference implementation of the onnx package can run.

    Inputs whose `values` are given are constants of the program, as are those with an initializer,
    which the model has for a default. What must be a number, and only
    sizes decide, is that at the `usual` ones, or where each other is 16. Raises CallError where
    values are of no inputs or of other types.
    """
    return _Import(values or {}, usual).of(model)[0]


def load_asking(
    model: Source, values: Mapping[str, Array] | None = None, usual: Mapping[str, int] = {}
) -> Program:
    """As `load`, but raises Asked where the values of inputs decide a shape and are not given."""
    return _Import(values or {}, usual, asks=True).of(model)[0]


def load_for(
    model: ModelProto | ModelApart,
    arguments: Mapping[str, Array],
    names: frozenset[str] = frozenset(),
    usual: Mapping[str, int] = {},
) -> tuple[Program, frozenset[str]]:
    """The program for these arguments of the inputs that decide shapes, and which those are.

    They are `names`, and those without which the model cannot be loaded for these arguments. What
    must be a number is that at the sizes of the arguments, or else at the `usual` ones. Raises
    CallError where the argument of one is missing.
    """
    found = model if isinstance(model, ModelApart) else read_apart(model)
    likely = {**usual, **named_sizes(declared_inputs(found.proto.graph), arguments)}
    while True:
        for name in sorted(names - arguments.keys()):
            raise CallError(f"input {name!r}, which decides shapes, is missing")
        try:
            values = {name: arguments[name] for name in names}
            return _Import(values, likely, asks=True).of(found)[0], names
        except Asked as asked:
            names |= asked.names


def load_fitting(
    model: Source, arguments: Mapping[str, Array], values: Mapping[str, Array] | None = None
) -> tuple[Program, dict[int, str]]:
    """The program of a model that runs at the sizes of these arguments, and per node of it the ONNX
    node that it was made for. An argument takes the place of an initializer.

    Raises as `load` does, and CallError where they do not fit the inputs, or no program runs.
    """
    found = without_defaults(read_apart(model), arguments)
    declared, _ = bind_inputs(declared_inputs(found.proto.graph), values or {})
    program, importer = _Import(values or {}, named_sizes(declared, arguments)).of(found)
    usual = program, importer.names(program)
    plain = {name: type_ for name, type_ in declared.items() if isinstance(type_, TensorType)}
    types = program.input_types
    if plain.keys() != types.keys() or (plain == types and not program.conditions):
        return usual  # for all sizes
    sizes = sizes_of(plain, arguments)
    failed = [each for each in program.conditions if not each.holds(sizes)]
    is_refused = failed and all(each.is_of_extent for each in failed)
    if is_refused or not _excluding(program, plain, sizes):
        return usual
    try:
        program, importer = _import_at(found, sizes, types, values)
    except ModelError as error:
        shown = sizes_text(sizes)
        raise CallError(f"the model does not run where {shown}: {error}") from error
    return program, importer.names(program)


def named_sizes(types: Mapping[str, TensorType], arguments: Mapping[str, Array]) -> dict[str, int]:
    """The sizes that are extents of arguments."""
    pairs = (
        pair
        for name, type_ in types.items()
        if name in arguments and isinstance(type_, TensorType)
        for pair in zip(type_.shape, arguments[name].shape, strict=False)
    )
    return {dim.name: size for dim, size in pairs if isinstance(dim, SymbolicDim) and dim.name}


def load_at(
    model: ModelApart, sizes: Mapping[str, int], types: Mapping[str, TensorType],
    values: Mapping[str, Array] | None = None, takes_turns: bool = False,
) -> Program:  # fmt: skip
    """The program of a model that runs at these sizes, at which one with inputs of `types` does
    not.

    Fixed are the sizes because of which other programs do not run; the others stay open, and what
    these types take for them is taken for them here, too. Raises as `load` does, and OpenExtents
    where it `takes_turns` and a node has many steps, or a branch that does not run, at these sizes:
    Python takes them then.
    """
    return _import_at(model, sizes, types, values, takes_turns)[0]


def _import_at(
    model: ModelApart, sizes: Mapping[str, int], types: Mapping[str, TensorType],
    values: Mapping[str, Array] | None = None, takes_turns: bool = False,
) -> tuple[Program, Importer]:  # fmt: skip
    declared, _ = bind_inputs(declared_inputs(model.proto.graph), values or {})
    taken = _taken_for_others(declared, types, sizes)
    every = {**sizes, **{name: evaluate(dim, sizes) for name, dim in taken.items()}}
    fixed: dict[str, int] = {}
    has_chosen = False
    while True:
        known = {**fixed, **{name: substitute(dim, fixed) for name, dim in taken.items()}}
        try:
            how = _Import(values or {}, every, sizes=known, clamps=True, takes_turns=takes_turns)
            program, importer = how.of(model)
            has_chosen |= importer.build.has_chosen
            excluding = _excluding(program, declared, every)
        except OpenExtents as found:
            if found.is_long or fixed.keys() == sizes.keys():
                raise (_of_any_size(found) if known else found) from None
            excluding = {*sizes}
        except (ModelError, UnsupportedError) as error:
            if fixed.keys() == sizes.keys():
                if has_chosen and isinstance(error, ModelError):
                    raise RefusedSizesError(str(error)) from None
                raise
            excluding = {*sizes}
        behind = symbols_of(taken.get(name, symbol(name)) for name in excluding)
        names = (behind & sizes.keys()) - fixed.keys()
        if not names:
            return program, importer
        fixed |= {name: sizes[name] for name in names}


def _taken_for_others(
    declared: Mapping[str, TensorType], types: Mapping[str, TensorType], sizes: Mapping[str, int]
) -> dict[str, Dim]:
    """What `types` have for `declared` sizes that are not among `sizes`."""
    pairs = (
        pair
        for name, type_ in types.items()
        for pair in zip(declared[name].shape, type_.shape, strict=True)
    )
    return {
        dim.name: other
        for dim, other in pairs
        if isinstance(dim, SymbolicDim) and dim.name is not None and dim.name not in sizes
    }


def _excluding(
    program: Program, declared: Mapping[str, TensorType], sizes: Mapping[str, int]
) -> set[str]:
    """The sizes because of which a program does not run at `sizes`; `declared` are the types that
    its inputs have in the model."""
    excluding: set[str] = set()
    for index in program.inputs:
        node = program.nodes[index]
        for pair in zip(declared[node.input_name].shape, node.type.shape, strict=True):
            if evaluate(pair[0], sizes) != evaluate(pair[1], sizes):
                excluding |= symbols_of(pair)
    for condition in program.conditions:
        if not condition.holds(sizes):
            excluding |= symbols_of([condition.left, condition.right])
    return excluding


def load_with_names(model: Source) -> tuple[Program, dict[int, str]]:
    """The program of an ONNX model, and per node of it the ONNX node that it was made for."""
    program, importer = _Import().of(model)
    return program, importer.names(program)


def load_with_calls(model: Source, opset: int) -> tuple[Program, tuple[Call, ...]]:
    """The program of an ONNX model, and its nodes that became many, as they are in `opset`.

    A newer opset of the model takes its place. Slices are clamped for all sizes.
    """
    program, importer = _Import(for_all_sizes=True).of(model)
    return program, importer.calls(program, opset)


@dataclass(frozen=True)
class _Import:
    """How a model is imported; see `load`, `load_at` and `load_with_calls`."""

    values: Mapping[str, Array] = field(default_factory=dict)
    likely: Mapping[str, int] = field(default_factory=dict)
    asks: bool = False
    sizes: Mapping[str, Dim] = field(default_factory=dict)
    for_all_sizes: bool = False
    clamps: bool = False
    takes_turns: bool = False
    leaves_out: bool = False

    def of(self, model: Source) -> tuple[Program, Importer]:
        """The program of a model, whose functions are inlined where extents in them are open."""
        try:
            return self._of(model)
        except OpenExtents as error:
            if not self.asks and not error.is_long:
                error.args = (f"{error}; {self._advice(model)}",)
            raise

    def _advice(self, model: Source) -> str:
        """How a model runs that has no single program."""
        try:
            replace(self, asks=True).of(model)
        except Asked:
            return _FOR_VALUES
        except SaturaError:
            pass
        return _IN_PARTS

    def _of(self, model: Source) -> tuple[Program, Importer]:
        try:
            found = model if isinstance(model, ModelApart) else read_apart(model)
            check_bodies(found.proto)
            apart = upgrade(without_defaults(found, self.values))
            try:
                return self._at_some_sizes(apart)
            except OpenExtents as error:
                if error.outputs:
                    raise
                flat = _inlined(apart, error)
            try:
                return self._at_some_sizes(flat)
            except OpenExtents as error:
                if not error.outputs:
                    raise UnsupportedError(str(error)) from None
                raise OpenExtents(str(error), error.outputs, True, error.is_long) from None
        except RecursionError:
            raise ModelError("the model's graphs are nested too deep") from None

    def _at_some_sizes(self, apart: ModelApart) -> tuple[Program, Importer]:
        """The program, at other sizes where the usual ones decide what a number is, and fail."""
        refused: ModelError | UnsupportedError | None = None
        reasons: set[str] = set()
        for usual in dict.fromkeys(
            (_USUAL_SIZE, *_OTHER_SIZES, *stated_extents(apart.proto.graph))
        ):
            try:
                return self._with_equal_sizes(apart, usual, {} if refused else self.likely)
            except OpenExtents:
                raise
            except _ChosenSizes as chosen:
                refused = refused or chosen.refused
                reasons.add(str(chosen))
            except (ModelError, UnsupportedError):
                if refused is None:
                    raise
        assert refused is not None
        if not self.leaves_out:  # at no size does all of it run here
            try:
                return replace(self, leaves_out=True)._at_some_sizes(apart)
            except OpenExtents:
                raise
            except (ModelError, UnsupportedError):
                pass
        if len(reasons) == 1:  # sizes do not matter
            raise refused from None
        name = min(open_sizes(declared_inputs(apart.proto.graph).values()), default="n")
        given = quote(f"{name}=6"), f"satura.compile(model, dims={{{name!r}: 6}})"
        refused.args = (f"{refused}; {_HOW_CHOSEN} {advice(given[1], f'--dim {given[0]}')}",)
        raise refused from None

    def _with_equal_sizes(
        self, apart: ModelApart, usual: int, likely: Mapping[str, int]
    ) -> tuple[Program, Importer]:
        """The program, in which sizes are equal that must be, and others that may broadcast, unless
        one of these is 1."""
        known = dict(self.sizes)
        taken: dict[SizeCondition, None] = {}
        takes_turns = self.takes_turns and bool(likely)  # of so many steps as the call has
        has_chosen, all_count = False, True
        choices: list[_Choice] = []
        refused: Exception | None = None
        fixed: dict[str, str] = {}
        while True:
            build = Tensors(self.for_all_sizes, usual, likely, self.clamps)
            importer = Importer(
                apart, self.values, self.asks, known, build, takes_turns, not self.sizes,
                self.leaves_out,
            )  # fmt: skip
            try:
                program = importer.program()
                build.has_chosen |= has_chosen
                return replace(program, taken=(*(taken | build.taken),)), importer
            except SameSize as same:
                has_chosen |= build.has_chosen
                all_count &= same.it_counts
                if same.may_broadcast and refused is None:
                    choices += _broadcasts(same, known, taken)
                taken = taken if same.taken is None else {**taken, same.taken: None}
                known = _with_size(known, same.name, same.dim)
                if isinstance(same.dim, int) and not build.has_chosen:
                    fixed[same.name] = f"{same.name} is {same.dim} here, as {same.place} needs"
            except OpenExtents as found:
                if found.outputs and not all_count:
                    raise _of_any_size(found) from None
                if found.outputs and (has_chosen or build.has_chosen):
                    raise self._for_other_sizes(apart, found) from None
                if found.outputs and (taken or build.taken):
                    raise _where_none_is_equal(found, [*taken, *build.taken]) from None
                raise
            except (ModelError, UnsupportedError) as error:
                if refused is None:
                    error.args = ("; ".join((str(error), *fixed.values())),)
                    is_chosen = has_chosen or build.has_chosen
                    refused = _ChosenSizes(error) if is_chosen else error
                    del choices[:-_MOST_BROADCASTS]
                if not choices:
                    raise refused from None
                known, taken = choices.pop()

    def _for_other_sizes(self, apart: ModelApart, found: OpenExtents) -> OpenExtents:
        """What was found where numbers were taken for sizes, with types that hold at all sizes."""
        outputs = _of_any_size(found).outputs
        try:
            replace(self, for_all_sizes=True)._with_equal_sizes(apart, _USUAL_SIZE, {})
        except OpenExtents as other:
            if other.is_typed and other.outputs.keys() == outputs.keys():
                outputs = other.outputs
        except (ModelError, UnsupportedError):
            pass  # before it there is a node that needs numbers
        return found.with_outputs(outputs)


_Choice = tuple[dict[str, Dim], dict[SizeCondition, None]]
"""What sizes are, and which sizes were assumed equal although they may broadcast."""


def _broadcasts(
    same: SameSize, known: dict[str, Dim], taken: dict[SizeCondition, None]
) -> list[_Choice]:
    """What there is beside two equal sizes: one of them is 1."""
    names = [same.name, same.dim.name if isinstance(same.dim, SymbolicDim) else None]
    return [(_with_size(known, name, 1), taken) for name in names if name is not None]


def _with_size(known: Mapping[str, Dim], name: str, dim: Dim) -> dict[str, Dim]:
    """The sizes that are `known`, and that of `name`."""
    return {each: substitute(size, {name: dim}) for each, size in known.items()} | {name: dim}


def _where_none_is_equal(found: OpenExtents, taken: Iterable[SizeCondition]) -> OpenExtents:
    """What was found where sizes were assumed equal, with types that hold where they differ."""
    numbers = {dim for each in taken for dim in (each.left, each.right) if isinstance(dim, int)}
    return found.opened(lambda number: number not in numbers)


def _of_any_size(found: OpenExtents) -> OpenExtents:
    """What was found, with a size of its own for each extent."""
    return found.opened(lambda _: False)


class _ChosenSizes(Exception):
    """A model was refused after numbers were taken for sizes."""

    def __init__(self, refused: ModelError | UnsupportedError) -> None:
        super().__init__(str(refused))
        self.refused = refused


def _inlined(apart: ModelApart, error: OpenExtents) -> ModelApart:
    try:
        return inlined(apart)
    except UnsupportedError as why:
        raise UnsupportedError(f"{error}; it cannot be inlined: {why}") from None
