"""Attention of several heads: queries, keys and values of shape [batch, heads, length, size]."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.contrib.definition import Call, defined, ints
from satura.rewrite.onnx.contrib.quantized import rescaled
from satura.rewrite.types.dims import Dim

LEAST = "least = Constant <value_float = -3.4028234663852886e+38> ()"


def attended(call: Call, size: int, masked: str) -> str:
    """The statements that make `output` of q, k and v, whose heads have this size.

    Those of `masked` make this of `scores`. All is in f32 until `output` is rounded.
    """
    return f"""
        q_wide = Cast <to = 1> (q)
        k_wide = Cast <to = 1> (k)
        v_wide = Cast <to = 1> (v)
        keys = Transpose <perm = [0, 1, 3, 2]> (k_wide)
        products = MatMul (q_wide, keys)
        scale = Constant <value_float = {call.number("scale") or size**-0.5!r}> ()
        scores = Mul (products, scale)
        {masked}
        shares = Softmax <axis = -1> (masked)
        heads = MatMul (shares, v_wide)
        rows = Transpose <perm = [0, 2, 1, 3]> (heads)
        {ints("rows_shape", (0, 0, -1))}
        output_wide = Reshape (rows, rows_shape)
        output = CastLike (output_wide, v)
    """


def with_bias(call: Call, scores: str) -> str:
    """The statements that make `scores_biased` of scores."""
    if not call.has("attention_bias"):
        return f"scores_biased = Identity ({scores})"
    return f"bias_wide = Cast <to = 1> (attention_bias) scores_biased = Add ({scores}, bias_wide)"


def _masked(call: Call, mask: str, batch: Dim) -> str:
    """The statements that make `masked` of `scores`: by a mask, a bias, and what is later.

    What the mask leaves out is moved by `mask_filter_value`, and what is later is the least float.
    """
    left = "scores_left = Identity (scores)"
    if call.has(mask):
        left = f"""
            {_kept(call, mask, batch)}
            left_out = Constant <value_float = {call.number("mask_filter_value")!r}> ()
            nothing = Constant <value_float = 0.0> ()
            mask_bias = Where (kept, nothing, left_out)
            scores_left = Add (scores, mask_bias)
        """
    last = "masked = Identity (scores_biased)"
    if call.integer("unidirectional"):
        last = f"{_LENGTHS} {LEAST} masked = Where (is_so_far, scores_biased, least)"
    return f"{ZERO_AND_ONE} {PLACES} {left} {with_bias(call, 'scores_left')} {last}"


ZERO_AND_ONE = "zero = Constant <value = int64 {0}> () one = Constant <value = int64 {1}> ()"
PLACES = """
    total_vector = Shape <start = 2, end = 3> (k)
    total = Squeeze (total_vector)
    places = Range (zero, total, one)
"""

_LENGTHS = """
    length_vector = Shape <start = 2, end = 3> (q)
    length = Squeeze (length_vector)
    first = Sub (total, length)
    own = Range (first, total, one)
    last_axis = Constant <value_ints = [1]> ()
    own_column = Unsqueeze (own, last_axis)
    is_so_far = LessOrEqual (places, own_column)
