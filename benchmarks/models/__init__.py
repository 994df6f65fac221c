"""The models that satura is tested and measured on, built from fixed seeds with the onnx helper.

    model = build("resnet50_pad")
    arguments = example_inputs(model, sizes={"batch": 2, "seq": 40})

Shapes are those of the real networks; weights are random, with values of order one throughout. The
`tiny_*` models come from the same functions at small sizes, for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnx

from .encoder import DEEP, Encoder, bert, minilm
from .esrgan import rrdb_net
from .inputs import example_inputs_of
from .light import NAMES as LIGHT
from .light import light, original_light
from .mobilenet import Backbone, deeplab_v3, mobilenet_v2
from .mobilevit import Mobile, mobilevit
from .preactivation import resnet_v2
from .quantized import quantize
from .resnet import resnet
from .rotary import rope, rope_attention
from .segformer import Pyramid, segformer
from .windowed import Windowed, swin
from .writer import Array

__all__ = [
    "LIGHT", "MODELS", "QUANTIZED", "TINY", "build", "example_inputs", "example_sizes",
    "original_light",
]  # fmt: skip

_TINY_STAGES = ((8, 2), (16, 2))
_TINY_BACKBONE = Backbone(channels=(8, 12, 12, 16, 16, 24), strides=(2, 1, 2, 2, 1))
_TINY_ENCODER = Encoder(layers=2, hidden=64, heads=4, inner=128, vocabulary=100, positions=64)
_TINY_WINDOWED = Windowed(size=32, window=4, width=16, depths=(2, 0), heads=(2, 4), classes=10)
_TINY_PYRAMID = Pyramid(
    size=32, widths=(8, 16), depths=(1, 0), heads=(1, 2), reductions=(2, 1), decoder=8, classes=3
)
_TINY_MOBILE = Mobile(
    size=32, channels=(4, 4, 8, 8), widths=(16,), layers=(1,), heads=2, last=16, classes=10
)


def _build_quantized(name: str) -> onnx.ModelProto:
    return quantize(build(name))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{name: partial(light, name) for name in LIGHT},
    "resnet50": resnet,
    "resnet50_pad": partial(resnet, "pad"),
    "resnet50_tf": partial(resnet, "tf"),
    "resnet50_v2": resnet_v2,
    "mobilenetv2_224": mobilenet_v2,
    "deeplabv3_mobilenetv2_257": deeplab_v3,
    "esrgan_rrdb3": rrdb_net,
    "bert_base": bert,
    "minilm": minilm,
    "encoder24": partial(bert, DEEP),
    "swin": swin,
    "segformer": segformer,
    "mobilevit": mobilevit,
    "rope": rope,
    "rope_attention": rope_attention,
    "resnet50_qdq": partial(_build_quantized, "resnet50"),
    "mobilenetv2_224_qdq": partial(_build_quantized, "mobilenetv2_224"),
    "deeplabv3_mobilenetv2_257_qdq": partial(_build_quantized, "deeplabv3_mobilenetv2_257"),
    "tiny_resnet": partial(resnet, "plain", 32, 16, _TINY_STAGES, 10),
    "tiny_resnet_pad": partial(resnet, "pad", 32, 16, _TINY_STAGES, 10),
    "tiny_resnet_tf": partial(resnet, "tf", 32, 16, _TINY_STAGES, 10),
    "tiny_resnet_v2": partial(resnet_v2, 32, 16, _TINY_STAGES, 10),
    "tiny_mobilenet": partial(mobilenet_v2, 32, _TINY_BACKBONE, 32, 11),
    "tiny_deeplab": partial(deeplab_v3, 33, _TINY_BACKBONE, 16, 5),
    "tiny_esrgan": partial(rrdb_net, 1, 10, 7, 8, 4),
    "tiny_bert": partial(bert, _TINY_ENCODER),
    "tiny_minilm": partial(
        minilm, Encoder(2, 64, 4, 128, vocabulary=100, positions=64, fused_norm=True)
    ),
    "tiny_swin": partial(swin, _TINY_WINDOWED),
    "tiny_segformer": partial(segformer, _TINY_PYRAMID),
    "tiny_mobilevit": partial(mobilevit, _TINY_MOBILE),
    "tiny_resnet_qdq": partial(_build_quantized, "tiny_resnet"),
    "tiny_mobilenet_qdq": partial(_build_quantized, "tiny_mobilenet"),
    "tiny_deeplab_qdq": partial(_build_quantized, "tiny_deeplab"),
    "tiny_rope": partial(rope, 4, 16),
    "tiny_rope_attention": partial(rope_attention, 4, 16),
}
TINY = tuple(name for name in MODELS if name.startswith("tiny_"))
QUANTIZED = tuple(name for name in MODELS if name.endswith("_qdq"))


def build(name: str) -> onnx.ModelProto:
    """The model called `name`, the same at every call. Raises KeyError for an unknown name."""
    if name not in MODELS:
        raise KeyError(f"there is no model {name!r}; the models are {', '.join(MODELS)}")
    return MODELS[name]()


def example_sizes(name: str) -> dict[str, int]:
    """The sizes at which the model of this name is timed."""
    return {"batch": 1, "seq": 32 if name in TINY else 128}


def example_inputs(
    model: str | onnx.ModelProto, sizes: dict[str, int] | None = None, seed: int = 0
) -> dict[str, Array]:
    """Arguments for a model (or the model of that name) by input name, from a seed.

    `sizes` gives the symbolic dims; `batch` is 1 and all others are 32 by default.
    """
    proto = build(model) if isinstance(model, str) else model
    return example_inputs_of(proto, sizes or {}, seed)
