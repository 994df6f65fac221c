"""Weights of few bits, of which each block of a row has a scale and a zero point."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.definition import Call, defined, ints
from satura.rewrite.onnx.contrib.quantized import biased
from satura.rewrite.types.tensor_type import DType


@defined("""
    MatMulNBits <K: int, N: int, bits: int = 4, block_size: int, accuracy_level: int = 0,
        weight_prepacked: flag = 0>
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
        weights = Transpose <perm = [1, 0]> (used)
        a = Cast <to = 1> (A)
        product = MatMul (a, weights)
        {biased(call, "product")}
        Y = CastLike (sum, A)
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


@defined("""
    GatherBlockQuantized <gather_axis: int = 0, quantize_axis: int = 1, block_size: int = 128,
        bits: int = 4>
        (data, indices, scales, zero_points?) => (output)
""")
def gather_block_quantized(call: Call) -> str:
    """Rows of weights, which are dequantised along another axis; bytes are numbers of some bits.

    Without zero points those of bytes are in the middle.
    """
    rank = call.rank("data")
    gather, blocks = (call.node.axis(call.integer(f"{each}_axis"), rank) for each in _AXES)
    is_packed, bits = call.dtype("data") is DType.U8, call.integer("bits")
    if gather == blocks or (is_packed and blocks != rank - 1):
        raise call.undefined("gathering along the axis of blocks, or a last axis without them,")
    if bits not in (4, 8):
        raise call.undefined_value("bits")
    last = rank + call.rank("indices") - 2
    axis = blocks + (call.rank("indices") - 1 if gather < blocks else 0)

    def numbers(name: str) -> str:
        unpacked = _unpacked(name, f"{name}_rows", bits, last) if is_packed else ""
        return unpacked or f"{name} = Identity ({name}_rows)"

    zeros = "" if call.has("zero_points") or not is_packed else f"""
        zero_point_number = Constant <value = uint8 {{{2 ** (bits - 1)}}}> ()
        scales_shape = Shape (scale)
        z = Expand (zero_point_number, scales_shape)
    """  # fmt: skip
    if call.has("zero_points"):
        zeros = f"""
            z_rows = Gather <axis = {gather}> (zero_points, indices)
            {numbers("z_all").replace("z_all_rows", "z_rows")}
            scale_count = Shape <start = {last}, end = {last + 1}> (scale)
            zero = Constant <value_ints = [0]> ()
            {ints("last_axis", (last,))}
            z = Slice (z_all, zero, scale_count, last_axis)
        """
    return f"""
        q_rows = Gather <axis = {gather}> (data, indices)
        {numbers("q")}
        scale = Gather <axis = {gather}> (scales, indices)
        {zeros}
        output = DequantizeLinear <axis = {axis}, block_size: int = @block_size>
            (q, scale{", z" if zeros else ""})
    """


_AXES = ("gather", "quantize")
