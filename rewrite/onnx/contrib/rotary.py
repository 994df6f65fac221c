"""Rotary embeddings, and attention over a growing past in which queries share keys and values."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.attention import (
    LEAST,
    PLACES,
    ZERO_AND_ONE,
    attended,
    heads_of,
    size_of_heads,
    with_bias,
)
from satura.rewrite.onnx.contrib.definition import Call, defined, ints


@defined("""
    RotaryEmbedding <num_heads: int = 0, rotary_embedding_dim: int = 0,
        interleaved: flag = 0, is_packed_batching: flag = 0, scale: float = 1.0>
        (input, position_ids, cos_cache, sin_cache) => (output)
""")
def rotary_embedding(call: Call) -> str:
    """A single position is that of the first of each row, and the others follow."""
    call.refuse("is_packed_batching")
    call.shape("input", 3, 4)
    if call.number("scale") != 1:
        raise call.undefined_value("scale")
    heads = call.integer("num_heads")
    if call.rank("input") == 3 and not heads:
        size = 2 * call.size("cos_cache", 1, 2)
        heads = size_of_heads(call, call.size("input", 2), size)
    if call.rank("position_ids") == 2:
        places = "places = Identity (position_ids)"
    else:
        axis = 1 if call.rank("input") == 3 else 2
        places = f"""
            {ZERO_AND_ONE}
            length_vector = Shape <start = {axis}, end = {axis + 1}> (input)
            length = Squeeze (length_vector)
            steps = Range (zero, length, one)
            row = Add (position_ids, steps)
            batch = Shape <start = 0, end = 1> (input)
            shape = Concat <axis = 0> (batch, length_vector)
            places = Expand (row, shape)
        """
    return f"""
        {places}
        output = RotaryEmbedding <
            interleaved: int = @interleaved, rotary_embedding_dim: int = @rotary_embedding_dim,
            num_heads = {heads}
        > (input, cos_cache, sin_cache, places)
    """


@defined("""
    GroupQueryAttention <num_heads: int, kv_num_heads: int, scale: float = 0.0,
        softcap: float = 0.0, local_window_size: int = -1, do_rotary: flag = 0,
        rotary_interleaved: flag = 0, smooth_softmax: int = -1, causal: flag = 1,
        qk_output: int = 0, sliding_window_cache: flag = 0, kv_cache_bit_width: int = 0,
        k_quant_type: string = "NONE", v_quant_type: string = "NONE",
        q_norm_epsilon?: float, k_norm_epsilon?: float, qk_norm_epsilon?: float>
        (query, key?, value?, past_key?, past_value?, seqlens_k, total_sequence_length,
        cos_cache?, sin_cache?, position_ids?, attention_bias?, head_sink?, k_scale?, v_scale?,
        q_norm_weight?, k_norm_weight?, query_seqlens?)
        => (output, present_key, present_value, output_qk)
