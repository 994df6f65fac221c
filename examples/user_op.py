"""A user's op: it fuses, compiles, moves layouts, obeys laws, and is saved as ONNX.

Run with `python examples/user_op.py`, or use it: `satura run MODEL --with examples/user_op.py`.
"""

from __future__ import annotations

import numpy as np

import satura
from satura.language import Builder, Law, Program, Tensor, rewrites, rule, unary
from satura.ops import FLOATS, DType, TensorType, op, refuse_unless
from satura.rules import DEFAULT
from satura.testing import assert_sound


@op(formula="x / (1 + abs(x))", domain="example", op_type="Softsign")
def soft(x: TensorType) -> TensorType:
    """x / (1 + |x|)"""
    refuse_unless(x.dtype in FLOATS, "soft takes floats")
    return x


@op(formula="x + (y - x) * t", domain="example", op_type="Lerp")
def lerp(x: TensorType, y: TensorType, t: TensorType) -> TensorType:
    """From x, where t is 0, to y, where t is 1."""
    return x


@rule
def soft_is_odd(x: Tensor) -> Law:
    """soft(-x) = -soft(x)"""
    return rewrites(soft(unary("neg", x)), unary("neg", soft(x)))


def blend() -> Program:
    """Two images, channels first, blended half and half, in a model that is channels last."""
    build = Builder()
    x, y = (build.input(name, DType.F32, [1, 8, 8, 3]) for name in "xy")
    first, second = (build.transpose(image, (0, 3, 1, 2)) for image in (x, y))
    half = build.broadcast(build.constant([[[[0.5]]]], DType.F32), (1, 3, 8, 8))
    bent = build.unary("neg", build.add(soft, (build.unary("neg", first),)))
    mixed = build.add(lerp, (bent, second, half))
    return build.program({"image": build.transpose(mixed, (0, 2, 3, 1))})


def main() -> None:
    """Show what the rules make of the program, and that the kernel computes the same."""
    assert_sound(soft_is_odd)
    before = blend()
    compiled = satura.compile(before, threads=2, rules=DEFAULT + soft_is_odd, verify=True)
    print(f"before:\n{before}\n\nafter:\n{compiled.program}")
    print(f"\n{compiled.statistics['dispatch-count']} dispatch")
    assert not any(node.op.name == "transpose" for node in compiled.program.nodes)
    satura.save(compiled.program, "blend.onnx")
    random = np.random.default_rng(0)
    images = {name: random.standard_normal((1, 8, 8, 3)).astype(np.float32) for name in "xy"}
    again = satura.interpret(satura.load("blend.onnx"), images)
    meant = satura.interpret(compiled.program, images)
    np.testing.assert_array_equal(again["image"], meant["image"])


if __name__ == "__main__":
    main()
