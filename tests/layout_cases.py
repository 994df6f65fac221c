"""Movement cases of pads, transposes, reshapes and casts."""

from __future__ import annotations

from satura.rewrite.types.tensor_type import DType
from tests.movement_words import F32, Case, start

LAYOUT_CASES: dict[str, Case] = {
    "M1 pad, conv": start(
        lambda b: b.conv_last(b.pad_spatial(b.tensor(1, 8, 8, 4)), b.border())
    ) >> (
        lambda b: b.conv_last(b.tensor(1, 8, 8, 4), b.border(1))
    ),
    "M1 channels first": start(
        lambda b: b.conv_first(b.pad_spatial(b.tensor(1, 4, 8, 8), first=2, amount=2), b.border())
    ) >> (
        lambda b: b.conv_first(b.tensor(1, 4, 8, 8), b.border(2))
    ),
    "M1 the window has a border too": start(
        lambda b: b.conv_last(b.pad_spatial(b.tensor(1, 8, 8, 4)), b.border(1, 0))
    ) >> (
        lambda b: b.conv_last(b.tensor(1, 8, 8, 4), b.border(2, 1))
    ),
    "M1 pad of 1.0 is not a border of 0": start(
        lambda b: b.conv_last(b.pad_spatial(b.tensor(1, 8, 8, 4), value=1), b.border())
    ) | (
        lambda b: b.conv_last(b.tensor(1, 8, 8, 4), b.border(1))
    ),
    "M1 pad of 1.0 is a border of 1": start(
        lambda b: b.conv_last(b.pad_spatial(b.tensor(1, 8, 8, 4), value=1), b.border())
    ) >> (
        lambda b: b.conv_last(b.tensor(1, 8, 8, 4), b.border(1, fill=1))
    ),
    "M2 pad, relu, conv": start(
        lambda b: b.conv_last(
            b.unary("relu", b.pad_spatial(b.tensor(1, 8, 8, 4), amount=2)), b.border()
        )
    ) >> (
        lambda b: b.conv_last(b.unary("relu", b.tensor(1, 8, 8, 4)), b.border(2))
    ),
    "M2 relu of a pad of 1.0 pads with 1.0": start(
        lambda b: b.conv_last(
            b.unary("relu", b.pad_spatial(b.tensor(1, 8, 8, 4), value=1)), b.border()
        )
    ) | (
        lambda b: b.conv_last(b.unary("relu", b.tensor(1, 8, 8, 4)), b.border(1))
    ),
    "M2 sigmoid of a pad of 0 pads with a half": start(
        lambda b: b.conv_last(
            b.unary("sigmoid", b.pad_spatial(b.tensor(1, 8, 8, 4), amount=2)), b.border()
        )
    ) >> (
        lambda b: b.conv_last(b.unary("sigmoid", b.tensor(1, 8, 8, 4)), b.border(2, fill=0.5))
    ),
    "M3 one pad, two convs": start(
        lambda b: (
            b.conv_last(b.pad_spatial(b.tensor(1, 8, 8, 4)), b.border()),
            b.unary("relu", b.conv_last(b.pad_spatial(0), b.border())),
        )
    ) >> (
        lambda b: (
            b.conv_last(b.tensor(1, 8, 8, 4), b.border(1)),
            b.unary("relu", b.conv_last(0, b.border(1))),
        )
    ),
    "M4 pad, pad": start(
        lambda b: b.pad_spatial(b.pad_spatial(b.tensor(1, 4, 4, 2), value=3), amount=2, value=3)
    ) >> (
        lambda b: b.pad_spatial(b.tensor(1, 4, 4, 2), amount=3, value=3)
    ),
    "M4 different values stay apart": start(
        lambda b: b.pad_spatial(b.pad_spatial(b.tensor(1, 4, 4, 2), value=3), amount=2, value=0)
    ) | (
        lambda b: b.pad_spatial(b.tensor(1, 4, 4, 2), amount=3, value=0)
    ),
    "M4 pad, pad, conv": start(
        lambda b: b.conv_last(
            b.pad_spatial(b.pad_spatial(b.tensor(1, 8, 8, 4)), amount=2), b.border()
        )
    ) >> (
        lambda b: b.conv_last(b.tensor(1, 8, 8, 4), b.border(3))
    ),
    "M5 to channels first, pad, conv, back": start(
        lambda b: b.last(
            b.conv_first(b.pad_spatial(b.first(b.tensor(1, 8, 8, 4)), first=2), b.border())
        )
    ) >> (
        lambda b: b.conv_last(b.tensor(1, 8, 8, 4), b.border(1))
    ),
    "M6 transpose, relu, back": start(
        lambda b: b.first(b.unary("relu", b.last(b.tensor(2, 3, 4, 5))))
    ) >> (
        lambda b: b.unary("relu", b.tensor(2, 3, 4, 5))
    ),
    "M6 diamond": start(
        lambda b: b.first(
            b.binary(
                "add",
                b.unary("relu", b.last(b.tensor(2, 3, 4, 5))),
                b.unary("sigmoid", b.last(0)),
            )
        )
    ) >> (
        lambda b: b.binary("add", b.unary("relu", b.tensor(2, 3, 4, 5)), b.unary("sigmoid", 0))
    ),
    "M6 one branch is transposed, the other is not": start(
        lambda b: b.first(
            b.unary(
                "relu",
                b.binary("add", b.last(b.tensor(2, 3, 4, 5)), b.tensor(2, 4, 5, 3, name="y")),
            )
        )
    ) >> (
        lambda b: b.unary(
            "relu", b.binary("add", b.tensor(2, 3, 4, 5), b.first(b.tensor(2, 4, 5, 3, name="y")))
        )
    ),
    "M6 the same rotation twice does not cancel": start(
        lambda b: b.transpose(
            b.unary("relu", b.transpose(b.tensor(3, 3, 3), (1, 2, 0))), (1, 2, 0)
        )
    ) | (
        lambda b: b.unary("relu", b.tensor(3, 3, 3))
    ),
    "M6 transpose, sum, back": start(
        lambda b: b.transpose(
            b.reduce("sum", b.transpose(b.tensor(4, 6, 8), (1, 0, 2)), (2,)), (1, 0, 2)
        )
    ) >> (
        lambda b: b.reduce("sum", b.tensor(4, 6, 8), (2,))
    ),
    "M6 channels-first convolutions in a row": start(
        lambda b: b.conv_first(
            b.unary("relu", b.first(b.conv(b.last(b.tensor(1, 4, 8, 8)), b.weight(1, 1, 4, 4),
                                           b.window(F32, (1, 1))))), b.border(1)
        )
    ) >> (
        lambda b: b.first(
            b.conv_last(
                b.unary("relu", b.conv(b.last(b.tensor(1, 4, 8, 8)), b.weight(1, 1, 4, 4),
                                       b.window(F32, (1, 1)))), b.border(1)
            )
        )
    ),
    "M7 reshape, relu, back": start(
        lambda b: b.reshape(b.unary("relu", b.reshape(b.tensor(6, 4), (2, 12))), (6, 4))
    ) >> (
        lambda b: b.unary("relu", b.tensor(6, 4))
    ),
    "M8 relu, collapse, expand, round": start(
        lambda b: b.unary(
            "round",
            b.reshape(
                b.reshape(b.unary("relu", b.tensor(9, 9, 1, 14)), (9, 9, 14)), (1, 9, 9, 14)
            ),
        )
    ) >> (
        lambda b: b.reshape(
            b.unary("round", b.unary("relu", b.tensor(9, 9, 1, 14))), (1, 9, 9, 14)
        )
    ),
    "M14 cast, collapse, sum": start(
        lambda b: b.reduce(
            "sum", b.reshape(b.cast(b.tensor(2, 8, 4, dtype=DType.F16), F32), (2, 32)), (1,)
        )
    ) >> (
        lambda b: b.reduce(
            "sum", b.cast(b.reshape(b.tensor(2, 8, 4, dtype=DType.F16), (2, 32)), F32), (1,)
        )
    ),
    "M16 transpose, add a broadcast": start(
        lambda b: b.binary(
            "add",
            b.transpose(b.tensor(3, 4, 2), (2, 0, 1)),
            b.broadcast(b.reshape(b.tensor(3, 4, name="y"), (1, 3, 4)), (2, 3, 4)),
        )
    ) >> (
        lambda b: b.transpose(
            b.binary(
                "add",
                b.tensor(3, 4, 2),
                b.broadcast(b.reshape(b.tensor(3, 4, name="y"), (3, 4, 1)), (3, 4, 2)),
            ),
            (2, 0, 1),
        )
    ),
    "M17 collapse, relu, expand": start(
        lambda b: b.reshape(
            b.unary("relu", b.reshape(b.tensor(2, 4, 10, 36), (2, 40, 36))), (2, 40, 6, 6)
        )
    ) >> (
        lambda b: b.reshape(b.unary("relu", b.tensor(2, 4, 10, 36)), (2, 40, 6, 6))
    ),
    "M18 units come and go": start(
        lambda b: b.unary(
            "relu",
            b.reshape(
                b.binary(
                    "mul", b.reshape(b.unary("neg", b.tensor(4)), (4, 1)), b.reshape(0, (4, 1))
                ),
                (1, 4, 1),
            ),
        )
    ) >> (
        lambda b: b.reshape(
            b.unary("relu", b.binary("mul", b.unary("neg", b.tensor(4)), 0)), (1, 4, 1)
        )
    ),
    "M7 a sum, collapsed, by a number of as few axes": start(
        lambda b: b.binary(
            "div", b.reshape(b.reduce("sum", b.tensor(4, 6), (0, 1)), (1,)),
            b.unary("neg", b.reshape(b.constant(3.0, F32), (1,))),
        )
    ) >> (
        lambda b: b.reshape(
            b.binary(
                "div", b.reduce("sum", b.tensor(4, 6), (0, 1)),
                b.reshape(b.unary("neg", b.reshape(b.constant(3.0, F32), (1,))), (1, 1)),
            ),
            (1,),
        )
    ),
}  # fmt: skip
