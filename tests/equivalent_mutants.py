"""Mutants of functions that need not be caught: they say the same, or something else shows them.

Each entry: how the mutant's text starts, the rule it is about ("" for any), and the reason.
"""

from __future__ import annotations

SYMMETRIC = "what is swapped is only compared, or added"
RANKS = "the ranks agree wherever the left side is well typed"
UNITS = "an axis of extent 1 may count as any other such axis, or as untouched"
EMPTY = "of an empty tensor only the shape counts; the rule merely leaves it alone"
ONE = "the step of at most one element says nothing, nor does the start of none"
NEVER = "no such value occurs"
LAST = "there is one axis, and nothing comes after it; of both parts the same is merged"
ANY_UNIT = "repeated axes have extent 1: any will do"
ASKED = "the rule asks only whether it refuses, which stays the same"
FLOATS = "no integers are drawn for a law of floats"
SAVES = "it only saves work; tests/test_work_conditions.py shows it"
LEFT = "only the left side asks for the number, and matches are drawn before the mistake"

EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    ("_cut_axes, arguments swapped", "", SYMMETRIC),
    ("float_like, condition dropped", "", FLOATS),
    *(("float_like, ", f"pow_by_{number}", LEFT) for number in (2, 3, 4)),
    (
        "float_like, condition inverted",
        "pow_by_minus_half",
        "1/2 is 0 in integers: both sides are 1",
    ),
    ("no_bias, constant: 0 -> ", "", "scores that all have as much more have the same softmax"),
    *(
        (f"{name}, ", rule, SAVES)
        for name, rule in (
            ("is_deep", "matmul_in_parts"),
            ("is_long", "reduce_in_parts"),
            ("part_count", "matmul_in_parts"),
            ("part_count", "reduce_in_parts"),
        )
    ),
    ("longest, any/all", "reduce_in_parts", "any of the axes may be cut"),
    ("_ends, comparison: step > 0 -> step >= 0", "", "no step is 0"),
    ("_ends, constant: 0 -> -1", "", "no step is 0"),
    ("order_of_groups, constant: 0 -> -1", "", "last axes stand in the order of first ones"),
    ("order_of_groups, filter dropped", "", "rare; tests/test_work_conditions.py shows it"),
    ("shape_before_slice, condition dropped", "", SAVES),
    ("shape_before_slice, constant: 1 -> 0", "", SAVES),
    ("reorders_rest, arguments swapped: zip", "", SAVES),
    ("_sums, arguments swapped", "", SYMMETRIC),
    *(
        (start, f"reshape_out_of_binary_{operands}", ASKED)
        for operands in ("xy", "yx")
        for start in (
            "blocks, constant",
            "blocks, off by one",
            "blocks, arithmetic",
            "broadcast_before_reshape, condition inverted: if not repeated",
            "broadcast_before_reshape, sign or not dropped",
            "broadcast_before_reshape, constant",
            "broadcast_before_reshape, comparison: type_.shape[axis] == 1",
        )
    ),
    *(
        ("AnyOp.element, arguments swapped: self.op", rule, "select has no attributes")
        for rule in ("fold_select", "pad_out_of_select")
    ),
    ("blocks, constant: 1 -> 0", "", UNITS),
    ("blocks, filter dropped:  for axis, dim in enumerate(new)", "", UNITS),
    ("blocks, off by one: range(len(theirs)) -> range(len(theirs) + 1)", "", "past the end"),
    ("blocks, off by one: start:end -> start:end + 1", "", "a later group takes its axes back"),
    ("broadcast_before_reshape, constant: 0 -> -1", "", "all entries are equal there"),
    ("broadcast_under_reshape, arguments swapped", "", SYMMETRIC),
    ("composed_slices, constant", "", ONE),
    ("is_commutative, table", "", NEVER),
    ("is_idempotent, table", "", NEVER),
    ("is_smaller_joint, arguments swapped", "", SYMMETRIC),
    ("is_whole, arguments swapped", "", SYMMETRIC),
    ("is_whole, constant: 0", "", EMPTY),
    ("joined_slices, lo/hi, starts/sizes: a.sizes -> a.starts", "", "of equal length"),
    ("joint_shape, arguments swapped", "", "where none is 1 both are equal"),
    ("matched_axes, arithmetic", "reshape_out_of_broadcast", ANY_UNIT),
    ("matched_axes, constant", "reshape_out_of_broadcast", ANY_UNIT),
    ("matched_axes, off by one", "reshape_out_of_broadcast", ANY_UNIT),
    ("matched_axes, arithmetic", "reshape_out_of_concat", LAST),
    ("matched_axes, constant", "reshape_out_of_concat", LAST),
    ("pads_other_axes, arguments swapped", "", SYMMETRIC),
    ("part_of_reshape, constant: 0 -> -1", "", "no part of a well-typed whole is negative"),
    ("part_of_reshape, operand dropped", "", "no part of a well-typed whole is negative"),
    ("Perm.__getitem__, condition dropped", "", RANKS),
    ("preimage, sign or not dropped", "", "another value with the same image"),
    ("reduces_alike, table", "", NEVER),
    ("reduces_alike, constant: 1 -> 2", "", "an axis repeated once is not repeated"),
    (
        "row_perm, no inverse",
        "",
        "three long axes are rarely drawn; models that flatten images show it",
    ),
    ("rows_by_axis, sign or not dropped: -1 -> 1", "", "a matrix: its last axis is its second"),
    ("same_combination, table", "", NEVER),
    ("slices_at, constant: 1 -> 2", "", ONE),
    ("slices_before_broadcast, arguments swapped", "", SYMMETRIC),
    ("slices_before_broadcast, constant: 1 -> 2", "", ONE),
    ("slices_inside, comparison: step > 0 -> step >= 0", "", "no step is 0"),
    ("slices_inside, constant: 0 -> -1", "", "no step is 0"),
    ("summed_padding, arguments swapped", "", SYMMETRIC),
    ("Window.padded, condition dropped", "", RANKS),
    ("Window.padded, lo/hi, starts/sizes: padding.lo", "", "only their lengths are compared"),
    ("Window.permuted, condition dropped", "", RANKS),
)


def excuse(mutant: str, rule: str) -> tuple[str, str, str] | None:
    """The entry that says why the mutant need not be caught in `rule`; None where none does.

    One about the rule comes before one about any.
    """
    fitting = [
        entry for entry in EQUIVALENT if mutant.startswith(entry[0]) and entry[1] in ("", rule)
    ]
    return max(fitting, key=lambda entry: entry[1], default=None)
