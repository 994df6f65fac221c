"""Normalisations with the sums that onnxruntime fuses into them."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.definition import Call, defined, ints


@defined(
    """
    SimplifiedLayerNormalization <axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1>
        (X, scale) => (Y, inv_std_var)
""",
    domain="",
)
def simplified_layer_normalization(call: Call) -> str:
    rank = call.rank("X")
    axes = range(call.node.axis(call.integer("axis"), rank), rank)
    return f"""
        Y = RMSNormalization <
            axis: int = @axis, epsilon: float = @epsilon, stash_type: int = @stash_type
        > (X, scale)
        wide = Cast <to = 1> (X)
        squares = Mul (wide, wide)
        {ints("axes", axes)}
        square = ReduceMean <keepdims = 1> (squares, axes)
        epsilon = Constant <value_float: float = @epsilon> ()
        moved = Add (square, epsilon)
        root = Sqrt (moved)
        inv_std_var = Reciprocal (root)
    """


def _sum(call: Call) -> str:
    """The statements that make `input_skip_bias_sum`."""
    added = "Add (sum, bias)" if call.has("bias") else "Identity (sum)"
    return f"sum = Add (input, skip) input_skip_bias_sum = {added}"


@defined("""
    SkipLayerNormalization <epsilon: float = 1e-12>
        (input, skip, gamma, beta?, bias?) => (output, mean, inv_std_var, input_skip_bias_sum)
""")
def skip_layer_normalization(call: Call) -> str:
    return f"""
        {_sum(call)}
        output, mean, inv_std_var = LayerNormalization <axis = -1, epsilon: float = @epsilon>
            (input_skip_bias_sum, gamma, beta)
    """


@defined("""
    SkipSimplifiedLayerNormalization <epsilon: float = 1e-12>
        (input, skip, gamma, bias?) => (output, mean, inv_std_var, input_skip_bias_sum)
""")
def skip_simplified_layer_normalization(call: Call) -> str:
    call.refuse("mean", "inv_std_var")
    return f"""
        {_sum(call)}
        output = RMSNormalization <axis = -1, epsilon: float = @epsilon>
            (input_skip_bias_sum, gamma)
    """


@defined("""
    EmbedLayerNormalization <epsilon: float = 1e-12, mask_index_type: int = 0>
        (input_ids, segment_ids?, word_embedding, position_embedding, segment_embedding?, gamma,
        beta, mask?, position_ids?) => (output, mask_index, embedding_sum)
""")
def embed_layer_normalization(call: Call) -> str:
    call.refuse("mask_index_type")
    call.needs("segment_ids", "segment_embedding")
    return _embedded(call, call.has("segment_embedding"), "output", "mask_index")


_EMBEDDINGS = ("word_embedding", "position_embedding", "segment_embedding", "gamma", "beta")


@defined("""
    QEmbedLayerNormalization <epsilon: float = 1e-12>
        (input_ids, segment_ids?, word_embedding_quant, position_embedding_quant,
        segment_embedding_quant?, gamma_quant, beta_quant, mask?, word_embedding_scale,
        position_embedding_scale, segment_embedding_scale?, gamma_scale, beta_scale,
        word_embedding_zero_point, position_embedding_zero_point,
        segment_embedding_zero_point?, gamma_zero_point, beta_zero_point)
        => (layernorm_out, mask_index_out)
""")
def quantized_embed_layer_normalization(call: Call) -> str:
    segments = ("_quant", "_scale", "_zero_point")
    call.together("segment_ids", *(f"segment_embedding{each}" for each in segments))
    names = [name for name in _EMBEDDINGS if call.has(f"{name}_quant")]
    dequantized = [
        f"{name} = DequantizeLinear ({name}_quant, {name}_scale, {name}_zero_point)"
        for name in names
    ]
    has_segments = call.has("segment_embedding_quant")
    embedded = _embedded(call, has_segments, "layernorm_out", "mask_index_out")
    return f"{' '.join(dequantized)} {embedded}"


def _embedded(call: Call, has_segments: bool, output: str, mask_index: str) -> str:
    """The statements that make `output`, and `mask_index`, which counts the ones of each row.

    Without ids of segments all words are in the first.
    """
    segments = "embedding_sum = Identity (placed)"
    if has_segments:
        first = "ids = Constant <value = int64 {0}> ()"
        segments = f"""
            {"ids = Identity (segment_ids)" if call.has("segment_ids") else first}
            segments = Gather (segment_embedding, ids)
            embedding_sum = Add (placed, segments)
        """
    if call.has("position_ids"):
        places = "places = Gather (position_embedding, position_ids)"
    else:
        places = """
            length_vector = Shape <start = 1, end = 2> (input_ids)
            length = Squeeze (length_vector)
            zero = Constant <value = int64 {0}> ()
            one = Constant <value = int64 {1}> ()
            steps = Range (zero, length, one)
            places = Gather (position_embedding, steps)
        """
    if call.has("mask"):
        counts = f"""
            {ints("last", (1,))}
            flag = Constant <value = int32 {{1}}> ()
            is_one = Equal (mask, flag)
            ones = Cast <to = 6> (is_one)
            {mask_index} = ReduceSum <keepdims = 0> (ones, last)
        """
    else:
        counts = f"""
            batch = Shape <start = 0, end = 1> (input_ids)
            {mask_index} = ConstantOfShape <value = int32[1] {{0}}> (batch)
        """
    return f"""
        words = Gather (word_embedding, input_ids)
        {places}
        placed = Add (words, places)
        {segments}
        {output} = LayerNormalization <axis = -1, epsilon: float = @epsilon>
            (embedding_sum, gamma, beta)
        {counts}
    """


@defined("""
    GroupNorm <groups: int, epsilon: float = 1e-5, activation: int = 0,
        channels_last: flag = 1>
        (X, gamma, beta) => (Y)
""")
def group_norm(call: Call) -> str:
    """The activation 1 is x · sigmoid(x); gamma and beta may be of a wider type than X."""
    is_last, activation = call.integer("channels_last"), call.integer("activation")
    if activation not in (0, 1):
        raise call.undefined_value("activation")
    before = "Transpose <perm = [0, 3, 1, 2]>" if is_last else "Identity"
    after = "Transpose <perm = [0, 2, 3, 1]>" if is_last else "Identity"
    return f"""
        x = {before} (X)
        wide = CastLike (x, gamma)
        normal = GroupNormalization <num_groups: int = @groups, epsilon: float = @epsilon>
            (wide, gamma, beta)
        gate = Sigmoid (normal)
        {"y = Mul (normal, gate)" if activation else "y = Identity (normal)"}
        last = {after} (y)
        Y = CastLike (last, X)
    """
