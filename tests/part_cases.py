"""Movement cases of slices, concats and gathers, and of products and attention."""

from __future__ import annotations

from satura.rewrite.types.tensor_type import DType
from tests.movement_words import F32, Case, start

PART_CASES: dict[str, Case] = {
    "M9 split, relu, concat": start(
        lambda b: b.concat(
            [b.unary("relu", b.cut(b.tensor(2, 8), 1, 0, 3)), b.unary("relu", b.cut(0, 1, 3, 8))],
            1,
        )
    ) >> (
        lambda b: b.unary("relu", b.tensor(2, 8))
    ),
    "M9 three parts": start(
        lambda b: b.concat(
            [b.unary("relu", b.cut(b.tensor(9, 2), 0, 0, 3))]
            + [b.unary("relu", b.cut(0, 0, k, k + 3)) for k in (3, 6)],
            0,
        )
    ) >> (
        lambda b: b.unary("relu", b.tensor(9, 2))
    ),
    "M9 swapped parts stay": start(
        lambda b: b.concat(
            [b.unary("relu", b.cut(b.tensor(2, 8), 1, 4, 8)), b.unary("relu", b.cut(0, 1, 0, 4))],
            1,
        )
    ) | (
        lambda b: b.unary("relu", b.tensor(2, 8))
    ),
    "M10 slice that is a part": start(
        lambda b: b.cut(b.concat([b.tensor(2, 3), b.tensor(2, 4, name="y")], 1), 1, 0, 3)
    ) >> (
        lambda b: b.tensor(2, 3)
    ),
    "M10 second part": start(
        lambda b: b.unary(
            "relu", b.cut(b.concat([b.tensor(2, 4, name="y"), b.tensor(2, 3)], 1), 1, 4, 7)
        )
    ) >> (
        lambda b: b.unary("relu", b.tensor(2, 3))
    ),
    "M10 a slice off by one stays": start(
        lambda b: b.unary(
            "relu", b.cut(b.concat([b.tensor(2, 3), b.tensor(2, 4, name="y")], 1), 1, 1, 4)
        )
    ) | (
        lambda b: b.unary("relu", b.tensor(2, 3))
    ),
    "M10 slice that is one product of two": start(
        lambda b: b.cut(
            b.concat(
                [b.matmul(b.tensor(8, 16), b.weight(16, 5)), b.matmul(0, b.weight(16, 7, seed=1))],
                1,
            ),
            1, 5, 12,
        )
    ) >> (
        lambda b: b.matmul(b.tensor(8, 16), b.weight(16, 7, seed=1))
    ),
    "M10 element of a vector that is a part": start(
        lambda b: b.unary("relu", b.gather(
            b.concat([b.tensor(4, 6), b.tensor(1, 6, name="y")], 0), b.constant(4, DType.I64), 0
        ))
    ) >> (
        lambda b: b.unary("relu", b.reshape(b.tensor(1, 6, name="y"), (6,)))
    ),
    "M10 sums of every other row from the last": start(
        lambda b: b.gather(
            b.reduce("sum", b.tensor(5, 600), (1,)), b.constant((-1, -3, -5), DType.I64), 0
        )
    ) >> (
        lambda b: b.reduce("sum", b.slice(b.tensor(5, 600), (4, 0), (3, 600), (-2, 1)), (1,))
    ),
    "M10 rows in uneven steps stay gathered": start(
        lambda b: b.gather(
            b.reduce("sum", b.tensor(5, 600), (1,)), b.constant((-1, -3, -4), DType.I64), 0
        )
    ) | (
        lambda b: b.reduce("sum", b.slice(b.tensor(5, 600), (4, 0), (3, 600), (-2, 1)), (1,))
    ),
    "M11 slice, expand": start(
        lambda b: b.reshape(b.cut(b.tensor(2, 16, 5), 2, 1, 3), (2, 4, 4, 2))
    ) >> (
        lambda b: b.cut(b.reshape(b.tensor(2, 16, 5), (2, 4, 4, 5)), 3, 1, 3)
    ),
    "M12 concat, expand": start(
        lambda b: b.reshape(b.concat([b.tensor(50), b.tensor(50, name="y")], 0), (10, 10))
    ) >> (
        lambda b: b.concat(
            [b.reshape(b.tensor(50), (5, 10)), b.reshape(b.tensor(50, name="y"), (5, 10))], 0
        )
    ),
    "M13 three parts, expand another axis": start(
        lambda b: b.reshape(
            b.concat([b.tensor(100, k, name=f"x{k}") for k in (50, 100, 5)], 1), (10, 10, 155)
        )
    ) >> (
        lambda b: b.concat(
            [b.reshape(b.tensor(100, k, name=f"x{k}"), (10, 10, k)) for k in (50, 100, 5)], 2
        )
    ),
    "M15 transpose, slice": start(
        lambda b: b.cut(b.transpose(b.tensor(1, 256, 128), (0, 2, 1)), 2, 0, 32)
    ) >> (
        lambda b: b.transpose(b.cut(b.tensor(1, 256, 128), 1, 0, 32), (0, 2, 1))
    ),
    "M15 a slice off by one stays": start(
        lambda b: b.cut(b.transpose(b.tensor(1, 256, 128), (0, 2, 1)), 2, 0, 32)
    ) | (
        lambda b: b.transpose(b.cut(b.tensor(1, 256, 128), 1, 1, 33), (0, 2, 1))
    ),
    "M20 attention without scores": start(
        lambda b: b.means_of(
            b.scaled(b.matmul(b.tensor(2, 512, 64), b.tensor(2, 64, 512, name="k"))), 2
        )
    ) >> (
        lambda b: b.attention(
            b.scaled(b.tensor(2, 512, 64)), b.tensor(2, 64, 512, name="k"),
            b.broadcast(b.reshape(b.constant(0.0, F32), (1, 1, 1)), (2, 512, 512)),
            b.tensor(2, 512, 64, name="v"),
        )
    ),
    "M20 weights of all queries are no attention": start(
        lambda b: b.means_of(
            b.scaled(b.matmul(b.tensor(2, 512, 64), b.tensor(2, 64, 512, name="k"))), 1
        )
    ) | (
        lambda b: b.attention(
            b.scaled(b.tensor(2, 512, 64)), b.tensor(2, 64, 512, name="k"),
            b.broadcast(b.reshape(b.constant(0.0, F32), (1, 1, 1)), (2, 512, 512)),
            b.tensor(2, 512, 64, name="v"),
        )
    ),
    "M21 conv, to channels first, flatten, matmul": start(
        lambda b: b.matmul(
            b.reshape(b.first(b.tensor(1, 3, 3, 4)), (1, 36)),
            b.weight(36, 5),
        )
    ) >> (
        lambda b: b.matmul(
            b.reshape(b.tensor(1, 3, 3, 4), (1, 36)),
            b.reshape(
                b.transpose(b.reshape(b.weight(36, 5), (4, 3, 3, 5)), (1, 2, 0, 3)), (36, 5)
            ),
        )
    ),
    "M20 heads merged with batches": start(
        lambda b: b.matmul(
            b.reshape(b.heads(b.tensor(2, 5, 3, 4)), (6, 5, 4)),
            b.transpose(b.reshape(b.heads(b.tensor(2, 5, 3, 4, name="y")), (6, 5, 4)), (0, 2, 1)),
        )
    ) >> (
        lambda b: b.reshape(b.matmul(
            b.heads(b.tensor(2, 5, 3, 4)), b.transpose(b.tensor(2, 5, 3, 4, name="y"), (0, 2, 3, 1))
        ), (6, 5, 5))
    ),
    "M20 heads in the place of rows stay apart": start(
        lambda b: b.matmul(
            b.reshape(b.heads(b.tensor(2, 5, 3, 4)), (6, 5, 4)),
            b.transpose(b.reshape(b.heads(b.tensor(2, 5, 3, 4, name="y")), (6, 5, 4)), (0, 2, 1)),
        )
    ) | (
        lambda b: b.reshape(b.matmul(
            b.reshape(b.tensor(2, 5, 3, 4), (2, 3, 5, 4)),
            b.transpose(b.tensor(2, 5, 3, 4, name="y"), (0, 2, 3, 1)),
        ), (6, 5, 5))
    ),
    "M22 each key serves a group of queries": start(
        lambda b: b.matmul(b.tensor(2, 6, 5, 4), b.transpose(b.reshape(b.broadcast(
            b.reshape(b.tensor(2, 3, 7, 4, name="y"), (2, 3, 1, 7, 4)), (2, 3, 2, 7, 4)
        ), (2, 6, 7, 4)), (0, 1, 3, 2)))
    ) >> (
        lambda b: b.reshape(b.matmul(b.reshape(b.tensor(2, 6, 5, 4), (2, 3, 2, 5, 4)), b.broadcast(
            b.transpose(
                b.reshape(b.tensor(2, 3, 7, 4, name="y"), (2, 3, 1, 7, 4)), (0, 1, 2, 4, 3)
            ), (2, 3, 2, 4, 7),
        )), (2, 6, 5, 7))
    ),
    "M22 keys that alternate serve no group": start(
        lambda b: b.matmul(b.tensor(2, 6, 5, 4), b.transpose(b.reshape(b.broadcast(
            b.reshape(b.tensor(2, 3, 7, 4, name="y"), (2, 1, 3, 7, 4)), (2, 2, 3, 7, 4)
        ), (2, 6, 7, 4)), (0, 1, 3, 2)))
    ) | (
        lambda b: b.reshape(b.matmul(b.reshape(b.tensor(2, 6, 5, 4), (2, 3, 2, 5, 4)), b.broadcast(
            b.transpose(
                b.reshape(b.tensor(2, 3, 7, 4, name="y"), (2, 3, 1, 7, 4)), (0, 1, 2, 4, 3)
            ), (2, 3, 2, 4, 7),
        )), (2, 6, 5, 7))
    ),
}  # fmt: skip