"""


def _kept(call: Call, mask: str, batch: Dim) -> str:
    """The statements that make `kept`: which keys the mask leaves in, for scores of rank 4."""
    shape = call.shape(mask)
    if len(shape) in (2, 3):
        axes = (1, 2) if len(shape) == 2 else (1,)
        return f"""
            {ints("mask_axes", axes)}
            mask_zero_wide = Constant <value = int64 {{0}}> ()
            mask_zero = CastLike (mask_zero_wide, {mask})
            is_in = Greater ({mask}, mask_zero)
            kept = Unsqueeze (is_in, mask_axes)
        """
    if len(shape) != 1 or shape[0] not in (batch, 2 * batch):
        raise call.undefined(f"'{mask}' of shape {list(shape)}")
    if shape[0] == batch:
        ends = f"ends = Identity ({mask})"
        both = "kept = Identity (is_before_end)"
    else:
        ends = f"ends, starts = Split <axis = 0, num_outputs = 2> ({mask})"
        both = """
            starts_wide = Cast <to = 7> (starts)
            starts_column = Unsqueeze (starts_wide, mask_axes)
            is_from_start = GreaterOrEqual (places, starts_column)
            kept = And (is_before_end, is_from_start)
        """
    return f"""
        {ints("mask_axes", (1, 2, 3))}
        {ends}
        ends_wide = Cast <to = 7> (ends)
        ends_column = Unsqueeze (ends_wide, mask_axes)
        is_before_end = Less (places, ends_column)
        {both}
    """


def heads_of(result: str, source: str, heads: int, size: int) -> str:
    """The statements that make `result` of `source` of shape [batch, length, heads · size]."""
    return f"""
        {ints(f"{result}_shape", (0, 0, heads, size))}
        {result}_split = Reshape ({source}, {result}_shape)
        {result} = Transpose <perm = [0, 2, 1, 3]> ({result}_split)
    """


def size_of_heads(call: Call, hidden: int, heads: int) -> int:
    """The size of a head; ModelError where it is not an integer."""
    if heads < 1 or hidden % heads:
        raise call.node.wrong(f"a hidden size of {hidden} is not that of {heads} heads")
    return hidden // heads


@defined("""
    Attention <num_heads: int, unidirectional: flag = 0, mask_filter_value: float = -10000.0,
        scale: float = 0.0, qkv_hidden_sizes?: ints, do_rotary: flag = 0,
        rotary_embedding_dim: int = 0, past_present_share_buffer: flag = 0>
        (input, weights, bias?, mask_index?, past?, attention_bias?, past_sequence_length?)
        => (output, present)
""")
def attention(call: Call) -> str:
    call.refuse(
        "do_rotary", "rotary_embedding_dim", "past_present_share_buffer", "past_sequence_length"
    )
    sizes = call.integers("qkv_hidden_sizes")
    return _of_product(call, "product = MatMul (input, weights)", "weights", sizes)


@defined("""
    QAttention <num_heads: int, unidirectional: flag = 0, mask_filter_value: float = -10000.0,
        scale: float = 0.0, do_rotary: flag = 0, past_present_share_buffer: flag = 0>
        (input, weight, bias, input_scale, weight_scale, mask_index?, input_zero_point?,
        weight_zero_point?, past?) => (output, present)
""")
def quantized_attention(call: Call) -> str:
    call.refuse("do_rotary", "past_present_share_buffer")
    product = f"""
        {rescaled("product_wide", "input", "weight", "input_scale", "weight_scale")}
        product = CastLike (product_wide, input_scale)
    """
    return _of_product(call, product, "weight", ())


def _of_product(call: Call, product: str, weights: str, sizes: Sequence[int]) -> str:
    """The body where queries, keys and values are columns of one product, of such sizes.

    What is `present` are keys and values, stacked behind those of `past`.
    """
    heads = call.integer("num_heads")
    call.shape("input", 3)
    columns = call.size(weights, 1, 2)
    sizes = sizes or (columns // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != columns:
        raise call.node.wrong(f"{columns} columns of weights are not queries, keys and values")
    own = [size_of_heads(call, each, heads) for each in sizes]
    parts = zip(("q", "key_new", "value_new"), own, strict=True)
    past = present = ""
    if call.has("past"):
        past = f"""
            past_both_key, past_both_value = Split <axis = 0, num_outputs = 2> (past)
            {ints("stack", (0,))}
            past_key = Squeeze (past_both_key, stack)
            past_value = Squeeze (past_both_value, stack)
        """
    if call.wants("present"):
        present = f"""
            {ints("outer", (0,))}
            k_outer = Unsqueeze (k, outer)
            v_outer = Unsqueeze (v, outer)
            present = Concat <axis = 0> (k_outer, v_outer)
        """
    return f"""
        {product}
        {"all = Add (product, bias)" if call.has("bias") else "all = Identity (product)"}
        {ints("widths", sizes)}
        q_flat, key_new_flat, value_new_flat = Split <axis = -1> (all, widths)
        {" ".join(heads_of(name, f"{name}_flat", heads, size) for name, size in parts)}
        {past}
        {_joined(call, "past")}
        {present}
        {attended(call, own[0], _masked(call, "mask_index", call.shape("input")[0]))}
    """


def _joined(call: Call, past: str) -> str:
    """The statements that make k and v of `key_new` and `value_new`, behind a past if given."""
    if not call.has(past):
        return "k = Identity (key_new) v = Identity (value_new)"
    return """
        k = Concat <axis = 2> (past_key, key_new)
        v = Concat <axis = 2> (past_value, value_new)
    """


@defined("""
    MultiHeadAttention <num_heads: int, unidirectional: flag = 0,
        mask_filter_value: float = -10000.0, scale: float = 0.0>
        (query, key?, value?, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?,
        past_sequence_length?, cache_indirection?) => (output, present_key, present_value, qk)
