"""Models of old opsets, converted to the oldest one that lowerings know."""

from __future__ import annotations

from onnx import ModelProto, checker, version_converter

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.checks import OLDEST_OPSET


def upgraded(model: ModelProto) -> ModelProto:
    """`model`, converted by the onnx package where its opset is older than lowerings know.

    Raises UnsupportedError where that fails.
    """
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions or versions[0] >= OLDEST_OPSET:
        return model
    try:
        # The converter does not survive every model that the checker refuses.
        checker.check_model(model)
        return version_converter.convert_version(model, OLDEST_OPSET)
    except Exception as error:  # the converter raises whatever its C++ throws
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise UnsupportedError(
            f"opset {versions[0]} is not supported, and the onnx package cannot convert it to"
            f" {OLDEST_OPSET}: {reason.strip()}"
        ) from None
