"""The onnx package's `light_*` models; they are built in the package, where the demo needs one."""

from satura.light import NAMES, light, original_light

__all__ = ["NAMES", "light", "original_light"]
