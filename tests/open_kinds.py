"""Models of one kind of node each, whose sizes are open, and shapes to run them at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, NodeProto

from tests.onnx_models import Shape, make_model, node, random_input

Kind = tuple[ModelProto, Sequence[tuple[int, ...]]]
LINES = [(1, 1, 3), (2, 5, 3), (0, 4, 3), (2, 17, 1), (1, 300, 2)]
IMAGES = [(1, 2, 4, 5), (2, 2, 1, 7), (0, 2, 3, 3)]


def kind(
    nodes: Sequence[NodeProto], sizes: Sequence[tuple[int, ...]], shape: Shape = ("n", "l", "c"),
    constants: dict[str, object] | None = None, opset: int = 19, outputs: Sequence[str] = ("y",),
) -> Kind:  # fmt: skip
    return make_model(nodes, {"x": shape}, constants, opset, outputs), sizes


def image(scales: Sequence[float] | None = None, **attributes: object) -> Kind:
    """A Resize of open images by scales, or to fixed sizes."""
    names, values = ("x - s -", np.array(scales, np.float32)) if scales else ("x - - s", [5, 3])
    more = {} if scales else {"axes": [2, 3]}
    shape = ("n", 2, "h", "w")
    resize = node("Resize", names.rstrip(" -"), "y", **attributes, **more)
    return kind([resize], IMAGES, shape, {"s": values})


def cropped(targets: object = (3, 1)) -> Kind:
    """A part of open images that reaches beyond them, to three elements and to one, or by scales
    of the whole."""
    names = "x roi - s" if isinstance(targets, tuple) else "x roi s"
    resize = node(
        "Resize", names, "y", mode="linear", extrapolation_value=7.0, axes=[2, 3],
        coordinate_transformation_mode="tf_crop_and_resize",
    )  # fmt: skip
    constants: dict[str, object] = {
        "roi": np.array([0.1, 0.2, 1.3, 0.7], np.float32),
        "s": np.asarray(targets),
    }
    return kind([resize], IMAGES, ("n", 2, "h", "w"), constants)


def transposed(auto: str) -> Kind:
    conv = node("ConvTranspose", "x w", strides=[2, 3], auto_pad=auto)
    return kind([conv], IMAGES, ("n", 2, "h", "w"), {"w": random_input(2, 2, 4, 3)})


def running(**attributes: int) -> Kind:
    sizes = [*LINES, (1, 0, 3), (1, 16, 2), (1, 257, 2)]
    return kind([node("CumSum", "x a", "y", **attributes)], sizes, constants={"a": np.int64(1)})


def padded(mode: str, opset: int = 19) -> Kind:
    sizes = [(1, 3, 2), (2, 4, 1)]
    if mode != "wrap":  # onnxruntime has no such mode for empty tensors
        sizes.append((0, 9, 1))
    return kind(
        [node("Pad", "x p", mode=mode)], sizes, constants={"p": [0, 2, 0, 0, 1, 0]}, opset=opset
    )


def cropped_by_sizes() -> Kind:
    """Pads that are a size negated, and the difference of two sizes."""
    nodes = [
        node("Shape", "x", "l", start=1, end=2), node("Shape", "x", "c", start=2, end=3),
        node("Neg", "c", "less"), node("Sub", "l c", "more"),
        node("Concat", "zero less more zero one zero", "pads", axis=0), node("Pad", "x pads", "y"),
    ]  # fmt: skip
    sizes = [(1, 5, 3), (2, 3, 3), (0, 4, 0), (2, 7, 1)]
    return kind(nodes, sizes, constants={"zero": [0], "one": [1]})


def pooled(op: str, kernel: int, stride: int, pads: Sequence[int], **more: int) -> Kind:
    attributes = {"kernel_shape": [kernel], "strides": [stride], "pads": pads, "ceil_mode": 1}
    sizes = [(1, 2, extent) for extent in (4, 5, 6, 7, 8, 9)] + [(0, 1, 5)]
    return kind([node(op, "x", "y", **attributes, **more)], sizes)


def hourglass() -> Kind:
    """A pool by 4, an upsampling by 2, and beside it a pool by 2."""
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("MaxPool", "x", "a", **pool), node("MaxPool", "a", "b", **pool),
        node("ConvTranspose", "b w", "u", strides=[2, 2]), node("Concat", "u a", "v", axis=1),
        node("ConvTranspose", "v k", "up", strides=[2, 2]), node("Add", "up x"),
    ]  # fmt: skip
    constants: dict[str, object] = {
        "w": random_input(2, 3, 2, 2), "k": random_input(5, 2, 2, 2, seed=1)
    }  # fmt: skip
    return kind(nodes, [(1, 2, 8, 4), (2, 2, 4, 4), (0, 2, 4, 4)], ("n", 2, "h", "w"), constants)


def windows(*, is_padded: bool = False) -> Kind:
    """An image in windows of 2 x 2, as exporters write `x.view(n, h // 2, 2, w // 2, 2)`.

    If `is_padded`, it is first filled up to whole windows.
    """
    source = "p" if is_padded else "x"
    before = [
        node("Shape", "x", "size"), node("Mod", "size whole", "m"), node("Sub", "whole m", "s"),
        node("Mod", "s whole", "ends"), node("Concat", "zeros ends", "pads", axis=0),
        node("Pad", "x pads", "p"),
    ]  # fmt: skip
    nodes = [
        *before[: 6 * is_padded],
        node("Shape", source, "n", start=0, end=1), node("Shape", source, "hw", start=1, end=3),
        node("Div", "hw two", "half"), node("Split", "half", "h w", axis=0, num_outputs=2),
        node("Concat", "n h two w two", "target", axis=0), node("Reshape", f"{source} target", "v"),
        node("Transpose", "v", perm=[0, 1, 3, 2, 4]),
    ]  # fmt: skip
    constants: dict[str, object] = {"two": [2], "whole": [1, 2, 2], "zeros": [0, 0, 0]}
    sizes = [(1, 4, 6), (2, 2, 2), (0, 2, 4), *[(2, 3, 1), (1, 1, 4)][: 2 * is_padded]]
    return kind(nodes, sizes, ("n", "h", "w"), constants)


def same_extent(auto: str) -> Kind:
    """As converters from other frameworks pad: by how much depends on the extent."""
    nodes = [
        node("Conv", "x w", "a", strides=[2, 3], auto_pad=auto),
        node("MaxPool", "a", kernel_shape=[3, 2], strides=[2, 1], auto_pad=auto),
    ]
    sizes = [(1, 2, 5, 7), (2, 2, 4, 6), (1, 2, 1, 1), (1, 2, 9, 8)]
    return kind(nodes, sizes, ("n", 2, "h", "w"), {"w": random_input(3, 2, 3, 4)})


def gaps_between_windows(auto: str) -> Kind:
    """Windows that are smaller than their steps, at extents that onnxruntime pads."""
    pool = node("MaxPool", "x", "a", kernel_shape=[2, 3], strides=[3, 5], auto_pad=auto)
    mean = node("AveragePool", "x", "b", kernel_shape=[3, 4], strides=[4, 6], auto_pad=auto)
    sizes = [(1, 2, *size) for size in ((1, 1), (2, 3), (5, 2), (5, 7), (7, 8), (1, 7))]
    return kind([pool, mean], sizes, ("n", 2, "h", "w"), outputs=("a", "b"))


def mean_of_same_extent(auto: str, include: int) -> Kind:
    attributes = {"kernel_shape": [3, 2], "strides": [2, 2], "count_include_pad": include}
    sizes = [(1, 2, 5, 7), (2, 2, 4, 6), (1, 2, 1, 1)]
    pool = node("AveragePool", "x", "y", auto_pad=auto, **attributes)
    return kind([pool], sizes, ("n", 2, "h", "w"))


KINDS = {
    "hourglass": hourglass(),
    "windows": windows(),
    "windows of what is filled up": windows(is_padded=True),
    "running sums": running(),
    "running sums from behind": running(reverse=1, exclusive=1),
    "running sums of others": running(exclusive=1),
    "linear": image([1, 1, 2, 2], mode="linear"),
    "linear by a part": image([1, 1, 1.5, 0.75], mode="linear"),
    "linear to fixed sizes": image(mode="linear", coordinate_transformation_mode="align_corners"),
    "linear of pytorch": image(
        [1, 1, 1, 0.3], mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "cubic": image([1, 1, 2, 0.5], mode="cubic", cubic_coeff_a=-0.5),
    "cubic of what is inside": image([1, 1, 1.5, 0.5], mode="cubic", exclude_outside=1),
    "linear about the middle": image(
        [1, 1, 1.25, 0.7], mode="linear", coordinate_transformation_mode="half_pixel_symmetric"
    ),
    "a part": cropped(),
    "nearest to fixed sizes": image(
        mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "nearest by a part": image([1, 1, 1.5, 2.5], mode="nearest"),
    "equal parts": kind(
        [node("Split", "x", "y z", axis=1, num_outputs=2)], LINES, outputs=("y", "z")
    ),
    "three parts": kind(
        [node("Split", "x", "y z w", axis=1)], [(1, 3, 2), (2, 6, 1), (1, 0, 2)],
        opset=13, outputs=("y", "z", "w"),
    ),
    "equal parts without a number": kind(
        [node("Split", "x", "y z", axis=1)], [(1, 4, 2), (2, 6, 1)], outputs=("y", "z")
    ),
    "reflected": padded("reflect"),
    "edges": padded("edge"),
    "around": padded("wrap"),
    "pads by sizes": cropped_by_sizes(),
    "a largest rounded up": pooled("MaxPool", 2, 2, [0, 0]),
    "a largest with steps": pooled("MaxPool", 2, 3, [1, 1]),
    "a largest of three": pooled("MaxPool", 3, 2, [1, 1]),
    "a mean rounded up": pooled("AveragePool", 3, 2, [1, 0], count_include_pad=0),
    "a mean with its border": pooled("AveragePool", 3, 2, [1, 1], count_include_pad=1),
    "gaps above": gaps_between_windows("SAME_UPPER"),
    "gaps below": gaps_between_windows("SAME_LOWER"),
    "a mean of the same extent": mean_of_same_extent("SAME_UPPER", 1),
    "a mean without its border": mean_of_same_extent("SAME_LOWER", 0),
    "parts of given extents": kind(
        [node("Split", "x p", "y z", axis=1)], [(1, 5, 3), (0, 5, 1)], constants={"p": [2, 3]},
        outputs=("y", "z"),
    ),
    "a convolution of the same extent": same_extent("SAME_UPPER"),
    "a convolution with its border below": same_extent("SAME_LOWER"),
    "a transposed convolution of the same extent": transposed("SAME_UPPER"),
    "a transposed convolution with its border below": transposed("SAME_LOWER"),
    "the largest along an open axis": kind(
        [node("TopK", "x k", "y z", axis=1)],
        [(1, 3, 2), (2, 17, 1), (0, 5, 2), (2, 500, 2)],
        constants={"k": [3]}, outputs=("y", "z"),
    ),
    "the smallest along an open axis": kind(
        [node("Round", "x", "r"), node("TopK", "r k", "y z", axis=1, largest=0)],
        [(1, 30, 2), (2, 700, 1)], constants={"k": [30]}, outputs=("y", "z"),
    ),
    "the smallest along a fixed axis": kind(
        [node("TopK", "x k", "y z", axis=2, largest=0)], [(1, 1, 4), (2, 0, 4), (3, 5, 4)],
        ("n", "l", 4), {"k": [4]}, outputs=("y", "z"),
    ),
    "places along an open axis": kind(
        [node("Gather", "x a", "y", axis=1)], [(1, 4, 2), (0, 5, 1), (2, 4, 0)],
        constants={"a": [[0, -4], [2, 1]]},
    ),
    "elements along an open axis": kind(
        [node("GatherElements", "x a", "y", axis=0)], [(3, 1, 2), (4, 2, 2)],
        constants={"a": [[[2, -3]]]},
    ),
    "elements at open places": kind(
        [node("GatherND", "x a", "y")], [(3, 2, 2), (4, 3, 0)],
        constants={"a": [[2, -1], [0, 1]]},
    ),
    "updates along an open axis": kind(
        [node("ScatterElements", "x a u", "y", axis=0)], [(3, 1, 2), (4, 2, 2)],
        constants={"a": [[[2, -3]]], "u": np.ones((1, 1, 2), np.float32)},
    ),
    "updates at open places": kind(
        [node("ScatterND", "x a u", "y")], [(3, 2, 1), (4, 3, 1)], ("n", "l", 1),
        {"a": [[2, -1], [0, 1]], "u": np.ones((2, 1), np.float32)},
    ),
    "groups of open channels": kind(
        [node("GroupNormalization", "x s s", "y", num_groups=3)],
        [(1, 6, 2), (2, 3, 3), (1, 30, 1)], ("n", "c", "l"),
        constants={"s": np.array([1, 2, 3], np.float32)}, opset=18,
    ),
    "blocks of an image": kind(
        [node("Col2Im", "x size block", "y", pads=[1, 1, 1, 1])],
        [(1, 18, 42), (2, 9, 42), (0, 27, 42)], constants={"size": [6, 7], "block": [3, 3]},
    ),
    "a part by scales": cropped(np.array([2.0, 0.75], np.float32)),
}  # fmt: skip
