"""Quantised ops, as the ops on floats between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.definition import Call, defined, defined_as, ints, perm

_UNARY = "(X, X_scale, X_zero_point?, Y_scale, Y_zero_point?) => (Y)"
_BINARY = "(A, A_scale, A_zero_point?, B, B_scale, B_zero_point?, C_scale, C_zero_point?) => (C)"


def dequantized(name: str, source: str) -> str:
    """The statement that makes `name` the floats that `source` stands for."""
    return f"{name} = DequantizeLinear ({source}, {source}_scale, {source}_zero_point)"


def quantized(call: Call, result: str, name: str, like: str) -> str:
    """The statement that makes `result` the floats `name` in the element type of `like`, which a
    zero point has."""
    is_said = call.has(f"{result}_zero_point")
    attributes = "" if is_said else f"<output_dtype = {call.code(like)}>"
    return f"{result} = QuantizeLinear {attributes} ({name}, {result}_scale, {result}_zero_point)"


def _binary(op_type: str) -> None:
    @defined(f"QLinear{op_type} {_BINARY}")
    def body(call: Call) -> str:
        return f"""
            {dequantized("a", "A")}
            {dequantized("b", "B")}
            exact = {op_type} (a, b)
            {quantized(call, "C", "exact", like="A")}
        """


def _unary(signature: str, statement: str) -> None:
    @defined(f"{signature} {_UNARY}")
    def body(call: Call) -> str:
        return f"""
            {dequantized("x", "X")}
            {statement}
            {quantized(call, "Y", "y", like="X")}
        """


_binary("Add")
_binary("Mul")
_unary("QLinearSigmoid", "y = Sigmoid (x)")
_unary("QLinearLeakyRelu <alpha: float = 0.01>", "y = LeakyRelu <alpha: float = @alpha> (x)")


defined_as("""
    QuantizeLinear <axis: int = 1> (X, Y_scale, Y_zero_point?) => (Y) {
        Y = QuantizeLinear <axis: int = @axis> (X, Y_scale, Y_zero_point)
    }
""")
defined_as("""
    DequantizeLinear <axis: int = 1> (X, X_scale, X_zero_point?) => (Y) {
        Y = DequantizeLinear <axis: int = @axis> (X, X_scale, X_zero_point)
    }
""")


@defined(f"QLinearSoftmax <axis: int = -1, opset: int> {_UNARY}")
def softmax(call: Call) -> str:
    """Before opset 13 the axes from `axis` on are one."""
    is_flat = call.integer("opset") < 13
    if is_flat:
        axis = call.node.axis(call.integer("axis"), call.rank("X"))
        function = f"""
            flat = Flatten <axis = {axis}> (x)
            y_flat = Softmax <axis = -1> (flat)
            shape = Shape (x)
            y = Reshape (y_flat, shape)
        """
    else:
        function = "y = Softmax <axis: int = @axis> (x)"
    return f"""
        {dequantized("x", "X")}
        {function}
        {quantized(call, "Y", "y", like="X")}
    """


@defined("""
    QLinearWhere
        (condition, X, X_scale, X_zero_point, Y, Y_scale, Y_zero_point, Z_scale, Z_zero_point)
        => (Z)
""")
def where(call: Call) -> str:
    return f"""
        {dequantized("x", "X")}
        {dequantized("y", "Y")}
        z = Where (condition, x, y)
        {quantized(call, "Z", "z", like="X")}
    """


@defined("QLinearConcat <axis: int> (Y_scale, Y_zero_point, inputs) => (Y)", is_variadic=True)
def concat(call: Call) -> str:
    """The inputs are triples: a tensor, its scale and its zero point."""
    names = call.inputs[2:]
    if not names or len(names) % 3:
        raise call.node.wrong("its inputs are not triples of a tensor, a scale and a zero point")
    parts = [names[at : at + 3] for at in range(0, len(names), 3)]
    lines = [f"x{at} = DequantizeLinear ({', '.join(part)})" for at, part in enumerate(parts)]
    return f"""
        {" ".join(lines)}
        y = Concat <axis: int = @axis> ({", ".join(f"x{at}" for at in range(len(parts)))})
        {quantized(call, "Y", "y", like=names[0])}
    """


@defined("""
    QLinearGlobalAveragePool <channels_last: flag = 0>
        (X, X_scale, X_zero_point, Y_scale, Y_zero_point) => (Y)
""")
def global_average_pool(call: Call) -> str:
    mean = "y = GlobalAveragePool (x)"
    if call.integer("channels_last"):
        axes = ints("axes", range(1, call.rank("X") - 1))
        mean = f"{axes} y = ReduceMean <keepdims = 1> (x, axes)"
    return f"""
        {dequantized("x", "X")}
        {mean}
        {quantized(call, "Y", "y", like="X")}
    """


def to_channels_first(call: Call, result: str, source: str) -> str:
    """The statement that moves the last axis of `source` to the second place."""
    rank = call.rank("X")
    return f"{result} = Transpose <{perm((0, rank - 1, *range(1, rank - 1)))}> ({source})"


def to_channels_last(call: Call, result: str, source: str) -> str:
    """The statement that moves the second axis of `source` to the last place."""
    rank = call.rank("X")
    return f"{result} = Transpose <{perm((0, *range(2, rank), 1))}> ({source})"


@defined(f"""
    QLinearAveragePool <kernel_shape: ints, strides?: ints, pads?: ints,
        auto_pad: string = "NOTSET", ceil_mode: flag = 0, count_include_pad: flag = 0,
        channels_last: flag = 0>
        {_UNARY}
