"""Products and convolutions with what onnxruntime fuses into them."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.activations import NUMBERS, activated
from satura.rewrite.onnx.contrib.definition import Call, defined, perm, scalar
from satura.rewrite.onnx.contrib.quantized import to_channels_first, to_channels_last

_TRANSPOSED = "transA: flag = 0, transB: flag = 0, alpha: float = 1.0"


def _matrices(call: Call, result: str, source: str, is_batch: int, is_matrix: int) -> str:
    """The statement that moves the first axis of `source` behind the batch, and then exchanges the
    last two."""
    order = [*range(call.rank(source))]
    if is_batch and len(order) > 2:
        order = [*order[1:-1], 0, order[-1]]
    if is_matrix and len(order) > 1:
        order[-2:] = order[:-3:-1]
    return f"{result} = Transpose <{perm(order)}> ({source})"


def _fused_matmul(name: str, attributes: str) -> None:
    @defined(f"{name} <{attributes}> (A, B) => (Y)")
    def body(call: Call) -> str:
        """alpha · a · b, where a and b are A and B with their axes exchanged"""
        batches = [
            call.has_attribute(each) and call.integer(each)
            for each in ("transBatchA", "transBatchB")
        ]
        return f"""
            {_matrices(call, "a", "A", batches[0], call.integer("transA"))}
            {_matrices(call, "b", "B", batches[1], call.integer("transB"))}
            product = MatMul (a, b)
            {scalar("alpha", call.number("alpha"), like="A")}
            Y = Mul (product, alpha)
        """


_fused_matmul("TransposeMatMul", _TRANSPOSED)
_fused_matmul("FusedMatMul", f"{_TRANSPOSED}, transBatchA: flag = 0, transBatchB: flag = 0")


@defined("""
    FusedGemm <transA: flag = 0, transB: flag = 0, alpha: float = 1.0, beta: float = 1.0,
        activation?: string, activation_alpha?: float, activation_beta?: float,
        activation_gamma?: float>
        (A, B, C?) => (Y)
""")
def fused_gemm(call: Call) -> str:
    names = [each for each in ("alpha", "beta") if call.has_attribute(f"activation_{each}")]
    parameters = {each: call.number(f"activation_{each}") for each in names}
    return f"""
        y = Gemm <
            transA: int = @transA, transB: int = @transB, alpha: float = @alpha, beta: float = @beta
        > (A, B, C)
        {activated(call, "Y", "y", parameters)}
    """


_CONV = """Conv <
    kernel_shape: ints = @kernel_shape, strides: ints = @strides, pads: ints = @pads,
    dilations: ints = @dilations, auto_pad: string = @auto_pad, group: int = @group
>"""
_CONV_ATTRIBUTES = (
    "kernel_shape?: ints, strides?: ints, pads?: ints, dilations?: ints,"
    ' auto_pad: string = "NOTSET", group: int = 1, activation?: string, activation_params?: floats'
)


def _activated_conv(call: Call, result: str, source: str) -> str:
    numbers, name = call.numbers("activation_params"), call.text("activation")
    names = NUMBERS.get(name, ())
    if names and len(numbers) != len(names):
        raise call.node.wrong(f"'activation_params' of {name} must be {', '.join(names)}")
    parameters = dict(zip(names, numbers, strict=False))
    if name == "Clip":
        return f"""
            {scalar("low", parameters["low"], like="X")}
            {scalar("high", parameters["high"], like="X")}
            {result} = Clip ({source}, low, high)
        """
    return activated(call, result, source, parameters)


@defined(f"FusedConv <{_CONV_ATTRIBUTES}> (X, W, B?, Z?) => (Y)")
def fused_conv(call: Call) -> str:
    """The activation of the convolution plus Z."""
    return f"""
        conv = {_CONV} (X, W, B)
        {"y = Add (conv, Z)" if call.has("Z") else "y = Identity (conv)"}
        {_activated_conv(call, "Y", "y")}
    """


@defined(f"NhwcFusedConv <{_CONV_ATTRIBUTES}> (X, W, B?, Z?) => (Y)")
def nhwc_fused_conv(call: Call) -> str:
    return f"""
        {to_channels_first(call, "first", "X")}
        conv = {_CONV} (first, W, B)
        {to_channels_last(call, "last", "conv")}
        {"y = Add (last, Z)" if call.has("Z") else "y = Identity (last)"}
        {_activated_conv(call, "Y", "y")}
    """
