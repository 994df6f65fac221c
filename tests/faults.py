"""Mistakes of one line, at least one per stage, that tests are to catch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Fault:
    """A mistake: `old`, which stands once in `file`, replaced by `new`.

    `tests` should catch it first, in `make test` or, where the tier says so, `make test-deep`.
    """

    file: str
    old: str
    new: str
    tests: str
    tier: str = "test"

    def faulty_text(self) -> str:
        """The text of the file with this fault."""
        return (ROOT / self.file).read_text().replace(self.old, self.new)


FAULTS = (
    # types, ops, programs
    Fault(
        "rewrite/types/attributes.py",
        "reach = self.dilations[axis] * (self.sizes[axis] - 1) + 1",
        "reach = self.dilations[axis] * self.sizes[axis]",
        "tests/test_contraction.py tests/test_load.py",
    ),
    Fault(
        "rewrite/types/attributes.py",
        "stop = start + size * step",
        "stop = start + (size - 1) * step",
        "tests/test_kernels.py::test_layout_and_indexing",
    ),
    Fault(
        "rewrite/types/dims.py",
        "if monomial or not is_fixed]",
        "if monomial]",
        "tests/test_dims.py",
    ),
    Fault(
        "rewrite/types/index_map.py",
        "known_at_least(divisor - 1 - top, 0)",
        "known_at_least(divisor - top, 0)",
        "tests/test_index_map.py",
    ),
    Fault(
        "rewrite/types/comparison.py",
        "np.isnan(a) & np.isnan(b)",
        "np.isnan(a) | np.isnan(b)",
        "tests/test_comparison.py",
    ),
    Fault(
        "rewrite/types/constant.py",
        'head = f"{type_.dtype.numpy.name}{type_.shape}".encode()',
        'head = f"{type_.shape}".encode()',
        "tests/test_program_text.py tests/test_plan.py tests/test_egraph.py",
    ),
    Fault(
        "rewrite/ops/layout.py",
        'refuse_unless(mine == theirs, f"{x} and {y} differ in axis {index}")',
        'refuse_unless(True, f"{x} and {y} differ in axis {index}")',
        "tests/test_type_rules.py",
    ),
    Fault(
        "rewrite/ops/indexing.py",
        "np.where(np.less(indices, 0)",
        "np.where(np.less(indices, -1)",
        "tests/test_kernels.py::test_layout_and_indexing",
    ),
    Fault(
        "rewrite/program/program.py",
        "key = (standing.name, operands, attributes)",
        "key = (standing.name, tuple(sorted(operands)), attributes)",
        "tests/test_program_text.py",
    ),
    Fault(
        "rewrite/program/arguments.py",
        "if known != extent:",
        "if known > extent:",
        "tests/test_api.py",
    ),
    # the language of rules, the e-graph
    Fault(
        "rewrite/language/rule.py",
        "if guard.value(values) != actual:",
        "if guard.value(values) is None:",
        "tests/test_matching.py tests/test_dsl.py tests/test_why.py tests/test_user_ops_rules.py",
    ),
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
        "rewrite/onnx/lower/tensors.py",
        'self._need(least, "<=", dim)',
        'self._need(least - 9, "<=", dim)',
        "tests/test_negative_extents.py",
    ),
    Fault(
        "backend/plan/plans.py",
        "node.type.concrete(sizes) == types[node.input_name].concrete(sizes)",
        "node.type.rank == types[node.input_name].rank",
        "tests/test_other_sizes.py",
    ),
    Fault(
        "satura/artifact/classes.py",
        "own = outputs.values() if self.types is None else self.types",
        "own = outputs.values()",
        "tests/test_other_sizes.py",
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
    # extraction and its costs
    Fault(
        "rewrite/extract/even_steps.py",
        "place is not None and is_affine(offset(place, strides))",
        "place is not None",
        "tests/test_extract.py",
    ),
    Fault(
        "rewrite/extract/amounts.py",
        "if not larger.slices.isdisjoint(smaller.slices):",
        "if larger.slices.isdisjoint(smaller.slices):",
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
        "backend/plan/measure.py",
        "if not any(not known[node] for nest in nests for node in _read(nest)):",
        "if any(not known[node] for nest in nests for node in _read(nest)):",
        "tests/test_profile.py",
    ),
    Fault(
        "satura/pipeline/rates.py",
        "not 0 <= seconds <= 1",
        "not seconds <= 1",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/experiments/calibration.py",
        "np.where(is_bound, memory, work)",
        "np.where(is_bound, work, memory)",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/pipeline/sizes.py",
        "isqrt(max(1, low) * high)",
        "(low + high) // 2",
        "tests/test_sizes.py",
    ),
    Fault(
        "satura/pipeline/remembered.py",
        "model.identity,",
        '"",',
        "tests/test_sizes.py",
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
    # the rule book
    Fault(
        "rewrite/types/constant.py",
        "(later_digits != 0) & (sizes",
        "(sizes >= 0) & (sizes",
        "tests/test_whole_quotients.py",
    ),
    Fault(
        "backend/lower/walk.py",
        'values[index].op == "report" and index not in kept',
        'values[index].op == "report" and not kept',
        "tests/test_index_errors.py",
    ),
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
    # checker, prover, explanations, isolation
    Fault(
        "rewrite/check/shrink.py",
        "fails = bool(disagreement(",
        "fails = not bool(disagreement(",
        "tests/test_check.py",
    ),
    Fault(
        "rewrite/prove/size.py",
        '>= 0", holds, z3.Not(holds))',
        '>= 0", z3.Not(holds), holds)',
        "tests/test_prove.py",
    ),
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
    Fault(
        "rewrite/isolation/guarded.py",
        'if saturation.report.stopped != "nodes" or made <= most:',
        'if saturation.report.stopped != "nodes" or made >= most:',
        "tests/test_guarded.py",
    ),
    # kernels
    Fault(
        "backend/lower/walk.py",
        "if bottom >= 0 and not may_pass and top < extent:",
        "if bottom >= 0 and not may_pass and top <= extent:",
        "tests/test_lower.py",
    ),
    Fault(
        "backend/lower/body.py",
        "Scalar.of(reduction_identity(self.function, self.dtype), self.dtype)",
        "Scalar.of(0, self.dtype)",
        "tests/test_kernels.py::test_reductions",
    ),
    Fault(
        "backend/contraction/tile.py",
        "0 if tile.part else filled % tile.vectors",
        "0 if tile.part else (filled - 1) % tile.vectors",
        "tests/test_contraction.py::test_a_last_panel_of_few_vectors",
    ),
    Fault(
        "backend/helpers/contraction_tile.py",
        "code.store(tile, m * width + n, value)",
        "code.store(tile, m * vectors + n, value)",
        "tests/test_contraction.py::test_a_last_panel_of_few_vectors",
    ),
    Fault(
        "backend/contraction/gathering.py",
        "{places}, valid, weights, 0)",
        "{places}, valid - 1, weights, 0)",
        "tests/test_contraction.py::test_a_last_panel_of_few_vectors",
    ),
    Fault(
        "backend/contraction/gathering.py",
        'yield f"{INDENT}weights = source"',
        'yield f"{INDENT}weights = source + {CACHE_LINE}"',
        "tests/test_contraction.py::test_right_operands_that_are_panels_already",
    ),
    Fault(
        "backend/contraction/call.py",
        "window.strides[axis], window.lo[axis], left.shape[place]",
        "window.strides[axis], window.hi[axis], left.shape[place]",
        "tests/test_kernels.py::test_windows_and_contractions tests/test_load.py",
    ),
    Fault(
        "backend/contraction/emit.py",
        "step_depth = min(depth_step, depth - first_depth)",
        "step_depth = depth_step",
        "tests/test_contraction.py",
    ),
    Fault(
        "backend/helpers/approximations.py",
        "_LEAST = -105.36",
        "_LEAST = -104.0",
        "tests/test_elementwise.py",
    ),
    Fault(
        "rewrite/program/suppression.py",
        "is_left &= ~pairs[place]",
        "is_left[place] = False",
        "tests/test_suppression.py",
    ),
    Fault(
        "backend/run/kept_boxes.py",
        "divide(common, union) > overlap",
        "divide(common, union) >= overlap",
        "tests/test_suppression.py",
    ),
    Fault(
        "backend/run/kept_boxes.py",
        "if solid % {_BLOCK} == 0:",
        "if solid == 0:",
        "tests/test_suppression.py",
    ),
    Fault(
        "backend/emit/body.py",
        "choose({valid}, {_LEAST}, {found} + {length} + {_LEAST})",
        "choose({valid}, {_LEAST}, {found})",
        "tests/test_index_errors.py",
    ),
    Fault(
        "backend/emit/searched_blocks.py",
        '("max", "first") if reduction.takes_last else ("min", "stop - 1")',
        '("min", "stop - 1")',
        "tests/test_searched_blocks.py",
    ),
    Fault(
        "backend/emit/body.py",
        'bound <= least if value.op == "max"',
        'bound <= most if value.op == "max"',
        "tests/test_octets.py::test_bounds_and_zero_points_of_octets",
    ),
    Fault(
        "backend/contraction/attention.py",
        "put_f32(target, n, no_weight)",
        "put_f32(target, n, f32(0))",
        "tests/test_attention.py::test_shapes",
    ),
    Fault(
        "backend/contraction/attention.py",
        "biases = bias_here + (first_row + first + slot)",
        "biases = bias_here + (first + slot)",
        "tests/test_attention.py::test_shapes",
    ),
    Fault(
        "backend/contraction/winograd.py",
        "first1 + i >= 0 and first1 + i < input1",
        "first1 + i >= 0 and first1 + i <= input1",
        "tests/test_winograd.py::test_shapes",
    ),
    Fault(
        "backend/contraction/winograd.py",
        "at2 = row2 + tap2 - lo2",
        "at2 = row2 + tap2 - lo1",
        "tests/test_winograd.py::test_special_values_stay_where_they_are_seen",
    ),
    Fault(
        "backend/helpers/winograd_tiles.py",
        "code.builder.fmul(value, scale), code.zero(), odd",
        "code.zero(), code.zero(), odd",
        "tests/test_winograd.py::test_special_values_stay_where_they_are_seen",
    ),
    Fault(
        "backend/helpers/winograd_tiles.py",
        "[sub(a, c), add(b, c), sub(c, b), sub(b, d)]",
        "[sub(a, c), add(b, c), sub(c, b), sub(d, b)]",
        "tests/test_winograd.py::test_shapes",
    ),
    Fault(
        "backend/helpers/winograd_tiles.py",
        "multiply(sub(outer, middle), half)",
        "sub(multiply(outer, half), middle)",
        "tests/test_winograd.py::test_results_of_one_channel_are_those_of_the_interpreter",
    ),
    Fault(
        "backend/emit/windows.py",
        "cone.append(_Moves((False,) * len(taps), None))",
        "cone.append(_Moves((False,) * len(taps), (0, 1, 0)))",
        "tests/test_windows.py",
    ),
    Fault(
        "backend/emit/windows.py",
        "range((end - begin + {n - 1}) // {n})",
        "range((end - begin) // {n})",
        "tests/test_windows.py",
    ),
    Fault(
        "backend/emit/planes.py",
        "hop = (phase - self.lo) * step",
        "hop = (phase - self.lo + 1) * step",
        "tests/test_windows.py",
    ),
    Fault(
        "backend/emit/planes.py",
        "return start, smallest(largest(start, end), self.pitch)",
        "return start, smallest(largest(start, end - 1), self.pitch)",
        "tests/test_windows.py",
    ),
    Fault(
        "backend/emit/transposes.py",
        "(column - first) * {pitch}",
        "(column - row) * {pitch}",
        "tests/test_transposes.py",
    ),
    Fault(
        "backend/helpers/contraction_tile.py",
        "code.of_groups(seen, group, k)",
        "code.of_groups(seen, group, 0)",
        "tests/test_windows.py",
    ),
    Fault(
        "backend/emit/loops.py",
        "hi = {total} * (thread + 1) // threads",
        "hi = lo + {total} // threads + 1",
        "tests/test_emit.py",
    ),
    Fault(
        "backend/helpers/approximations.py",
        "-0.184231281",
        "-0.184331281",
        "tests/test_kernels.py::test_approximations_keep_their_bounds",
    ),
    Fault(
        "backend/helpers/memory.py",
        "builder.add(bits, builder.add(odd, INT32(0x7FFF)))",
        "builder.add(bits, INT32(0x8000))",
        "tests/test_kernels.py::test_casts",
    ),
    Fault(
        "backend/plan/buffers.py",
        "alive = [old for old in alive if buffers[old].last >= buffers[new].first]",
        "alive = [old for old in alive if buffers[old].last > buffers[new].first]",
        "tests/test_lower.py",
    ),
    Fault(
        "backend/jit/kernel.py",
        'f"{where}\\n{self.text}"',
        'f"{where}\\n{self.name}"',
        "tests/test_jit.py",
    ),
    Fault(
        "backend/jit/cache.py",
        "return payload if data[:start] == expected else None",
        "return payload if data.startswith(self._magic) else None",
        "tests/test_cache.py",
    ),
    Fault(
        "backend/run/pool.py",
        "for share in range(1, width):",
        "for share in range(2, width):",
        "tests/test_runtime.py",
    ),
    # what is remembered
    Fault(
        "satura/pipeline/remembered.py",
        "        str(program),",
        "        str(len(program.nodes)),",
        "tests/test_remembered.py",
    ),
    Fault(
        "satura/pipeline/rule_sets.py",
        'return f"rules {names}" if all(map(is_of_the_book, rules)) else None',
        'return f"rules {names}"',
        "tests/test_remembered.py",
    ),
    Fault(
        "rewrite/extract/verify.py",
        "read = available.issuperset(self.nodes[node].operands)",
        "read = True",
        "tests/test_schedule_text.py",
    ),
    # ONNX, the command line
    Fault(
        "rewrite/onnx/contrib/quantized.py",
        "exact = {op_type} (a, b)",
        "exact = {op_type} (a, a)",
        "tests/test_contrib_ops.py",
    ),
    Fault(
        "rewrite/onnx/contrib/definition.py",
        "defaults if each.name not in given",
        "defaults if False",
        "tests/test_contrib_ops.py",
    ),
    Fault(
        "rewrite/onnx/lower/geometry.py",
        "lo.append(smaller if upper else total - smaller)",
        "lo.append(total - smaller if upper else smaller)",
        "tests/test_load.py",
    ),
    Fault(
        "rewrite/onnx/lower/places.py",
        'build.binary("lt", wide, build.number(0, wide))',
        'build.binary("le", wide, build.number(0, wide))',
        "tests/test_load.py tests/test_onnx_cases.py",
    ),
    Fault(
        "rewrite/onnx/lower/movement.py",
        "range(node.build.rank(node[0]))[::-1]",
        "range(node.build.rank(node[0]))",
        "tests/test_load.py tests/test_onnx_cases.py",
    ),
    Fault(
        "rewrite/onnx/asked.py",
        "return type_.rank <= 1 and",
        "return",
        "tests/test_specialised.py",
    ),
    Fault(
        "rewrite/ops/recurrence.py",
        "[:: -1 if backward else 1]",
        "",
        "tests/test_host_ops.py tests/test_onnx_cases.py",
    ),
    Fault(
        "rewrite/onnx/lower/places.py",
        "if are_inside(build.nodes, wide, extent):",
        "if not are_inside(build.nodes, wide, 0):",
        "tests/test_index_errors.py",
    ),
    Fault(
        "rewrite/program/integer_bounds.py",
        "known_at_least(extent - greatest, 1)",
        "known_at_least(extent - greatest, 0)",
        "tests/test_index_errors.py",
    ),
    Fault(
        "backend/lower/walk.py",
        'symbol(f"@{wrapped}")',
        'symbol(f"@{found}")',
        "tests/test_index_errors.py",
    ),
    Fault(
        "backend/emit/first_places.py",
        "if key < other or (key == other and place > load_int64(held, child)):",
        "if key < other:",
        "tests/test_scatter.py",
    ),
    Fault(
        "backend/helpers/narrow.py",
        "odd = build.and_(build.lshr(bits, INT32(cut)), INT32(1))",
        "odd = INT32(0)",
        "tests/test_narrow_types.py",
    ),
    Fault(
        "rewrite/onnx/write/layout.py",
        "origin: Dim = dim if step < 0 else 0",
        "origin: Dim = 0",
        "tests/test_save.py",
    ),
    Fault(
        "rewrite/onnx/files.py",
        "if not location or leaves or not set(homes) & set(path.parents):",
        "if not location or inside.is_absolute():",
        "tests/test_broken_models.py",
    ),
    Fault(
        "satura/commands/rules_cli.py",
        "raise typer.Exit(0 if sound else 1)",
        "raise typer.Exit(0)",
        "tests/test_check_command.py",
    ),
    Fault(
        "backend/run/workspace.py",
        "if count == _ALONE and",
        "if count >= _ALONE and",
        "tests/test_bound.py",
    ),
    Fault(
        "satura/pipeline/ready.py",
        "environment(), content.hexdigest()]",
        "environment()]",
        "tests/test_ready.py",
    ),
    # files, memory, sizes that are looked at
    Fault(
        "rewrite/system/files.py",
        "st_mode & _PERMISSIONS & ~never",
        "st_mode & _PERMISSIONS",
        "tests/test_files.py",
    ),
    Fault(
        "rewrite/program/memory.py",
        "size > _ANY_MACHINE and size > (memory := memory_bytes())",
        "size > _ANY_MACHINE and size < (memory := memory_bytes())",
        "tests/test_memory.py",
    ),
    Fault(
        "rewrite/onnx/lower/indexing.py",
        "chosen = chosen[chosen < extent]",
        "chosen = chosen[chosen <= extent]",
        "tests/test_deciding_sizes.py",
    ),
    Fault(
        "backend/plan/plans.py",
        "return plan_of(apart.planned(key)), apart.store",
        "return plan_of(self.planned(key)), self.store",
        "tests/test_plan.py",
    ),
    Fault(
        "satura/pipeline/ready.py",
        "len(program.first_sizes) >= MOST_CLASSES",
        "len(program.first_sizes) > MOST_CLASSES",
        "tests/test_ready.py",
    ),
    Fault(
        "satura/artifact/sums.py",
        "total += word",
        "total = word",
        "tests/test_artifact_damage.py",
    ),
    # sizes that other programs run
    Fault(
        "backend/plan/size_class.py",
        "fixed = _as_long(schedule.program, types or {})",
        "fixed = _as_long(schedule.program, {})",
        "tests/test_other_sizes.py",
    ),
    Fault(
        "rewrite/onnx/size_arithmetic.py",
        "found = self.at(dim) >= 0",
        "found = self.at(dim) >= -4",
        "tests/test_computed_sizes.py",
    ),
    Fault(
        "rewrite/onnx/lower/tensors.py",
        "key = condition.left, condition.relation, condition.right",
        'key = condition.left, "=", condition.right',
        "tests/test_symbolic_sizes.py",
    ),
    Fault(
        "rewrite/types/typical.py",
        "if better > 0 and condition",
        "if condition",
        "tests/test_symbolic_sizes.py",
    ),
    Fault(
        "satura/pipeline/widened.py",
        "or evaluate(dim, sizes) == size",
        "or evaluate(dim, sizes) >= size",
        "tests/test_data_extents.py",
    ),
    Fault(
        "rewrite/onnx/cut.py",
        "read = _read(nodes) - own - {",
        "read = _read(nodes) - {",
        "tests/test_data_extents.py",
    ),
    Fault(
        "rewrite/onnx/write/parts.py",
        "self._emit = Emitter([*self._programs.values()], parts.names)",
        "self._emit = Emitter([*self._programs.values()])",
        "tests/test_save_in_parts.py",
    ),
    Fault(
        "rewrite/onnx/write/parts.py",
        "has_name = tensor in self._new_names or tensor in self._named",
        "has_name = tensor in self._named",
        "tests/test_save_in_parts.py",
    ),
    Fault(
        "rewrite/onnx/write/kept.py",
        "each.input[at] = store(value)",
        "each.input[0] = store(value)",
        "tests/test_save_in_parts.py",
    ),
    # what testers found together
    Fault(
        "rewrite/onnx/size_arithmetic.py",
        "return a < b",
        "return not b <= a",
        "tests/test_load_special_values.py",
    ),
    Fault(
        "rewrite/program/reference.py",
        "goes_on = condition is None or bool(condition.item())",
        "goes_on = bool(condition is not None and condition.item())",
        "tests/test_reference_loops.py",
    ),
    Fault(
        "rewrite/program/reference.py",
        "np.stack(each) if each",
        "np.vstack(each) if each",
        "tests/test_reference_loops.py",
    ),
    Fault(
        "rewrite/types/sequence_type.py",
        "all(_whole(name) != name for name",
        "all(False for name",
        "tests/test_sequences.py",
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
    Fault(
        "backend/helpers/arithmetic.py",
        'key = quiet if function == "max" else ~quiet',
        "key = quiet",
        "tests/test_nan.py",
    ),
    Fault(
        "backend/run/part.py",
        "self._known_by.append(names)",
        "pass",
        "tests/test_specialised.py",
    ),
    Fault(
        "rewrite/onnx/lower/movement.py",
        "elif natural and build.for_all_sizes:",
        "elif natural and False:",
        "tests/test_save_slices.py",
    ),
    Fault(
        "rewrite/onnx/write/reductions.py",
        'is_sum = function.name == "sum" and dtype.is_float',
        "is_sum = False",
        "tests/test_save.py",
    ),
    Fault(
        "rewrite/onnx/sparse.py",
        "prod(extents[axis + 1 :])",
        "prod(extents[:axis])",
        "tests/test_sparse.py",
    ),
    Fault(
        "rules/reshape.py",
        "cs: Others[Known], s: Shape",
        "cs: Others[Varying], s: Shape",
        "tests/test_cases.py",
    ),
)
