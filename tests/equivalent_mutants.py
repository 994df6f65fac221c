"""Mutants of functions that say the same as the function, or whose change is none of soundness.

A few are wrong, but refuted only in another rule that calls the function: those say so.

Each entry: how the mutant's text starts, the rule it is about ("" for any), and the reason.
"""

from __future__ import annotations

SYMMETRIC = "what is swapped is only compared, or added"
RANKS = "the ranks agree wherever the left side is well typed"
UNITS = "an axis of extent 1 may count as any other such axis, or as untouched"
EMPTY = "of an empty tensor only the shape counts; the rule merely leaves it alone"
WORK = "the condition only keeps the e-graph small"
ONE = "the step of at most one element says nothing, nor does the start of none"
NEVER = "no such value occurs"
LAST = "there is one axis, and nothing comes after it"

EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    ("Perm.__getitem__, condition dropped", "", RANKS),
    ("Window.padded, condition dropped", "", RANKS),
    ("Window.padded, lo/hi, starts/sizes: padding.lo", "", "only their lengths are compared"),
    (
        "_static, condition dropped",
        "pad_into_conv",
        "refuted at pad_into_pool, and rarely drawn here",
    ),
    ("Window.padded, arguments swapped", "", SYMMETRIC),
    ("Window.permuted, condition dropped", "", RANKS),
    ("Perm.is_identity", "transpose_of_units", WORK),
    ("moves_only_units, constant: 1 -> 0", "transpose_of_units", EMPTY),
    ("moves_units", "transpose_of_units", WORK),
    ("_source_order", "transpose_past_reshape", WORK),
    ("only_element", "constant_of_one_element", WORK),
    ("_cut_axes, arguments swapped", "", SYMMETRIC),
    ("_cut_axes", "reshape_past_slice", UNITS),
    ("_ends, comparison: step > 0 -> step >= 0", "", "no step is 0"),
    ("_ends, constant: 0 -> -1", "", "no step is 0"),
    ("slices_inside, comparison: step > 0 -> step >= 0", "", "no step is 0"),
    ("slices_inside, constant: 0 -> -1", "", "no step is 0"),
    ("slices_inside, constant: 1 -> 0", "", EMPTY),
    ("slices_inside, operand dropped: known_at_least(size, 1)", "", EMPTY),
    ("slices_in_first", "", EMPTY),
    ("slices_in_second", "", EMPTY),
    ("_order_of_groups, constant: 0 -> -1", "", "last axes stand in the order of first ones"),
    ("_sums, arguments swapped", "", SYMMETRIC),
    ("summed_padding, arguments swapped", "", SYMMETRIC),
    ("blocks, condition dropped", "transpose_past_reshape", EMPTY),
    ("blocks, condition inverted", "transpose_past_reshape", EMPTY),
    ("blocks, comparison: 0 not in", "transpose_past_reshape", EMPTY),
    ("blocks, constant: 0", "transpose_past_reshape", EMPTY),
    ("blocks, constant: 1 -> 0", "", UNITS),
    ("blocks, filter dropped:  for axis, dim in enumerate(new)", "", UNITS),
    ("blocks, off by one: range(len(theirs)) -> range(len(theirs) + 1)", "", "past the end"),
    ("blocks, off by one: start:end -> start:end + 1", "", "a later group takes its axes back"),
    ("broadcast_before_reshape, constant: 0 -> -1", "", "all entries are equal there"),
    ("broadcast_under_reshape, arguments swapped", "", SYMMETRIC),
    ("broadcast_under_reshape, filter dropped", "", UNITS),
    ("composed_slices, constant", "", ONE),
    ("is_commutative, table", "", NEVER),
    ("is_idempotent, table", "", NEVER),
    ("holds_all_values, table: WHOLE_BYTES[wide] -> WHOLE_BYTES[wide] + 1", "", NEVER),
    ("is_whole, arguments swapped", "", SYMMETRIC),
    ("is_whole, constant: 0", "", EMPTY),
    ("joined_slices, lo/hi, starts/sizes: a.sizes -> a.starts", "", "of equal length"),
    ("joined_slices", "concat_into_left_slices", "refuted at join_slices, and rarely drawn here"),
    ("joined_slices", "concat_into_right_slices", "refuted at join_slices, and rarely drawn here"),
    ("joined_slices, arithmetic: a.sizes[at] * a.steps[at] -> a.sizes[at] //", "", "rarely drawn"),
    ("joint_shape, arguments swapped", "", "where none is 1 both are equal"),
    ("matched_axes", "reshape_out_of_concat", LAST + "; of both parts the same is merged"),
    ("matched_axes", "reshape_out_of_broadcast", "repeated axes have extent 1: any will do"),
    ("matched_axes, condition dropped", "", EMPTY),
    ("matched_axes, constant", "", UNITS + "; " + EMPTY),
    ("matched_axes, off by one", "", UNITS),
    ("padding_under_reshape", "", UNITS),
    ("pads_other_axes, arguments swapped", "", SYMMETRIC),
    ("part_of_reshape, constant: 0 -> -1", "", "no part of a well-typed whole is negative"),
    ("part_of_reshape, operand dropped", "", "no part of a well-typed whole is negative"),
    ("preimage, constant: 1 -> 2", "", "another value with the same image"),
    ("preimage, branches swapped", "", "other guesses; each is checked"),
    ("preimage, sign or not dropped", "", "another value with the same image"),
    ("reduces_alike, constant: 1 -> 2", "", "an axis repeated once is not repeated"),
    ("rows_by_axis, sign or not dropped: -1 -> 1", "", "a matrix: its last axis is its second"),
    ("slices_before_broadcast, arguments swapped", "", SYMMETRIC),
    ("slices_before_broadcast, constant: 1 -> 2", "", ONE),
    ("with_units, any/all", "", UNITS),
)


def reason_for(mutant: str, rule: str) -> str | None:
    """Why the mutant need not be refuted in `rule`; None where nothing excuses it."""
    reasons = (
        reason for start, of, reason in EQUIVALENT if mutant.startswith(start) and of in ("", rule)
    )
    return next(reasons, None)
