"""Ops that ONNX has under other names or got later, and small ones beside them."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.definition import Call, defined, defined_as

defined_as("Trilu <upper: flag = 1> (X, k?) => (Y) { Y = Trilu <upper: int = @upper> (X, k) }")
defined_as("""
    Pad <mode: string = "constant"> (data, pads, value?) => (output) {
        output = Pad <mode: string = @mode> (data, pads, value)
    }
""")
defined_as("ExpandDims (X, axis) => (Y) { wide = Cast <to = 7> (axis) Y = Unsqueeze (X, wide) }")
defined_as("""
    NhwcMaxPool <kernel_shape: ints, strides?: ints, pads?: ints, dilations?: ints,
        auto_pad: string = "NOTSET", ceil_mode: flag = 0> (x) => (y) {
        first = Transpose <perm = [0, 3, 1, 2]> (x)
        pooled = MaxPool <
            kernel_shape: ints = @kernel_shape, strides: ints = @strides, pads: ints = @pads,
            dilations: ints = @dilations, auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode
        > (first)
        y = Transpose <perm = [0, 2, 3, 1]> (pooled)
    }
""")


@defined('CDist <metric: string = "sqeuclidean"> (A, B) => (C)')
def cdist(call: Call) -> str:
    """The distance of each row of A from each row of B, or its square."""
    call.shape("A", 2), call.shape("B", 2)
    metric = call.text("metric")
    if metric not in ("sqeuclidean", "euclidean"):
        raise call.undefined_value("metric")
    return f"""
        first = Constant <value_ints = [1]> ()
        second = Constant <value_ints = [0]> ()
        a = Unsqueeze (A, first)
        b = Unsqueeze (B, second)
        difference = Sub (a, b)
        squares = Mul (difference, difference)
        last = Constant <value_ints = [2]> ()
        square = ReduceSum <keepdims = 0> (squares, last)
        {"C = Sqrt (square)" if metric == "euclidean" else "C = Identity (square)"}
    """
