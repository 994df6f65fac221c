"""Models as the verbs take them: files, bytes, parsed models, or programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

from satura.rewrite.errors import CallError, brief
from satura.rewrite.program.arguments import as_arrays
from satura.rewrite.program.program import Program
from satura.rewrite.system.interrupts import import_whole

if TYPE_CHECKING:
    from onnx import ModelProto

    from satura.rewrite.onnx.files import ModelApart
    from satura.rewrite.types.stored import StoredFile

Model: TypeAlias = "str | Path | bytes | ModelProto | ModelApart | Program"
"""A path to an ONNX file, its bytes, the parsed model, or a program."""


def load(
    model: Model, values: Mapping[str, object] | None = None, asks: bool = False,
    usual: Mapping[str, int] = {},
) -> Program:  # fmt: skip
    """The program of an ONNX model; a program is itself.

    Inputs in `values` become constants. What must be a number, and only sizes decide, is that at
    the `usual` ones. With `asks`, Asked is raised where the values of others decide shapes. Raises
    ModelError for a file that cannot be read, UnsupportedError for what cannot be run.
    """
    if isinstance(model, Program):
        if values:
            raise CallError("a program has its constants already: give values with the model")
        return model
    import_whole("satura.rewrite.onnx.load")
    from satura.rewrite.onnx.load import load as load_onnx
    from satura.rewrite.onnx.load import load_asking

    return (load_asking if asks else load_onnx)(model, as_arrays(values or {}), usual)


@overload
def open_inputs(model: Model, names: Iterable[str]) -> Model: ...


@overload
def open_inputs(model: StoredFile, names: Iterable[str]) -> ModelApart | StoredFile: ...


def open_inputs(model: Model | StoredFile, names: Iterable[str]) -> Model | StoredFile:
    """`model` where the inputs of these names are given by each call, though it has initializers
    for them. Raises CallError for names of no input, and what are no names."""
    chosen = input_names(names)
    if not chosen:
        return model
    if isinstance(model, Program):
        raise CallError(
            f"the inputs of a program are {[*model.input_types]}: name others when you load it"
        )
    import_whole("satura.rewrite.onnx.defaults")
    from satura.rewrite.onnx.defaults import with_inputs
    from satura.rewrite.onnx.files import read_apart

    return with_inputs(read_apart(model), chosen)


def input_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of inputs, each once and in order. Raises CallError for what are no names."""
    are_several = isinstance(names, Iterable) and not isinstance(names, str)
    found = tuple(names) if are_several else ()
    if not are_several or not all(isinstance(name, str) for name in found):
        raise CallError(f"inputs are names in a list, as in inputs=['w'], not {brief(names)}")
    return tuple(sorted(set(found)))


def load_fitting(
    model: Model, arguments: Mapping[str, object]
) -> tuple[Program, Mapping[int, str]]:
    """The program of an ONNX model at the sizes of these arguments, and per node of it the ONNX
    node that it was made for; a program is itself.

    Raises as `load` does, and CallError where no program runs at these sizes.
    """
    if isinstance(model, Program):
        return model, {}
    import_whole("satura.rewrite.onnx.load")
    from satura.rewrite.onnx.load import load_fitting as load_onnx

    return load_onnx(model, as_arrays(arguments))
