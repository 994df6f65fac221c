"""Models as the verbs take them: files, bytes, parsed models, or programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from satura.rewrite.interrupts import import_whole
from satura.rewrite.program.program import Program

if TYPE_CHECKING:
    from onnx import ModelProto

Model: TypeAlias = "str | Path | bytes | ModelProto | Program"
"""A path to an ONNX file, its bytes, the parsed model, or a program."""


def load(model: Model) -> Program:
    """The program of an ONNX model; a program is itself.

    Raises ModelError for a file that cannot be read, UnsupportedError for what cannot be run.
    """
    if isinstance(model, Program):
        return model
    import_whole("satura.rewrite.onnx.load")
    from satura.rewrite.onnx.load import load as load_onnx

    return load_onnx(model)
