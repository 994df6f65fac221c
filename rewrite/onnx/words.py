"""Texts of attributes of which ONNX knows a few: its schemas say so in prose alone.

Words that an op has in any opset are admitted in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto

from satura.rewrite.errors import ModelError
from satura.rewrite.onnx.order import label

_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_DIRECTIONS = ("forward", "reverse", "bidirectional")
_ROUNDING = ("up", "down", "nearest")
_BLOCKS = ("DCR", "CRD")
_LOSSES = ("none", "sum", "mean")
_UPDATES = ("none", "add", "mul", "max", "min")

WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "AveragePool": {"auto_pad": _PADS},
    "BitShift": {"direction": ("LEFT", "RIGHT")},
    "Cast": {"round_mode": _ROUNDING},
    "CastLike": {"round_mode": _ROUNDING},
    "CausalConvWithState": {"activation": ("silu", "swish", "none")},
    "Conv": {"auto_pad": _PADS},
    "ConvInteger": {"auto_pad": _PADS},
    "ConvTranspose": {"auto_pad": _PADS},
    "DepthToSpace": {"mode": _BLOCKS},
    "GRU": {"direction": _DIRECTIONS},
    "Gelu": {"approximate": ("none", "tanh")},
    "GridSample": {
        "mode": ("linear", "bilinear", "nearest", "cubic", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    "ImageDecoder": {"pixel_format": ("RGB", "BGR", "Grayscale")},
    "LSTM": {"direction": _DIRECTIONS},
    "LinearAttention": {"update_rule": ("linear", "gated", "delta", "gated_delta")},
    "LpPool": {"auto_pad": _PADS},
    "MaxPool": {"auto_pad": _PADS},
    "NegativeLogLikelihoodLoss": {"reduction": _LOSSES},
    "Pad": {"mode": ("constant", "reflect", "edge", "wrap")},
    "QLinearConv": {"auto_pad": _PADS},
    "RNN": {"direction": _DIRECTIONS},
    "Resize": {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": (
            "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
            "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize",
        ),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    },
    "RoiAlign": {
        "mode": ("avg", "max"),
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    },
    "ScatterElements": {"reduction": _UPDATES},
    "ScatterND": {"reduction": _UPDATES},
    "SoftmaxCrossEntropyLoss": {"reduction": _LOSSES},
    "SpaceToDepth": {"mode": _BLOCKS},
    "StringNormalizer": {"case_change_action": ("LOWER", "UPPER", "NONE")},
    "TensorScatter": {"mode": ("linear", "circular")},
    "TfIdfVectorizer": {"mode": ("TF", "IDF", "TFIDF")},
    "Upsample": {"mode": ("nearest", "linear")},
}  # fmt: skip
"""By op and attribute the texts that it may be."""

_LEFT_OUT = ("auto_pad", "")  # some exporters write it so


def refuse_other_words(node: NodeProto) -> None:
    """Raise ModelError where an attribute of one of ONNX's own ops is a text that it cannot be."""
    words = WORDS.get(node.op_type, {})
    for attribute in node.attribute:
        known, given = words.get(attribute.name), attribute.s.decode(errors="replace")
        if known and given not in known and (attribute.name, given) != _LEFT_OUT:
            raise ModelError(
                f"{label(node)}: attribute '{attribute.name}' is '{given}', and not one of"
                f" {', '.join(known)}"
            )
