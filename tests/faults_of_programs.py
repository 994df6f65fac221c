"""Mistakes in types, ops and programs, and in what makes them of ONNX and writes them."""

from __future__ import annotations

from tests.fault import Fault

PROGRAM_FAULTS = (
    # rewrite/types
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
        "rewrite/types/index_map.py",
        "(2 * number + divisor) // (2 * divisor)",
        "number // divisor",
        "tests/test_index_map.py",
    ),
    Fault(
        "rewrite/types/index_map.py",
        "near - more * divisor",
        "near",
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
        "rewrite/types/constant.py",
        "(later_digits != 0) & (sizes",
        "(sizes >= 0) & (sizes",
        "tests/test_whole_quotients.py",
    ),
    Fault(
        "rewrite/types/typical.py",
        "if better > 0 and condition",
        "if condition",
        "tests/test_symbolic_sizes.py",
    ),
    Fault(
        "rewrite/types/sequence_type.py",
        "all(_whole(name) != name for name",
        "all(False for name",
        "tests/test_sequences.py",
    ),
    # rewrite/ops
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
        "rewrite/ops/recurrence.py",
        "[:: -1 if backward else 1]",
        "",
        "tests/test_host_ops.py tests/test_onnx_cases.py",
    ),
    # rewrite/program
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
    Fault(
        "rewrite/program/suppression.py",
        "is_left &= ~pairs[place]",
        "is_left[place] = False",
        "tests/test_suppression.py",
    ),
    Fault(
        "rewrite/program/integer_bounds.py",
        "known_at_least(extent - greatest, 1)",
        "known_at_least(extent - greatest, 0)",
        "tests/test_index_errors.py",
    ),
    Fault(
        "rewrite/program/memory.py",
        "size > _ANY_MACHINE and size > (memory := memory_bytes())",
        "size > _ANY_MACHINE and size < (memory := memory_bytes())",
        "tests/test_memory.py",
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
    # rewrite/onnx
    Fault(
        "rewrite/onnx/lower/tensors.py",
        'self._need(least, "<=", dim)',
        'self._need(least - 9, "<=", dim)',
        "tests/test_negative_extents.py",
    ),
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
        "rewrite/onnx/lower/quantize.py",
        "sums * (x * w / y)",
        "sums * x * w / y",
        "tests/test_octets.py",
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
        "rewrite/onnx/lower/places.py",
        "if are_inside(build.nodes, wide, extent):",
        "if not are_inside(build.nodes, wide, 0):",
        "tests/test_index_errors.py",
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
        "rewrite/onnx/lower/indexing.py",
        "chosen = chosen[chosen < extent]",
        "chosen = chosen[chosen <= extent]",
        "tests/test_deciding_sizes.py",
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
    Fault(
        "rewrite/onnx/size_arithmetic.py",
        "return a < b",
        "return not b <= a",
        "tests/test_load_special_values.py",
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
    # rewrite/system
    Fault(
        "rewrite/system/files.py",
        "st_mode & _PERMISSIONS & ~never",
        "st_mode & _PERMISSIONS",
        "tests/test_files.py",
    ),
)