""")
def group_query_attention(call: Call) -> str:
    """Several heads of queries have the same keys and values, which are appended to the past.

    Of its rows `seqlens_k` has the number of keys, less one; what is behind them is not read.
    """
    call.refuse(
        "qk_output", "sliding_window_cache", "kv_cache_bit_width", "head_sink",
        "k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens", "output_qk",
    )  # fmt: skip
    for names in (("key", "value"), ("past_key", "past_value"), ("cos_cache", "sin_cache")):
        call.together(*names)
    if call.integer("do_rotary") and not call.has("cos_cache"):
        raise call.node.wrong("attribute 'do_rotary' is 1, but there is no input 'cos_cache'")
    if call.integer("smooth_softmax") > 0:
        raise call.undefined_value("smooth_softmax")
    for name in ("k_quant_type", "v_quant_type"):
        if call.text(name) != "NONE":
            raise call.undefined_value(name)
    if not call.integer("causal"):
        raise call.undefined_value("causal")
    heads, shared = call.integer("num_heads"), call.integer("kv_num_heads")
    if shared < 1 or heads % shared:
        raise call.node.wrong(f"{heads} heads cannot share {shared} of keys and values")
    is_packed = not call.has("key")
    every = heads + 2 * shared if is_packed else heads
    size = size_of_heads(call, call.size("query", 2, 3), every)
    if is_packed:
        parts = f"""
            {ints("widths", (heads * size, shared * size, shared * size))}
            q_flat, key_flat, value_flat = Split <axis = -1> (query, widths)
        """
    else:
        parts = """
            q_flat = Identity (query)
            key_flat = Identity (key)
            value_flat = Identity (value)
        """
    return f"""
        {parts}
        {heads_of("q_apart", "q_flat", heads, size)}
        {heads_of("key_apart", "key_flat", shared, size)}
        {heads_of("value_new", "value_flat", shared, size)}
        {_places(call)}
        {_turned(call, "q", "q_apart")}
        {_turned(call, "key_new", "key_apart")}
        {_appended(call, "key", shared, size)}
        {_appended(call, "value", shared, size)}
        {_repeated("k", "present_key", heads, shared, size)}
        {_repeated("v", "present_value", heads, shared, size)}
        {attended(call, size, _masked(call))}
    """


def _places(call: Call) -> str:
    """The statements that make `place`, of the queries, and `before`, how much past each row has.

    Without a past, or in a first call, in which all is new, that is nothing.
    """
    past = "Where (is_first, before_zero, before_later)"
    if not call.has("past_key"):
        past = "Identity (before_zero)"
    return f"""
        length_vector = Shape <start = 1, end = 2> (query)
        {ZERO_AND_ONE}
        length = Squeeze (length_vector)
        steps = Range (zero, length, one)
        last = Cast <to = 7> (seqlens_k)
        {ints("column", (-1, 1))}
        last_column = Reshape (last, column)
        following = Sub (last_column, length)
        before_later = Add (following, one)
        {ints("vector", (1,))}
        total_vector_any = Reshape (total_sequence_length, vector)
        total_vector_wide = Cast <to = 7> (total_vector_any)
        total_wide = Squeeze (total_vector_wide)
        is_first = Equal (total_wide, length)
        before_zero = Mul (before_later, zero)
        before = {past}
        place = Add (before, steps)
    """


def _turned(call: Call, result: str, source: str) -> str:
    """The statement that makes `result` of `source`, turned by its places where asked for."""
    if not call.integer("do_rotary"):
        return f"{result} = Identity ({source})"
    places = "position_ids" if call.has("position_ids") else "place"
    return f"""
        {result} = RotaryEmbedding <interleaved: int = @rotary_interleaved>
            ({source}, cos_cache, sin_cache, {places})
    """


def _appended(call: Call, name: str, shared: int, size: int) -> str:
    """The statements that make the present of a past and of what is new.

    Rows may have less past than there is place for: new elements follow theirs, and zeros these.
    Where it is known how many there are in all, the past has no place for more.
    """
    if not call.has("past_key"):
        return f"present_{name} = Identity ({name}_new)"
    is_known = call.is_known("total_sequence_length")
    if is_known:
        counted = f"""
            {ints(f"{name}_own", (0, shared))}
            {ints(f"{name}_size", (size,))}
            {name}_counts = Concat <axis = 0> ({name}_own, total_vector_wide, {name}_size)
            {name}_all = Reshape ({name}_joined, {name}_counts)
        """
    else:
        counted = f"{name}_all = Identity ({name}_joined)"
    joined = f"{name}_joined = Concat <axis = 2> (past_{name}, {name}_new) {counted}"
    if is_known and call.shape("query")[0] == 1:
        return f"{joined} present_{name} = Identity ({name}_all)"
    return f"""
        {joined}
        {name}_past_vector = Shape <start = 2, end = 3> (past_{name})
        {name}_past = Squeeze ({name}_past_vector)
        {name}_total = Add ({name}_past, length)
        {name}_places = Range (zero, {name}_total, one)
        {name}_skipped = Sub ({name}_past, before)
        {name}_later = Add ({name}_places, {name}_skipped)
        {name}_end = Sub ({name}_total, one)
        {name}_inside = Min ({name}_later, {name}_end)
        {name}_is_past = Less ({name}_places, before)
        {name}_from = Where ({name}_is_past, {name}_places, {name}_inside)
        {ints(f"{name}_axes", (1, 3))}
        {name}_from_wide = Unsqueeze ({name}_from, {name}_axes)
        {name}_shape = Shape ({name}_all)
        {name}_index = Expand ({name}_from_wide, {name}_shape)
        {name}_moved = GatherElements <axis = 2> ({name}_all, {name}_index)
        {name}_used = Add (before, length)
        {name}_is_used = Less ({name}_places, {name}_used)
        {name}_is_used_wide = Unsqueeze ({name}_is_used, {name}_axes)
        {name}_nothing = CastLike (zero, {name}_all)
        present_{name} = Where ({name}_is_used_wide, {name}_moved, {name}_nothing)
    """


def _repeated(result: str, source: str, heads: int, shared: int, size: int) -> str:
    """The statements that make `result` of `source`, each head for so many heads of queries."""
    if heads == shared:
        return f"{result} = Identity ({source})"
    return f"""
        {ints(f"{result}_axis", (2,))}
        {result}_one = Unsqueeze ({source}, {result}_axis)
        {ints(f"{result}_times", (1, 1, heads // shared, 1, 1))}
        {result}_many = Expand ({result}_one, {result}_times)
        {ints(f"{result}_shape", (0, heads, -1, size))}
        {result} = Reshape ({result}_many, {result}_shape)
    """


def _masked(call: Call) -> str:
    """The statements that make `masked` of `scores`: capped, biased, and without what is later or
    before the window."""
    cap, window = call.number("softcap"), call.integer("local_window_size")
    capped = "scores_capped = Identity (scores)"
    if cap:
        capped = f"""
            cap = Constant <value_float = {cap!r}> ()
            capped_less = Div (scores, cap)
            capped_tanh = Tanh (capped_less)
            scores_capped = Mul (capped_tanh, cap)
        """
    inside = "kept = Identity (is_so_far)"
    if window >= 0:
        inside = f"""
            window = Constant <value = int64 {{{window}}}> ()
            window_start = Sub (own, window)
            is_inside = Greater (places, window_start)
            kept = And (is_so_far, is_inside)
        """
    return f"""
        {capped}
        {with_bias(call, "scores_capped")}
        {PLACES}
        {ints("own_axes", (1, 3))}
        own = Unsqueeze (place, own_axes)
        is_so_far = LessOrEqual (places, own)
        {inside}
        {LEAST}
        masked = Where (kept, scores_biased, least)
    """
