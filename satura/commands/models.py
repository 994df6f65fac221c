"""What the command line names: ONNX files or the onnx package's light models, and nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from satura.rewrite.errors import CallError

if TYPE_CHECKING:
    from onnx import ModelProto

T = TypeVar("T")

_MODEL = "an ONNX file"


def file_or_light(name: str, kinds: str = _MODEL) -> Path | ModelProto:
    """The file of that name, else the light model. Raises CallError where there is neither, which
    says what `kinds` of files there could have been."""
    if (path := Path(name)).is_file():
        return path
    refuse_missing(name, kinds=kinds)
    from satura.light import light

    return light(name)


def refuse_missing(*names: str, kinds: str = _MODEL) -> None:
    """Raise CallError for a name that is neither that of a file nor of a light model."""
    for name in names:
        if not is_there(name):
            if Path(name).exists() and not Path(name).is_dir():
                raise CallError(f"{name} is not a regular file: save the model in one")
            from satura.light import NAMES

            shown = name if name.strip() else repr(name)
            if name.strip() and Path(name).is_dir():
                raise CallError(f"{shown} is a folder: name a file in it")
            if is_path(name):
                raise CallError(f"{shown}: there is no such file")
            raise CallError(f"{shown} is neither {kinds} nor one of {', '.join(NAMES)}")


def is_path(name: str) -> bool:
    """Whether a name can only be that of a file: it has a suffix or a folder."""
    return bool(Path(name).suffix) or name != Path(name).name


def is_there(name: str) -> bool:
    """Whether it is a file or a light model."""
    if Path(name).is_file():
        return True
    from satura.light import NAMES  # slow to import

    return name in NAMES


def by_stem(names: Sequence[str], read: Callable[[str], T]) -> dict[str, T]:
    """What is read of each name, by the name of its file alone. Raises CallError for equal ones."""
    given: dict[str, str] = {}
    for name in names:
        if name in names[: len(given)]:
            raise CallError(f"{name} is named twice")
        if (stem := Path(name).stem) in given:
            raise CallError(f"{given[stem]} and {name} have the same name: rename one of the files")
        given[stem] = name
    return {stem: read(name) for stem, name in given.items()}


def node_number(node: str) -> int:
    """The number of a node that is written as `12` or `%12`. Raises CallError."""
    try:
        return int(node.removeprefix("%"))
    except ValueError:
        raise CallError(f"{node} is not the number of a node, such as %12 or 12") from None