""")
def multi_head_attention(call: Call) -> str:
    """Keys and values may be packed: behind the queries, or values behind keys, of each head."""
    call.refuse("past_sequence_length", "cache_indirection", "qk")
    call.together("past_key", "past_value")
    call.needs("value", "key")
    heads = call.integer("num_heads")
    if len(call.shape("query", 3, 5)) == 5:
        size = call.size("query", 4)
        if call.has("bias"):
            raise call.undefined("a bias of packed queries, keys and values")
        made = _unpacked("query", ("q", "key_new", "value_new"))
    else:
        size = size_of_heads(call, call.size("query", 2), heads)
        made = _queries(call, heads, size)
    return f"""
        {made}
        {_joined(call, "past_key")}
        present_key = Identity (k)
        present_value = Identity (v)
        {attended(call, size, _masked(call, "key_padding_mask", call.shape("query")[0]))}
    """


def _unpacked(source: str, names: tuple[str, ...]) -> str:
    """The statements that take `source` of shape [batch, length, heads, names, size] apart."""
    lines = [
        f"{name}_part = Squeeze ({name}_one, packed) "
        f"{name} = Transpose <perm = [0, 2, 1, 3]> ({name}_part)"
        for name in names
    ]
    outputs = ", ".join(f"{name}_one" for name in names)
    return f"""
        {ints("packed", (3,))}
        {outputs} = Split <axis = 3, num_outputs = {len(names)}> ({source})
        {" ".join(lines)}
    """


def _queries(call: Call, heads: int, size: int) -> str:
    """The statements that make q, `key_new` and `value_new` of queries that are apart."""
    hidden = heads * size
    if call.has("bias"):
        columns = call.size("bias", 0, 1)
        biases = f"""
            {ints("widths", (hidden, hidden, columns - 2 * hidden))}
            q_bias, key_bias, value_bias = Split <axis = 0> (bias, widths)
            q_moved = Add (query, q_bias)
        """
    else:
        biases = "q_moved = Identity (query)"
    lines = [biases, heads_of("q", "q_moved", heads, size)]
    if call.rank("key") == 5:
        if call.has("bias"):
            raise call.undefined("a bias of packed keys and values")
        return f"{' '.join(lines)} {_unpacked('key', ('key_new', 'value_new'))}"
    for name in ("key", "value"):
        if call.rank(name) == 4:  # as a past has them
            lines.append(f"{name}_new = Identity ({name})")
            continue
        own = size_of_heads(call, call.size(name, 2, 3), heads)
        moved = f"Add ({name}, {name}_bias)" if call.has("bias") else f"Identity ({name})"
        lines.append(
            f"{name}_moved = {moved} {heads_of(f'{name}_new', f'{name}_moved', heads, own)}"
        )
    return " ".join(lines)