""")
def average_pool(call: Call) -> str:
    pool = """AveragePool <
        kernel_shape: ints = @kernel_shape, strides: ints = @strides, pads: ints = @pads,
        auto_pad: string = @auto_pad, ceil_mode: int = @ceil_mode,
        count_include_pad: int = @count_include_pad
    >"""
    is_last = call.integer("channels_last")
    before = to_channels_first(call, "first", "x") if is_last else "first = Identity (x)"
    after = to_channels_last(call, "y", "pooled") if is_last else "y = Identity (pooled)"
    return f"""
        {dequantized("x", "X")}
        {before}
        pooled = {pool} (first)
        {after}
        {quantized(call, "Y", "y", like="X")}
    """


@defined("""
    QLinearConv <kernel_shape?: ints, strides?: ints, pads?: ints, dilations?: ints,
        auto_pad: string = "NOTSET", group: int = 1, channels_last: flag = 0>
        (X, x_scale, x_zero_point, W, w_scale, w_zero_point, y_scale, y_zero_point, B?) => (Y)
""")
def conv(call: Call) -> str:
    is_last = call.integer("channels_last")
    before = to_channels_first(call, "x", "X") if is_last else "x = Identity (X)"
    after = to_channels_last(call, "Y", "y") if is_last else "Y = Identity (y)"
    return f"""
        {before}
        y = QLinearConv <
            kernel_shape: ints = @kernel_shape, strides: ints = @strides, pads: ints = @pads,
            dilations: ints = @dilations, auto_pad: string = @auto_pad, group: int = @group
        > (x, x_scale, x_zero_point, W, w_scale, w_zero_point, y_scale, y_zero_point, B)
        {after}
    """


@defined("""
    QGemm <transA: flag = 0, transB: flag = 0, alpha: float = 1.0>
        (A, a_scale, a_zero_point, B, b_scale, b_zero_point, C?, Y_scale?, Y_zero_point?) => (Y)
""")
def gemm(call: Call) -> str:
    """The bias is of i32, in steps of alpha · a_scale · b_scale."""
    call.together("Y_scale", "Y_zero_point")
    last = f"""
        {"biased = Add (product, C)" if call.has("C") else "biased = Identity (product)"}
        wide = Cast <to = 1> (biased)
        scale = Mul (a_scale, b_scale)
        alpha = Constant <value_float: float = @alpha> ()
        step = Mul (alpha, scale)
    """
    if call.has("Y_scale"):
        last += f"y = Mul (wide, step) {quantized(call, 'Y', 'y', like='A')}"
    else:
        last += "Y = Mul (wide, step)"
    return f"""
        {transposed("a", "A", call.integer("transA"))}
        {transposed("b", "B", call.integer("transB"))}
        product = MatMulInteger (a, b, a_zero_point, b_zero_point)
        {last}
    """


def transposed(result: str, source: str, is_transposed: int) -> str:
    """The statement that makes `result` the matrix `source`, or this transposed."""
    return f"{result} = {'Transpose <perm = [1, 0]>' if is_transposed else 'Identity'} ({source})"


@defined("DynamicQuantizeMatMul (A, B, b_scale, b_zero_point?, bias?) => (Y)")
def dynamic_quantize_matmul(call: Call) -> str:
    return f"""
        a, a_scale, a_zero_point = DynamicQuantizeLinear (A)
        {_product_in_floats(call, "a")}
    """


@defined(
    "MatMulIntegerToFloat (A, B, a_scale, b_scale, a_zero_point?, b_zero_point?, bias?) => (Y)"
)
def matmul_integer_to_float(call: Call) -> str:
    return _product_in_floats(call, "A")


def _product_in_floats(call: Call, a: str) -> str:
    """The statements that make Y, which is rounded once where it is of f16."""
    return f"""
        {rescaled("y", a, "B", "a_scale", "b_scale")}
        {biased(call, "y")}
        Y = CastLike (sum, b_scale)
    """


def rescaled(result: str, a: str, b: str, *scales: str) -> str:
    """The statements that make `result` the product of integers times both scales, in f32."""
    zeros = [scale.replace("scale", "zero_point") for scale in scales]
    return f"""
        steps = MatMulInteger ({a}, {b}, {", ".join(zeros)})
        wide = Cast <to = 1> (steps)
        left_scale = Cast <to = 1> ({scales[0]})
        right_scale = Cast <to = 1> ({scales[1]})
        both_scales = Mul (left_scale, right_scale)
        {result} = Mul (wide, both_scales)
    """


def biased(call: Call, source: str) -> str:
    """The statements that make `sum` of `source`, in f32, and of a bias if it is given."""
    if not call.has("bias"):
        return f"sum = Identity ({source})"
    return f"bias_wide = Cast <to = 1> (bias) sum = Add ({source}, bias_wide)"
