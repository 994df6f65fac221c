"""Products and convolutions with what onnxruntime fuses into them."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.activations import activated
from satura.rewrite.onnx.contrib.definition import Call, defined, ints, perm, scalar
from satura.rewrite.onnx.contrib.quantized import to_channels_first, to_channels_last

_TRANSPOSED = "transA: int = 0, transB: int = 0, alpha: float = 1.0"


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
_fused_matmul("FusedMatMul", f"{_TRANSPOSED}, transBatchA: int = 0, transBatchB: int = 0")


@defined("""
    FusedGemm <transA: int = 0, transB: int = 0, alpha: float = 1.0, beta: float = 1.0,
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
    numbers = call.numbers("activation_params")
    if call.text("activation") == "Clip":
        if len(numbers) != 2:
            raise call.node.wrong("a Clip has two 'activation_params'")
        low, high = numbers
        return f"""
            {scalar("low", low, like="X")}
            {scalar("high", high, like="X")}
            {result} = Clip ({source}, low, high)
        """
    return activated(call, result, source, dict(zip(("alpha", "beta"), numbers, strict=False)))


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


@defined("""
    MatMulNBits <K: int, N: int, bits: int = 4, block_size: int, accuracy_level: int = 0,
        weight_prepacked: int = 0>
        (A, B, scales, zero_points?, g_idx?, bias?) => (Y)
""")
def matmul_n_bits(call: Call) -> str:
    """A times the transposed weights, of which `block_size` in a row have a scale and zero point.

    The lowest bits of a byte are its first number.
    """
    call.refuse("g_idx", "weight_prepacked")
    depth, columns = call.integer("K"), call.integer("N")
    bits, size = call.integer("bits"), call.integer("block_size")
    if bits not in (2, 4, 8):
        raise call.undefined_value("bits")
    if min(depth, columns, size) < 1:
        raise call.node.wrong("attributes 'K', 'N' and 'block_size' must be at least 1")
    blocks = -(-depth // size)
    middle = 2 ** (bits - 1)
    if not call.has("zero_points"):
        zeros = f"zeros_wide = Constant <value = float {{{middle}}}> ()"
    elif call.dtype("zero_points") is call.dtype("B"):
        zeros = f"""
            {ints("packed_shape", (columns, -1))}
            packed = Reshape (zero_points, packed_shape)
            {_unpacked("z", "packed", bits, 1)}
            {ints("ends", (blocks,))}
            z_blocks = Slice (z, zero, ends, one)
            z_deep = Unsqueeze (z_blocks, two)
            zeros_wide = Cast <to = 1> (z_deep)
        """
    else:
        zeros = f"""
            {ints("zeros_shape", (columns, blocks, 1))}
            z = Reshape (zero_points, zeros_shape)
            zeros_wide = Cast <to = 1> (z)
        """
    return f"""
        {ints("zero", (0,))} {ints("one", (1,))} {ints("two", (2,))}
        {zeros}
        {_unpacked("q", "B", bits, 2)}
        wide = Cast <to = 1> (q)
        moved = Sub (wide, zeros_wide)
        {ints("scales_shape", (columns, blocks, 1))}
        scale = Reshape (scales, scales_shape)
        scale_wide = Cast <to = 1> (scale)
        scaled = Mul (moved, scale_wide)
        {ints("rows_shape", (columns, blocks * size))}
        rows = Reshape (scaled, rows_shape)
        {ints("depth", (depth,))}
        used = Slice (rows, zero, depth, one)
        weights_wide = Transpose <perm = [1, 0]> (used)
        weights = CastLike (weights_wide, A)
        y = MatMul (A, weights)
        {"Y = Add (y, bias)" if call.has("bias") else "Y = Identity (y)"}
    """


def _unpacked(result: str, source: str, bits: int, axis: int) -> str:
    """The statements that make `result` the numbers of so many bits in bytes along the last axis,
    which is `axis`."""
    if bits == 8:
        return f"{result} = Identity ({source})"
    parts = range(0, 8, bits)
    lines = [f"{result}_mask = Constant <value = uint8 {{{2**bits - 1}}}> ()"]
    for at in parts:
        lines.append(f"""
            {result}_by{at} = Constant <value = uint8 {{{at}}}> ()
            {result}_shifted{at} = BitShift <direction = "RIGHT"> ({source}, {result}_by{at})
            {result}_masked{at} = BitwiseAnd ({result}_shifted{at}, {result}_mask)
            {result}_part{at} = Unsqueeze ({result}_masked{at}, {result}_end)
        """)
    return f"""
        {ints(f"{result}_end", (axis + 1,))}
        {" ".join(lines)}
        {result}_parts = Concat <axis = {axis + 1}>
            ({", ".join(f"{result}_part{at}" for at in parts)})
        {ints(f"{result}_shape", (0,) * axis + (-1,))}
        {result} = Reshape ({result}_parts, {result}_shape)
    """
