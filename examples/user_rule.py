"""A user's rule: what it proves, and what it saves.

Run with `python examples/user_rule.py`.
"""

from __future__ import annotations

import numpy as np

import satura
from satura.language import Builder, DType, Law, Program, RuleSet, Tensor, rewrites, rule, unary


@rule
def relu_of_sigmoid(x: Tensor) -> Law:
    """relu(sigmoid(x)) = sigmoid(x): no sigmoid is negative"""
    return rewrites(unary("relu", unary("sigmoid", x)), unary("sigmoid", x))


def gate() -> Program:
    """y = relu(sigmoid(x)) on eight rows of four."""
    build = Builder()
    x = build.input("x", DType.F32, [8, 4])
    return build.program({"y": build.unary("relu", build.unary("sigmoid", x))})


def main() -> None:
    """Print the program before and after, and check that both say the same."""
    before = gate()
    after = satura.optimize(before, rules=RuleSet(relu_of_sigmoid))
    print(f"before:\n{before}\n\nafter:\n{after}")
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    expected = satura.interpret(before, {"x": x})["y"]
    np.testing.assert_array_equal(satura.interpret(after, {"x": x})["y"], expected)


if __name__ == "__main__":
    main()
