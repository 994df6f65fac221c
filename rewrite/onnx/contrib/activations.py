"""Activations with their bias, and what fuses them with other ops."""

from __future__ import annotations

from satura.rewrite.onnx.contrib.definition import Call, defined, defined_as, scalar

defined_as("Gelu (X) => (Y) { Y = Gelu (X) }")
defined_as("BiasGelu (A, B) => (C) { x = Add (A, B) C = Gelu (x) }")
defined_as("BiasAdd (X, bias, skip) => (Y) { x = Add (X, bias) Y = Add (x, skip) }")
defined_as("""
    BiasSplitGelu (X, bias) => (Y) {
        x = Add (X, bias)
        left, right = Split <axis = -1, num_outputs = 2> (x)
        gate = Gelu (right)
        Y = Mul (left, gate)
    }
""")


@defined("FastGelu (X, bias?) => (Y)")
def fast_gelu(call: Call) -> str:
    x = "x = Add (X, bias)" if call.has("bias") else "x = Identity (X)"
    return f'{x} Y = Gelu <approximate = "tanh"> (x)'


@defined("QuickGelu <alpha: float = 1.702> (X) => (Y)")
def quick_gelu(call: Call) -> str:
    """x · sigmoid(alpha · x)"""
    return f"""
        {scalar("alpha", call.number("alpha"), like="X")}
        scaled = Mul (alpha, X)
        gate = Sigmoid (scaled)
        Y = Mul (X, gate)
    """


@defined("BiasSoftmax <axis: int = 1, is_inner_broadcast: flag> (data, bias) => (output)")
def bias_softmax(call: Call) -> str:
    """The softmax over all axes from `axis` on, as one."""
    axis = call.node.axis(call.integer("axis"), call.rank("data"))
    if axis != call.rank("data") - 1 or call.integer("is_inner_broadcast"):
        raise call.undefined("a softmax but over the last axis, or of a bias of inner axes,")
    return "x = Add (data, bias) output = Softmax <axis = -1> (x)"


NUMBERS = {
    "LeakyRelu": ("alpha",), "Elu": ("alpha",), "ThresholdedRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"), "Clip": ("low", "high"),
}  # fmt: skip
"""The numbers of activations that have some: none of them has a default."""


def activated(call: Call, result: str, source: str, parameters: dict[str, float]) -> str:
    """The statement that makes `result` the activation of `source` that the node names.

    Raises UnsupportedError for one without a definition, ModelError where a number is missing.
    """
    name = call.text("activation") or "Identity"
    match name:
        case "Identity" | "Relu" | "Tanh" | "Sigmoid" | "Softplus" | "HardSwish":
            return f"{result} = {name} ({source})"
        case "LeakyRelu" | "Elu" | "ThresholdedRelu" | "HardSigmoid":
            for key in NUMBERS[name]:
                if key not in parameters:
                    raise call.node.wrong(f"activation '{name}' has no number '{key}': give it")
            given = [f"{key} = {parameters[key]!r}" for key in NUMBERS[name]]
            return f"{result} = {name} <{', '.join(given)}> ({source})"
    raise call.undefined_value("activation")
