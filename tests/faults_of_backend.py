"""Mistakes in how kernels are planned, written, compiled and run."""

from __future__ import annotations

from tests.fault import Fault

BACKEND_FAULTS = (
    # backend/lower
    Fault(
        "backend/lower/walk.py",
        'values[index].op == "report" and index not in kept',
        'values[index].op == "report" and not kept',
        "tests/test_index_errors.py",
    ),
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
        "backend/lower/walk.py",
        'symbol(f"@{wrapped}")',
        'symbol(f"@{found}")',
        "tests/test_index_errors.py",
    ),
    # backend/plan
    Fault(
        "backend/plan/plans.py",
        "node.type.concrete(sizes) == types[node.input_name].concrete(sizes)",
        "node.type.rank == types[node.input_name].rank",
        "tests/test_other_sizes.py",
    ),
    Fault(
        "backend/plan/measure.py",
        "if not any(not known[node] for nest in nests for node in _read(nest)):",
        "if any(not known[node] for nest in nests for node in _read(nest)):",
        "tests/test_profile.py",
    ),
    Fault(
        "backend/plan/buffers.py",
        "alive = [old for old in alive if buffers[old].last >= buffers[new].first]",
        "alive = [old for old in alive if buffers[old].last > buffers[new].first]",
        "tests/test_lower.py",
    ),
    Fault(
        "backend/plan/plans.py",
        "return plan_of(apart.planned(key)), apart.store",
        "return plan_of(self.planned(key)), self.store",
        "tests/test_plan.py",
    ),
    Fault(
        "backend/plan/size_class.py",
        "fixed = _as_long(schedule.program, types or {})",
        "fixed = _as_long(schedule.program, {})",
        "tests/test_other_sizes.py",
    ),
    # backend/emit
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
        "backend/lower/rounding.py",
        'bound <= least if value.op == "max"',
        'bound <= most if value.op == "max"',
        "tests/test_octets.py::test_bounds_and_zero_points_of_octets",
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
        "backend/helpers/transpose.py",
        "edge + i - distance for i in lanes",
        "i if edge == 4 else edge + i - distance for i in lanes",
        "tests/test_transposes.py",
    ),
    Fault(
        "backend/emit/loops.py",
        "hi = {total} * (thread + 1) // threads",
        "hi = lo + {total} // threads + 1",
        "tests/test_emit.py",
    ),
    Fault(
        "backend/emit/loops.py",
        "recut(strides, strides[-1] * part, strides[-1])",
        "recut(strides, strides[-1] * parts, strides[-1])",
        "tests/test_emit.py",
    ),
    Fault(
        "backend/lower/canonical.py",
        "if found is not None and not _turns_others(nest, *found):",
        "if found is not None:",
        "tests/test_transposes.py",
    ),
    Fault(
        "backend/emit/first_places.py",
        "if key < other or (key == other and place > load_int64(held, child)):",
        "if key < other:",
        "tests/test_scatter.py",
    ),
    # backend/contraction
    Fault(
        "backend/contraction/tile.py",
        "0 if tile.is_filled else filled % tile.vectors",
        "0 if tile.is_filled else (filled - 1) % tile.vectors",
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
        "backend/contraction/axes.py",
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
    # backend/helpers
    Fault(
        "backend/matrices.py",
        "(1, 1), (0, 1), (0, 2)",
        "(0, 1), (0, 2)",
        "tests/test_matrices.py",
    ),
    Fault(
        "backend/helpers/parts.py",
        'code.either(builder.icmp_signed("!=", is_flagged, code.integer(0)), exact, list)',
        "exact()",
        "tests/test_matrices.py",
    ),
    Fault(
        "backend/helpers/matrix_tile.py",
        "even = builder.and_(even, _all_apart(code, here, size - 1, stride))",
        "even = _all_apart(code, here, size - 1, stride)",
        "tests/test_matrices.py",
    ),
    Fault(
        "backend/contraction/gathering.py",
        "first_element = first_depth // {PARTS} * 2",
        "first_element = first_depth // {PARTS} * 2 + 1",
        "tests/test_matrices.py",
    ),
    Fault(
        "backend/contraction/row_packing.py",
        "(copy + plane * apart, k, fill_value)",
        "(copy, k, fill_value)",
        "tests/test_matrices.py",
    ),
    Fault(
        "backend/contraction/bands.py",
        "(wide[-1].extent - rows[-1].extent)",
        "(wide[-1].extent - rows[-1].extent + 1)",
        "tests/test_matrices.py",
    ),
    Fault(
        "backend/helpers/matrix_tile.py",
        "builder.xor(first_words(code, at, chunk), flip)",
        "builder.xor(first_words(code, at, chunk), code.spread(INT32(0), EDGE))",
        "tests/test_matrices.py",
        "deep",
    ),
    Fault(
        "backend/helpers/parts.py",
        "is_whole = builder.or_(is_tiny, builder.icmp",
        "is_whole = builder.or_(INT1(0), builder.icmp",
        "tests/test_matrices.py",
    ),
    Fault(
        "backend/helpers/contraction_tile.py",
        "code.store(tile, m * width + n, value)",
        "code.store(tile, m * vectors + n, value)",
        "tests/test_contraction.py::test_a_last_panel_of_few_vectors",
    ),
    Fault(
        "backend/helpers/approximations.py",
        "_LEAST, _LEAST_NORMAL = -105.36",
        "_LEAST, _LEAST_NORMAL = -104.0",
        "tests/test_elementwise.py",
    ),
    Fault(
        "backend/lower/rounding.py",
        "int(most) - self.zero_point",
        "int(most)",
        "tests/test_rounding.py",
    ),
    Fault(
        "backend/helpers/nearest.py",
        "if dtype is DType.I8:",
        "if False:",
        "tests/test_rounding.py",
    ),
    Fault(
        "backend/lower/factors.py",
        "if user.op.kind is not Kind.LAYOUT:",
        "if False:",
        "tests/test_factors.py",
    ),
    Fault(
        "backend/lower/body.py",
        "users != [result] or",
        "result not in users or",
        "tests/test_factors.py",
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
        "backend/helpers/contraction_tile.py",
        "code.of_groups(seen, group, k)",
        "code.of_groups(seen, group, 0)",
        "tests/test_windows.py",
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
        "backend/helpers/memory.py",
        "return builder.select(is_beyond, found.type(most), found)",
        "return found",
        "tests/test_kernels.py::test_casts",
    ),
    Fault(
        "backend/helpers/narrow.py",
        "odd = build.and_(build.lshr(bits, INT32(cut)), INT32(1))",
        "odd = INT32(0)",
        "tests/test_narrow_types.py",
    ),
    Fault(
        "backend/helpers/arithmetic.py",
        'key = quiet if function == "max" else ~quiet',
        "key = quiet",
        "tests/test_nan.py",
    ),
    # backend/jit
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
    # backend/run
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
        "backend/run/pool.py",
        "for share in range(1, width):",
        "for share in range(2, width):",
        "tests/test_runtime.py",
    ),
    Fault(
        "backend/run/workspace.py",
        "if count == _ALONE and",
        "if count >= _ALONE and",
        "tests/test_bound.py",
    ),
    Fault(
        "backend/run/part.py",
        "self._known_by.append(names)",
        "pass",
        "tests/test_specialised.py",
    ),
)
