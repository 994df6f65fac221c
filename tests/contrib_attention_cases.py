"""Nodes of onnxruntime's attention ops, with inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.contrib_cases import F32, I32, I64, Case, _f, _opened, _s

B, S, N, H = 2, 5, 2, 4
D = N * H


def attended() -> Iterator[Case]:
    yield from attention()
    yield from multi_head()
    yield from rotary()


def attention() -> Iterator[Case]:
    x, w, b = _f(1, B, S, 6), _f(2, 6, 3 * D), _f(3, 3 * D)
    lengths, starts = np.array([3, 5], I32), np.array([1, 0], I32)
    rows = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], I32)
    squares = np.stack([np.tril(np.ones((S, S), I32)), np.ones((S, S), I32)])
    past = _f(5, 2, B, N, 3, H)
    longer = np.array([[1, 1, 0, 1, 1, 1, 1, 0], [1] * 8], I32)
    heads: dict[str, object] = {"num_heads": N}
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
        ([x, w, b, rows, None, _f(6, B, N, S, S)], {}),
        ([x, w, b, None, None, _f(6, 1, N, S, S)], {}),
    ):
        case = Case("Attention", inputs, {**heads, **attributes}, constant=(1, 2))
        yield case
        batch = [(at, 0) for at in (0, 3) if at < len(inputs) and inputs[at] is not None]
        if len(inputs) < 6 and not (len(inputs) > 3 and inputs[3].shape == (2 * B,)):
            yield _opened(case, batch=batch)
        if len(inputs) == 3:
            yield _opened(case, batch=[(0, 0)], length=[(0, 1)])
        elif inputs[3] is rows and len(inputs) == 4:
            yield _opened(case, batch=[(0, 0), (3, 0)], length=[(0, 1), (3, 1)])
    for attributes, mask in (({}, None), ({"unidirectional": 1}, None), ({}, longer)):
        yield Case("Attention", [x, w, b, mask, past], {**heads, **attributes}, ("y", "p"))
    yield Case("Attention", [x, w, b], heads, ("y", "p"))
    wide = [x, _f(2, 6, 2 * D + 2 * D), _f(3, 4 * D)]
    yield Case("Attention", wide, {**heads, "qkv_hidden_sizes": [D, D, 2 * D]}, constant=(1, 2))


def multi_head() -> Iterator[Case]:
    q, k, v = _f(1, B, S, D), _f(2, B, 7, D), _f(3, B, 7, 2 * D)
    same = _f(2, B, S, D)
    bias = _f(4, 4 * D)
    rows = np.array([[1, 1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1, 1]], I32)
    heads: dict[str, object] = {"num_heads": N}
    for inputs, attributes in (
        ([q, k, v], {}),
        ([q, k, v, bias], {}),
        ([q, same, same], {"unidirectional": 1}),
        ([q, k, v], {"scale": 0.2}),
        ([q, k, v, None, rows], {}),
        ([q, k, v, None, rows], {"mask_filter_value": -100.0}),
        ([q, k, v, bias, np.array([3, 7], I32)], {}),
        ([q, k, v, None, np.broadcast_to(rows[:, None], (B, S, 7)).copy()], {}),
        ([q, k, v, None, None, _f(6, B, N, S, 7)], {}),
        ([q, k, v, None, rows, _f(6, 1, 1, S, 7)], {}),
        ([q, _f(2, B, N, 7, H), _f(3, B, N, 7, H)], {}),
        ([_f(1, B, S, N, 3, H)], {}),
        ([q, _f(2, B, 7, N, 2, H)], {}),
    ):
        case = Case("MultiHeadAttention", inputs, {**heads, **attributes})
        yield case
        if len(inputs) == 3 and inputs[1].ndim == 3 and inputs[1] is k:
            yield _opened(case, batch=[(0, 0), (1, 0), (2, 0)], length=[(0, 1)],
                          keys=[(1, 1), (2, 1)])  # fmt: skip
    past = [_f(7, B, N, 3, H), _f(8, B, N, 3, H)]
    outputs = ("y", "k", "v")
    own = [q, same, _f(3, B, S, D)]
    yield Case("MultiHeadAttention", [*own, None, None, None, *past], heads, outputs)
    case = Case("MultiHeadAttention", [*own, _f(4, 3 * D), None, None, *past],
                {**heads, "unidirectional": 1}, outputs)  # fmt: skip
    yield case
    yield _opened(case, past=[(6, 2), (7, 2)], length=[(0, 1), (1, 1), (2, 1)])
    yield Case("MultiHeadAttention", own, heads, outputs)


def rotary() -> Iterator[Case]:
    flat, apart = _f(1, B, S, D), _f(1, B, N, S, H)
    cos, sin = np.cos(_f(2, 16, H // 2)), np.sin(_f(2, 16, H // 2))
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
        yield _opened(case, n=pairs)
    half = [np.cos(_f(2, 16, 1)), np.sin(_f(2, 16, 1))]
    attributes = {"num_heads": N, "rotary_embedding_dim": 2}
    yield Case("RotaryEmbedding", [flat, places, *half], attributes, constant=(2, 3))
