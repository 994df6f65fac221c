"""The checker: draws instances of a rule from its own pattern and compares both sides.

To be read in this order:

- The question and its answer: `testing` checks a rule, `refute` asks for a failure alone, `report`
  is what comes out, `coverage` what the instances cover.
- Draws: `instances` from the result down, by `operands`, `layout_operands` and `user_ops`;
  `from_operands` from the variables up; `named_values` and `read_values` are what a rule mentions.
- What fires: `side_conditions` draws until enough does. Matches that meet conditions are made by
  `solved` and `solved_within`; `other_branches` makes those that take a rare branch; `comparisons`
  is how these know what a function compares. `retyped` tries other dtypes.
- What draws leave out: `extremes`; extents that are large, open, exchanged or at a border
  (`large_extents`, `open_extents`, `open_borders`, `exchanged_extents`, `named_paddings`); further
  axes (`lifted`); attributes one step away (`neighbours`, `common_steps`); other dtypes and
  functions (`every_choice`); constants (`plain_constants`, `index_constants`).
- Values: `arguments`, `indices`, `chosen_elements`, `answer_steps`; each of 8 bits (`every_scalar`,
  `every_value`).
- Comparison: `both_sides` as one program, by `compare` and `disagreement`, but for `overflow`;
  `in_egraph` the rule at work; `unstable` functions that change their minds.
- Counterexamples: `shrink` makes them small, by `fewer_axes`, `smaller_extents`, `plain_dtypes` and
  `simpler_numbers`; `counterexample` and `no_right_side` are their text.
"""
