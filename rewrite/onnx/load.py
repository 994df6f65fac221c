"""ONNX in: a model file becomes a Program of canonical ops.

Every node is lowered by its own definition; nothing is folded, cancelled or simplified here.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto

from satura.rewrite.errors import (
    CallError,
    ModelError,
    RefusedSizesError,
    UnsupportedError,
)
from satura.rewrite.onnx.asked import Asked, bind_inputs
from satura.rewrite.onnx.calls import Call
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.defaults import without_defaults
from satura.rewrite.onnx.files import ModelApart, read_apart
from satura.rewrite.onnx.import_at_sizes import Import, Source, of_any_size
from satura.rewrite.onnx.importer import Importer
from satura.rewrite.onnx.inputs import declared_inputs
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import evaluate, substitute
from satura.rewrite.types.dims import Dim, SymbolicDim, symbol, symbols_of
from satura.rewrite.types.size_condition import sizes_text
from satura.rewrite.types.tensor_type import Array, TensorType


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
    return Import(values or {}, usual).of(model)[0]


def load_asking(
    model: Source, values: Mapping[str, Array] | None = None, usual: Mapping[str, int] = {}
) -> Program:
    """As `load`, but raises Asked where the values of inputs decide a shape and are not given."""
    return Import(values or {}, usual, asks=True).of(model)[0]


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
            return Import(values, likely, asks=True).of(found)[0], names
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
    program, importer = Import(values or {}, named_sizes(declared, arguments)).of(found)
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
            how = Import(values or {}, every, sizes=known, clamps=True, takes_turns=takes_turns)
            program, importer = how.of(model)
            has_chosen |= importer.build.has_chosen
            excluding = _excluding(program, declared, every)
        except OpenExtents as found:
            if found.is_long or fixed.keys() == sizes.keys():
                raise (of_any_size(found) if known else found) from None
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
    program, importer = Import().of(model)
    return program, importer.names(program)


def load_with_calls(model: Source, opset: int) -> tuple[Program, tuple[Call, ...]]:
    """The program of an ONNX model, and its nodes that became many, as they are in `opset`.

    A newer opset of the model takes its place. Slices are clamped for all sizes.
    """
    program, importer = Import(for_all_sizes=True).of(model)
    return program, importer.calls(program, opset)
