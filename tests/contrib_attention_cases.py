"""Nodes of onnxruntime's attention ops, with inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.contrib_cases import (
    F32,
    I32,
    I64,
    S8,
    U8,
    Array,
    Attributes,
    Case,
    f32s,
    number,
    octets,
    opened,
)

B, S, N, H = 2, 5, 2, 4
D = N * H


def attended() -> Iterator[Case]:
    yield from attention()
    yield from multi_head()
    yield from rotary()
    yield from shared()


def attention() -> Iterator[Case]:
    x, w, b = f32s(1, B, S, 6), f32s(2, 6, 3 * D), f32s(3, 3 * D)
    lengths, starts = np.array([3, 5], I32), np.array([1, 0], I32)
    rows = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], I32)
    squares = np.stack([np.tril(np.ones((S, S), I32)), np.ones((S, S), I32)])
    past = f32s(5, 2, B, N, 3, H)
    longer = np.array([[1, 1, 0, 1, 1, 1, 1, 0], [1] * 8], I32)
    heads: Attributes = {"num_heads": N}
    for inputs, attributes in (
        ([x, w, b], {}),
        ([x, w, b], {"unidirectional": 1}),
        ([x, w, b], {"scale": 0.3}),
        ([x, w, None], {}),
        ([x, w, b, lengths], {}),
        ([x, w, b, np.concatenate([lengths, starts])], {}),
        ([x, w, b, rows], {}),
        ([x, w, b, rows], {"unidirectional": 1}),
        ([x, w, b, rows], {"mask_filter_value": -50.0}),
        ([x, w, b, squares], {}),
        ([x, w, b, rows, None, f32s(6, B, N, S, S)], {}),
        ([x, w, b, None, None, f32s(6, 1, N, S, S)], {}),
    ):
        yield Case("Attention", inputs, {**heads, **attributes}, constant=(1, 2))
    for attributes in ({}, {"unidirectional": 1}):
        both: Attributes = {**heads, **attributes}
        case = Case("Attention", [x, w, b], both, constant=(1, 2))
        yield opened(case, batch=[(0, 0)], length=[(0, 1)])
        case = Case("Attention", [x, w, b, rows], both, constant=(1, 2))
        yield opened(case, batch=[(0, 0), (3, 0)], length=[(0, 1), (3, 1)])
        case = Case("Attention", [x, w, b, lengths], both, constant=(1, 2))
        yield opened(case, batch=[(0, 0), (3, 0)], length=[(0, 1)])
    for attributes, mask in (({}, None), ({"unidirectional": 1}, None), ({}, longer)):
        yield Case("Attention", [x, w, b, mask, past], {**heads, **attributes}, ("y", "p"))
    yield Case("Attention", [x, w, b], heads, ("y", "p"))
    step = [number(0.02), number(0.01)]
    quantised = [octets(1, B, S, 6), octets(2, 6, 3 * D, dtype=S8), b]
    columns = [number(0.02), np.linspace(0.01, 0.02, 3 * D, dtype=F32)]
    zeros = [number(131, U8), number(2, S8)]
    for attributes, rest in (
        ({}, step), ({}, [*step, rows, *zeros]), ({}, [*columns, None, *zeros]),
        ({"unidirectional": 1}, [*step, None, *zeros, past]),
    ):  # fmt: skip
        outputs = ("y", "p") if len(rest) > 5 else ("y",)
        case = Case("QAttention", [*quantised, *rest], {**heads, **attributes}, outputs)
        yield replace(case, constant=(1, 2, 3, 4, 6, 7))
    wide = [x, f32s(2, 6, 2 * D + 2 * D), f32s(3, 4 * D)]
    yield Case("Attention", wide, {**heads, "qkv_hidden_sizes": [D, D, 2 * D]}, constant=(1, 2))


def _of_packed(packed: Array) -> Array:
    return _of_heads(*np.moveaxis(packed, 3, 0))


def _of_packed_keys(q: Array, packed: Array) -> Array:
    return _of_heads(q.reshape(B, S, N, H), *np.moveaxis(packed, 3, 0))


def _of_heads(q: Array, k: Array, v: Array) -> Array:
    """The attention of [batch, length, heads, size]."""
    scores = np.exp(np.einsum("bsnh,btnh->bnst", q, k) / np.sqrt(H))
    shares = scores / scores.sum(-1, keepdims=True)
    return np.asarray(np.einsum("bnst,btnh->bsnh", shares, v).reshape(B, S, D), F32)


def multi_head() -> Iterator[Case]:
    q, k, v = f32s(1, B, S, D), f32s(2, B, 7, D), f32s(3, B, 7, 2 * D)
    same = f32s(2, B, S, D)
    bias = f32s(4, 4 * D)
    rows = np.array([[1, 1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1, 1]], I32)
    heads: Attributes = {"num_heads": N}
    yield Case("MultiHeadAttention", [f32s(1, B, S, N, 3, H)], heads, oracle=_of_packed)
    yield Case("MultiHeadAttention", [q, f32s(2, B, 7, N, 2, H)], heads, oracle=_of_packed_keys)
    for inputs, attributes in (
        ([q, k, v], {}),
        ([q, k, v, bias], {}),
        ([q, same, same], {"unidirectional": 1}),
        ([q, k, v], {"scale": 0.2}),
        ([q, k, v, None, rows], {}),
        ([q, k, v, None, rows], {"mask_filter_value": -100.0}),
        ([q, k, v, bias, np.array([3, 7], I32)], {}),
        ([q, k, v, None, np.broadcast_to(rows[:, None], (B, S, 7)).copy()], {}),
        ([q, k, v, None, None, f32s(6, B, N, S, 7)], {}),
        ([q, k, v, None, rows, f32s(6, 1, 1, S, 7)], {}),
        ([q, f32s(2, B, N, 7, H), f32s(3, B, N, 7, H)], {}),
    ):
        yield Case("MultiHeadAttention", inputs, {**heads, **attributes})
    apart = [(0, 0), (1, 0), (2, 0)]
    for given in ([q, k, v], [q, k, v, bias]):
        case = Case("MultiHeadAttention", given, heads, constant=(3,))
        yield opened(case, batch=apart, length=[(0, 1)], keys=[(1, 1), (2, 1)])
    case = Case("MultiHeadAttention", [q, k, v, None, rows], heads)
    yield opened(case, batch=[*apart, (4, 0)], keys=[(1, 1), (2, 1), (4, 1)])
    past = [f32s(7, B, N, 3, H), f32s(8, B, N, 3, H)]
    outputs = ("y", "k", "v")
    own = [q, same, f32s(3, B, S, D)]
    yield Case("MultiHeadAttention", [*own, None, None, None, *past], heads, outputs)
    case = Case("MultiHeadAttention", [*own, f32s(4, 3 * D), None, None, *past],
                {**heads, "unidirectional": 1}, outputs)  # fmt: skip
    yield case
    yield opened(case, past=[(6, 2), (7, 2)], length=[(0, 1), (1, 1), (2, 1)])
    yield Case("MultiHeadAttention", own, heads, outputs)


def rotary() -> Iterator[Case]:
    flat, apart = f32s(1, B, S, D), f32s(1, B, N, S, H)
    cos, sin = np.cos(f32s(2, 16, H // 2)), np.sin(f32s(2, 16, H // 2))
    places = np.array([[0, 1, 2, 3, 4], [3, 4, 9, 5, 6]], I64)
    for x, where, attributes in (
        (flat, places, {}),
        (apart, places, {}),
        (flat, np.array([4], I64), {}),
        (apart, np.array([0], I64), {}),
        (flat, places, {"interleaved": 1}),
        (apart, places, {"interleaved": 1}),
        (flat, places, {"num_heads": N}),
    ):
        case = Case("RotaryEmbedding", [x, where, cos, sin], attributes, constant=(2, 3))
        yield case
        length = (0, x.ndim - 2)
        pairs = [length, (1, 1)] if where.ndim == 2 else [length]
        yield opened(case, n=pairs)
    half = [np.cos(f32s(2, 16, 1)), np.sin(f32s(2, 16, 1))]
    attributes = {"num_heads": N, "rotary_embedding_dim": 2}
    yield Case("RotaryEmbedding", [flat, places, *half], attributes, constant=(2, 3))


def shared() -> Iterator[Case]:
    q, k, v = f32s(1, B, 3, 4 * 16), f32s(2, B, 3, 2 * 16), f32s(3, B, 3, 2 * 16)
    rotation = [np.cos(f32s(4, 16, 8)), np.sin(f32s(5, 16, 8))]
    past = [f32s(6, B, 2, 4, 16), f32s(7, B, 2, 4, 16)]
    packed = np.concatenate([q, k, v], -1)
    heads: Attributes = {"num_heads": 4, "kv_num_heads": 2}
    outputs = ("y", "k", "v")
    first = [np.array([2, 2], I32), np.array(3, I32)]
    for inputs in (
        [q, k, v, None, None, *first],
        [q, k, v, None, None, *first, *rotation],
        [q, k, v, *([past[0][:, :, :0]] * 2), *first, *rotation],
    ):
        attributes = {**heads, "do_rotary": int(len(inputs) > 7)}
        case = Case("GroupQueryAttention", inputs, attributes, outputs)
        yield case
        yield opened(case, batch=[(at, 0) for at in (0, 1, 2, 5)])
        shorter = [*inputs[:5], np.array([2, 1], I32), *inputs[6:]]
        # What is computed of queries behind the keys of a row is not defined.
        yield replace(case, inputs=shorter, compared=("k", "v"))
    for attributes in (
        {}, {"scale": 0.3, "softcap": 5.0}, {"local_window_size": 3}, {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1},
    ):  # fmt: skip
        turned = rotation if "do_rotary" in attributes else []
        whole = [x[:1] for x in (q, k, v, *past)]
        inputs = [*whole, np.array([6], I32), np.array(7, I32), *turned]
        case = Case("GroupQueryAttention", inputs, {**heads, **attributes}, outputs)
        yield case
        yield replace(case, constant=(6,))
        one = [x[:, :1] for x in (q, k, v)]
        inputs = [*one, *past, np.array([4, 4], I32), np.array(5, I32), *turned]
        case = Case("GroupQueryAttention", inputs, {**heads, **attributes}, outputs)
        yield case
        yield replace(case, constant=(6,))
        yield opened(case, past=[(3, 2), (4, 2)], batch=[(at, 0) for at in range(6)])
        fewer = [*inputs[:5], np.array([2, 4], I32), *inputs[6:]]
        yield replace(case, inputs=fewer)
    inputs = [
        packed[:1],
        None,
        None,
        past[0][:1],
        past[1][:1],
        np.array([6], I32),
        np.array(7, I32),
    ]
    yield Case("GroupQueryAttention", [*inputs, *rotation], {**heads, "do_rotary": 1}, outputs)
    bias = [None, f32s(8, 1, 1, 3, 7)]
    yield Case("GroupQueryAttention", [*inputs, None, None, *bias], heads, outputs)
