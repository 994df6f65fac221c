"""Mistakes in rules, their language and their checks, in the e-graph and in extraction."""

from __future__ import annotations

from tests.fault import Fault

REWRITING_FAULTS = (
    # rewrite/language
    Fault(
        "rewrite/language/rule.py",
        "if guard.value(values) != actual:",
        "if guard.value(values) is None:",
        "tests/test_matching.py tests/test_dsl.py tests/test_why.py tests/test_user_ops_rules.py",
    ),
    Fault(
        "rewrite/language/annotations.py",
        "or issubclass(sort, found)",
        "",
        "tests/test_annotations.py",
    ),
    Fault(
        "rewrite/language/annotations.py",
        "in (object, typing.Any, UnionType)",
        "in (object, typing.Any)",
        "tests/test_annotations.py",
    ),
    Fault(
        "rewrite/language/definition.py",
        "code.co_varnames[: code.co_posonlyargcount]",
        "()",
        "tests/test_rule_definitions.py",
    ),
    Fault(
        "rewrite/language/literals.py",
        "isinstance(each, int) and each < 0",
        "False",
        "tests/test_rule_mistakes.py",
    ),
    Fault(
        "rewrite/language/answers.py",
        "if {sort, found} & _CERTAIN:",
        "if sort in _CERTAIN and found in _CERTAIN:",
        "tests/test_rule_mistakes.py",
    ),
    # rewrite/egraph
    Fault(
        "rewrite/egraph/attribute_tables.py",
        "            return None\n",
        "            return arguments[: len(direction.outputs)]\n",
        "tests/test_egraph.py",
    ),
    Fault(
        "rewrite/egraph/tables.py",
        '_fact([node, *known, *static], "(known e)", f"known_{name}")',
        '_fact([node, *known], "(known e)", f"known_{name}")',
        "tests/test_matching.py",
    ),
    Fault(
        "rewrite/egraph/tables.py",
        "_rule([node, *has_elements, source]",
        "_rule([node, source]",
        "tests/test_growth.py",
    ),
    Fault(
        "rewrite/egraph/tables.py",
        '_fact([node, Atom("known", ("e0",))], "(movable e)")',
        '_fact([node, Atom("known", ("e0",))], "(known e)")',
        "tests/test_families.py",
    ),
    Fault(
        "rewrite/egraph/decode.py",
        "None if rule is None else numbers.get(cause.get(entry[1], old))",
        "None if rule is None else numbers.get(old)",
        "tests/test_egraph.py",
    ),
    Fault(
        "rewrite/egraph/saturate.py",
        "for round_ in range(1, self.limits.rounds + 1):",
        "for round_ in range(1, 3):",
        "tests/test_egraph.py",
    ),
    Fault(
        "rewrite/egraph/saturate.py",
        "if self.best is None or found.seconds < self.best.seconds:",
        "if self.best is None or found.seconds > 0:",
        "tests/test_egraph.py",
    ),
    Fault(
        "rewrite/egraph/saturate.py",
        "if self.gainless >= self.limits.gainless:",
        "if self.gainless < self.limits.gainless:",
        "tests/test_egraph.py",
    ),
    # rewrite/extract
    Fault(
        "rewrite/extract/even_steps.py",
        "place is not None and is_affine(offset(place, strides))",
        "place is not None",
        "tests/test_extract.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "gathered_run(classes, node) < _RUN",
        "gathered_run(classes, node) > _RUN",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/variants.py",
        "if _reads_only(each, stored)",
        "if False",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/enumeration.py",
        "if width > 1 and found.leaves & self._outputs:",
        "if found is None:",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/combine.py",
        "in_loops_apart(held, amount)",
        "(amount[0], held[1] + amount[1])",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/combine.py",
        "reads = packed_reads(classes, base, 2 if is_paired else 1)",
        "pass",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/combine.py",
        'node.op == "cast" and _is_sum_of_integers(classes, parts[0])',
        "False",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "slices.steps[moving[-1]] != 1",
        "slices.steps[moving[0]] != 1",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/cost.py",
        "begun = min(self.rates[start], seconds) if total else seconds",
        "begun = self.rates[start]",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "(1 + each) * prod(shape[:axis])",
        "prod(shape[:axis])",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "and not _is_of_known(classes, node)",
        "and _is_of_known(classes, node)",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "log(max(kept, extent) / kept)",
        "0.0",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/fragments.py",
        'return "masked", amount.elements',
        "return amount",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/shares.py",
        "(*path, slices) for path in before",
        "(slices,) for path in before",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/variants.py",
        "if is_other and all(",
        "if False and all(",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/options.py",
        "any(_does_as_well(self[each][1], found) for each in others)",
        "False",
        "tests/test_fragments.py",
    ),
    Fault(
        "rewrite/extract/local_search.py",
        "elif not levels or not self.leave(reader, changed, levels - 1):",
        "else:",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/losers.py",
        "COPIES if is_placement and left",
        "COPIES if False and left",
        "tests/test_why_command.py",
    ),
    Fault(
        "rewrite/extract/settle.py",
        "        if not copies:\n",
        "        if True:\n",
        "tests/test_extract.py",
    ),
    Fault(
        "rewrite/extract/candidates.py",
        "is_alike = is_placement or isinstance(self.found[other], Instance)",
        "is_alike = True",
        "tests/test_extract.py",
    ),
    Fault(
        "rewrite/extract/options.py",
        "if found.template.form in _LOOPS:",
        "if False:",
        "tests/test_fragments.py",
    ),
    Fault(
        "rewrite/extract/combine.py",
        "min(amount, elements * types[leaf].dtype.itemsize)",
        "min(amount, classes.bytes[cls])",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/shares.py",
        "if not larger.paths.isdisjoint(smaller.paths):",
        "if larger.paths.isdisjoint(smaller.paths):",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/cost.py",
        'alone = min(alone, together + self.rates["barrier"])',
        'alone = together + self.rates["barrier"]',
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "flops = 2.0 * batches * rows * vectors * lanes * depth * taps * slowed",
        "flops = 2.0 * batches * rows * vectors * lanes * depth * taps",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/movements.py",
        "if steps[-1] == 1:",
        "if steps[0] == 1:",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/readable.py",
        "    if not is_affine(at):\n        return False",
        "    if not is_affine(at):\n        return True",
        "tests/test_extract.py",
    ),
    Fault(
        "rewrite/extract/placement.py",
        "start[axis.index] = start[axis.index] + program",
        "start[axis.index] = program",
        "tests/test_extract.py",
    ),
    Fault(
        "rewrite/extract/local_search.py",
        "leaf is not None and self.uses[leaf]:\n                self.leave(leaf, changed)",
        "leaf is not None and self.uses[leaf]:\n                self.leave(cls, changed)",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/local_search.py",
        "self.settle(changed)",
        "self.settle([])",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "bool(ends) and ends[-1] > 0",
        "bool(ends) and ends[0] > 0",
        "tests/test_features.py",
    ),
    Fault(
        "rewrite/extract/picks.py",
        "if self.is_less(self.total, before):\n            return True",
        "if not self.is_less(self.total, before):\n            return True",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/local_search.py",
        "if price < allowed and not self.reaches(leaves, cls):",
        "if price < allowed:",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/greedy.py",
        "total += sum(own[cls] for cls in members(below[leaf] & ~bits))",
        "total += sum(own[cls] for cls in members(below[leaf]))",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/landmarks.py",
        "bound += charge",
        "bound += 1.5 * charge",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/landmarks.py",
        "elif dearest is not None and dearest not in zone:",
        "elif dearest is not None and not zone:",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/exact.py",
        "if all(goal in picks for goal in graph.goals):",
        "if picks:",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/candidates.py",
        "for round_ in range(rounds):",
        "for round_ in range(0):",
        "tests/test_extractors.py",
    ),
    Fault(
        "rewrite/extract/schedule.py",
        "dispatch.form is Form.LOOP and all(known[node] for node in dispatch.operands)",
        "dispatch.form is Form.LOOP and any(known[node] for node in dispatch.operands)",
        "tests/test_extract.py",
    ),
    Fault(
        "rewrite/extract/verify.py",
        "read = available.issuperset(self.nodes[node].operands)",
        "read = True",
        "tests/test_schedule_text.py",
    ),
    Fault(
        "rewrite/extract/templates.py",
        'return f"{form.value} {first.axes} of {first.full}"',
        "return form.value",
        "tests/test_fragments.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "ceil(threads / panels) if panels else 1",
        "1",
        "tests/test_features.py",
    ),
    # rewrite/explain
    Fault(
        "rewrite/explain/origins.py",
        "return min(makers, key=self._age)",
        "return candidates[0]",
        "tests/test_explain.py",
    ),
    Fault(
        "rewrite/explain/why.py",
        "cause = number if origin.cause is None else origin.cause",
        "cause = number",
        "tests/test_why.py",
    ),
    # rewrite/check
    Fault(
        "rewrite/check/named_paddings.py",
        "((amount, amount), (amount, 0), (0, amount))",
        "((amount, 0), (0, amount))",
        "tests/test_check_rare.py",
    ),
    Fault(
        "rewrite/check/named_values.py",
        "if rank in beside",
        "if rank < 0",
        "tests/test_check_high_ranks.py",
    ),
    Fault(
        "rewrite/check/read_values.py",
        "{**function.__globals__, **outer}",
        "outer",
        "tests/test_check_read_values.py",
    ),
    Fault(
        "rewrite/check/shrink.py",
        "fails = bool(disagreement(",
        "fails = not bool(disagreement(",
        "tests/test_check.py",
    ),
    # rewrite/prove
    Fault(
        "rewrite/prove/size.py",
        '>= 0", holds, z3.Not(holds))',
        '>= 0", z3.Not(holds), holds)',
        "tests/test_prove.py",
    ),
    # rewrite/isolation
    Fault(
        "rewrite/isolation/guarded.py",
        'if saturation.report.stopped != "nodes" or made <= most:',
        'if saturation.report.stopped != "nodes" or made >= most:',
        "tests/test_guarded.py",
    ),
    # rules
    Fault(
        "rules/pad.py",
        "Padding(_sums(a.lo, b.lo), _sums(a.hi, b.hi))",
        "Padding(_sums(a.hi, b.lo), _sums(a.lo, b.hi))",
        "tests/test_rules.py::test_no_instance_refutes_a_rule",
    ),
    Fault(
        "rules/transpose.py",
        "window.permuted(p.inverse)",
        "window.permuted(p)",
        "tests/test_rules.py::test_no_instance_refutes_a_rule",
    ),
    Fault(
        "rules/algebra.py",
        "return holds_all_values(source, between) and not detour",
        "return holds_all_values(source, between)",
        "tests/test_rules.py::test_no_instance_refutes_a_rule",
    ),
    Fault(
        "rules/reshape.py",
        "cs: Others[Known], s: Shape",
        "cs: Others[Varying], s: Shape",
        "tests/test_cases.py",
    ),
)
