"""Arguments of a call: as arrays, and against the types of the inputs."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from satura.rewrite.errors import CallError, advice, brief
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import Dim, SymbolicDim, symbols_of
from satura.rewrite.types.sequence_type import ABSENT, SequenceType, member
from satura.rewrite.types.shown import refused_kind
from satura.rewrite.types.tensor_type import Array, DType, TensorType

if TYPE_CHECKING:
    from pathlib import Path

_WIDE = 4  # bytes of a float that NumPy's users hold as such, not as bits


def check_named(given: object, what: str) -> None:
    """Raise CallError for what is not something by name."""
    if not isinstance(given, (dict, Mapping)):  # a dict is seen at once
        raise CallError(f"{what} are a dict by name, not {type(given).__name__}")


def check_flags(**flags: object) -> None:
    """Raise CallError for what is neither True nor False: most texts would mean True."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise CallError(f"{name} is True or False, not {brief(flag)}")


def unknown_size(name: str, known: Iterable[str]) -> CallError:
    """The error of a size that is not among the `known` ones of a model."""
    names = sorted(known)
    there = f"; its sizes are {names}" if names else ": all of its sizes are fixed"
    return CallError(f"there is no size {name!r} in the model{there}")


def as_path(path: object) -> Path:
    """A path as it may be given. Raises CallError for what is none."""
    from pathlib import Path  # slow to import, and nothing that opens a saved program needs it

    return Path(path_text(path))


def path_text(path: object) -> str:
    """The text of a path as it may be given. Raises CallError for what is none."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise CallError(f"a path is text or a Path, not {type(path).__name__}")
    if not text:
        raise CallError("a path is empty: name a file")
    return text


def as_number(value: object) -> int | None:
    """An integer of Python's, NumPy's or another library; None for all else, True and False."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # it says so
    except TypeError:
        return None


def refuse_masked(name: str, value: object) -> None:
    """Raise CallError for an array of which elements are masked: kernels would read them."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise CallError(f"input {name!r} is masked: fill it, as by numpy.ma.filled")


def as_arrays(arguments: Mapping[str, object]) -> dict[str, Array]:
    """The arguments as arrays, numbers and nested lists included. Raises CallError."""
    check_named(arguments, "arguments")
    arrays: dict[str, Array] = {}
    for name, value in arguments.items():
        if value is None:
            raise CallError(f"input {name!r} is missing: it is None")
        try:
            refuse_masked(name, value)
            array = np.asarray(value)
            if array.dtype.hasobject and isinstance(value, Mapping):
                raise CallError(f"input {name!r} is a {type(value).__name__}, and not an array")
            arrays[name] = array
        except (TypeError, ValueError) as error:
            raise CallError(f"input {name!r} is not an array: {error}") from error
    return arrays


def with_members(
    arguments: Mapping[str, object], types: Mapping[str, TensorType]
) -> dict[str, object]:
    """The arguments where lists for sequences, and what is given for optionals, are their ranks and
    the tensors by name; these may be given alone. Raises CallError for what is not by name."""
    check_named(arguments, "arguments")
    result = dict(arguments)
    for name, type_ in types.items():
        if not isinstance(type_, SequenceType):
            continue
        given = result.get(name, [*_tensors_by_name(name, arguments)])
        if name not in result and given == []:
            continue  # it is missing
        if given is None:
            result[name] = np.array([ABSENT])
        elif isinstance(given, list | tuple) or not type_.is_list:
            tensors = [*map(np.asarray, given if isinstance(given, list | tuple) else [given])]
            result[name] = np.array([each.ndim for each in tensors], np.int64)
            result |= {member(name, at): each for at, each in enumerate(tensors)}
    return result


def _tensors_by_name(name: str, arguments: Mapping[str, object]) -> Iterator[object]:
    """The tensors `name[0]`, `name[1]`, …, as far as there are some."""
    at = 0
    while (own := member(name, at)) in arguments:
        yield arguments[own]
        at += 1


def sizes_of(types: Mapping[str, TensorType], arguments: Mapping[str, Array]) -> dict[str, int]:
    """Sizes of the symbols of inputs of these types, from the shapes of `arguments`.

    Raises CallError for a missing or unknown argument, a wrong dtype, rank or extent, and for
    extents that contradict each other.
    """
    if unknown := sorted(set(arguments) - set(types)):
        raise _unknown(unknown[0], types, [name for name in types if name not in arguments])
    sizes: dict[str, int] = {}
    first: dict[str, str] = {}
    pending: list[tuple[str, int, Dim, int]] = []
    for name, expected in types.items():
        if name not in arguments:
            raise CallError(f"input {name!r} ({expected}) is missing")
        array = arguments[name]
        if array.dtype != expected.dtype.numpy or array.ndim != expected.rank:
            shown = refused_kind(array)
            if array.dtype.isnative and array.ndim == expected.rank:
                shown += f": {_how_to_convert(array, expected.dtype)}"
            raise CallError(f"input {name!r} must be {expected}, not {shown}")
        for axis, (dim, extent) in enumerate(zip(expected.shape, array.shape, strict=True)):
            if isinstance(dim, SymbolicDim) and dim.name is not None:
                where = first.setdefault(dim.name, f"axis {axis} of input {name!r}")
                known = sizes.setdefault(dim.name, extent)
                if known != extent:
                    raise CallError(
                        f"input {name!r}: axis {axis} is {extent}, but must be {known} as {where}"
                        f" is: the program has one size for both, {dim}"
                    )
            else:
                pending.append((name, axis, dim, extent))
    for name, axis, dim, extent in pending:
        if (value := evaluate(dim, sizes)) != extent:
            known_by = ", ".join(f"{each}={sizes[each]}" for each in sorted(symbols_of([dim])))
            meant = f"{dim}, which is {value} ({known_by})" if known_by else f"{dim}"
            raise CallError(f"input {name!r}: axis {axis} must be {meant}, not {extent}")
    return sizes


def _how_to_convert(array: Array, wanted: DType) -> str:
    """What to do with an array of another dtype: integers may be the bits of narrow floats."""
    name = wanted.numpy.name
    values = f"convert it by np.asarray(x, {name!r})"
    is_as_wide = array.dtype.itemsize == wanted.numpy.itemsize < _WIDE
    if wanted.is_float and is_as_wide and array.dtype.kind in "iu":
        return f"{values} if it holds values, by x.view({name!r}) if it holds their bits"
    return values


def _unknown(name: str, types: Mapping[str, TensorType], missing: Sequence[str]) -> CallError:
    """The error of a name that no input has, where these inputs are `missing`.

    Where none is, the name may be right, and that of an input which became a constant.
    """
    if len(missing) == 1:
        hint = f"; did you mean {missing[0]!r}?"
    elif missing:
        hint = f"; {list(missing)} are missing"
    else:
        python = f"name it when you compile or load the model, as in inputs=[{name!r}]"
        other = advice(python, f"give `satura compile` --input {name}, or --value {name}=...")
        hint = (
            ". One that has a default in the model, an initializer, is a constant of the program:"
            f" {other}"
        )
    return CallError(f"there is no input {name!r}; the inputs are {list(types)}{hint}")
