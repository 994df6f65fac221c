"""Arguments for a program: seeded random ones, or from a file."""

from __future__ import annotations

import errno
import zipfile
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from satura.rewrite.errors import CallError
from satura.rewrite.program.arguments import unknown_size
from satura.rewrite.program.memory import refuse_beyond_memory, tensor_bytes
from satura.rewrite.system.files import open_regular
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import static
from satura.rewrite.types.sequence_type import SequenceType, member
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes

if TYPE_CHECKING:
    from onnx import ModelProto

    from satura.rewrite.program.program import Program

DEFAULT_SIZE = 16


def random_inputs(
    program: Program, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, Array]:
    """An argument for each input of `program`, see `random_arguments`."""
    return random_arguments(program.input_types, sizes, seed)


def random_inputs_of(
    model: Path | ModelProto, inputs: Mapping[str, TensorType], sizes: Mapping[str, int],
    others: bool = False,
) -> tuple[dict[str, Array], dict[str, int]]:  # fmt: skip
    """An argument for each of the `inputs` that programs of `model` have, by sizes that it
    declares, and the size of each symbol.

    With `others`, sizes that it does not declare are those of another model.
    """
    types, own = types_at(sizes, model, inputs)
    if others:
        symbols = open_sizes(types.values())
        own = {name: size for name, size in own.items() if name in symbols}
    return random_arguments(types, own), full_sizes(types, own)


def random_arguments(
    inputs: Mapping[str, TensorType], sizes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, Array]:
    """An argument for each input: floats are standard normal, integers and bools 0 or 1.

    So small, integers are indices into any table and masks alike. A symbolic size that `sizes`
    does not name is DEFAULT_SIZE; a sequence has two tensors, and an optional has its element.
    Raises CallError for a size that no input has, and where memory cannot hold the arguments.
    """
    given = dict(sizes or {})
    symbols = sorted(open_sizes(inputs.values()))
    unknown = sorted(set(given) - set(symbols))
    if unknown:
        raise unknown_size(unknown[0], symbols)
    full = full_sizes(inputs, given)
    generator = np.random.default_rng(seed)
    plain = {
        own: each
        for name, type_ in inputs.items()
        for own, each in _tensors(name, type_, full).items()
    }
    types = {name: type_.concrete(full_sizes(plain, full)) for name, type_ in plain.items()}
    named = ((f"input {name!r}", type_) for name, type_ in types.items())
    refuse_beyond_memory(sum(map(tensor_bytes, types.values())), named, CallError)
    empty = {
        name: np.zeros(0, np.int64)
        for name, type_ in inputs.items()
        if name not in types and member(name, 0) not in types
    }
    return {name: _draw(generator, type_) for name, type_ in types.items()} | empty


def _tensors(name: str, type_: TensorType, sizes: Mapping[str, int]) -> Mapping[str, TensorType]:
    """The tensors that an input is: itself, or so many of a sequence as `sizes` say."""
    if not isinstance(type_, SequenceType):
        return {name: type_}
    rank = 2 if type_.dims is None else len(type_.dims)
    return type_.members(name, np.full([*map(static, type_.concrete(sizes).shape)], rank))


def full_sizes(inputs: Mapping[str, TensorType], sizes: Mapping[str, int]) -> dict[str, int]:
    """The size of each symbol of these inputs: that of `sizes`, else DEFAULT_SIZE; of a sequence
    two, and of an optional one tensor."""
    counts = {
        name: 2 if type_.is_list else 1
        for type_ in inputs.values()
        if isinstance(type_, SequenceType)
        for name in type_.symbols
    }
    usual = dict.fromkeys(sorted(open_sizes(inputs.values())), DEFAULT_SIZE) | counts
    return {name: sizes.get(name, size) for name, size in usual.items()}


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Sizes as `--size` takes them."""
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def types_at(
    sizes: Mapping[str, int], model: Path | ModelProto, inputs: Mapping[str, TensorType]
) -> tuple[Mapping[str, TensorType], dict[str, int]]:
    """The types of arguments of these `sizes`, and the sizes without those that others decide.

    They are those of the usual program, `inputs`, where it takes such arguments. Else they are
    those that `model` declares: another program may take them.
    """
    symbols = open_sizes(inputs.values())
    own = {name: size for name, size in sizes.items() if name in symbols}
    if len(own) == len(sizes):
        return inputs, own
    from satura.rewrite.onnx.files import read_apart
    from satura.rewrite.onnx.inputs import declared_inputs

    declared = declared_inputs(read_apart(model).proto.graph)
    types = {name: declared.get(name, type_) for name, type_ in inputs.items()}
    equal = {
        str(stated): dim
        for name, type_ in inputs.items()
        for stated, dim in zip(types[name].shape, type_.shape, strict=True)
    }
    own = {str(equal[name]): sizes[name] for name in sizes if name in equal} | own
    own = {name: size for name, size in own.items() if name in symbols}
    full = full_sizes(inputs, own)
    taken = {name: evaluate(dim, full) for name, dim in equal.items()}
    if all(taken.get(name) == size for name, size in sizes.items() if name not in symbols):
        return inputs, own
    usual = {name: taken[name] for name in open_sizes(types.values()) if name in taken}
    return types, {**usual, **sizes}


def _draw(generator: np.random.Generator, type_: TensorType) -> Array:
    shape = tuple(map(static, type_.shape))
    if type_.dtype.is_float:
        return generator.standard_normal(shape).astype(type_.dtype.numpy)
    return generator.integers(0, 2, shape).astype(type_.dtype.numpy)


def parse_sizes(texts: Iterable[str]) -> dict[str, int]:
    """Sizes from texts like `seq=128` or `batch=1,seq=128`. Raises CallError for others."""
    sizes: dict[str, int] = {}
    for text in one_by_one(texts):
        name, separator, value = text.partition("=")
        if not (name and separator and value.isdecimal()):
            raise CallError(f"a size is written NAME=N, as in seq=128; got {text!r}")
        refuse_twice("size", name, sizes)
        sizes[name] = int(value)
    return sizes


def refuse_twice(what: str, name: str, given: Container[str]) -> None:
    """Raise CallError for a name that was `given` before."""
    if name in given:
        raise CallError(f"{what} {name!r} is given twice: say it once")


def one_by_one(texts: Iterable[str]) -> list[str]:
    """What stands between the commas of `texts`."""
    return [part for text in texts for part in text.split(",")]


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file at a path. Raises CallError for what is not a regular one, as a device is."""
    try:
        file = open_regular(path)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise CallError(f"{path}: {error.strerror}") from None
    with file:
        yield file


def read_inputs(path: Path) -> dict[str, Array]:
    """Arguments by name from an .npz file. Raises CallError when it is none, or holds objects."""
    try:
        with _opened(path) as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise CallError(
                    f"{path} is an .npy file of one array: give it by --input NAME=FILE.npy, or"
                    " write an .npz file with numpy.savez"
                )
            return {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError):  # NumPy would advise to trust the file
        raise CallError(
            f"{path} is not an .npz file of plain arrays; write one with numpy.savez"
        ) from None


def read_input(path: Path) -> Array:
    """An argument from an .npy file. Raises CallError when it is none, or holds objects."""
    try:
        with _opened(path) as file:
            array = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CallError(f"{path} is not an .npy file of a plain array: {error}") from None
    if not isinstance(array, np.ndarray):
        raise CallError(f"{path} is not an .npy file; write one with numpy.save")
    return array
