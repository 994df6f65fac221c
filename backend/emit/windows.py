"""Small windows over vectorised columns: depthwise convolutions and pools, all taps unrolled.

Per result position and column the taps are combined in registers and the result is finished and
stored at once. What a tap reads outside the operand comes from a page of zeros (or is replaced by
the window's fill), so border positions need no code of their own.
"""

from __future__ import annotations

from itertools import product

from satura.backend.emit.body import Arguments, BodyText, Code
from satura.backend.emit.loops import kernel_text, share, start_odometer, step_odometer
from satura.backend.emit.reductions import combined, identity_text, reads_loops
from satura.backend.emit.text import indented
from satura.backend.lower.body import MAX_TAPS, Pointer
from satura.backend.lower.canonical import Canonical

PAGE_BYTES = 8192
CHAINS = 2  # of taps that do not wait for each other


def is_small_window(form: Canonical) -> bool:
    """Whether `window_code` serves this nest."""
    nest = form.nest
    if not form.column or len(nest.reductions) != 1 or nest.clips:
        return False
    taps = 1
    for extent in nest.extents[form.outer : form.outer + form.middle]:
        taps *= extent
    itemsize = max(value.dtype.itemsize for value in nest.values)
    if taps > MAX_TAPS or nest.extents[-1] * itemsize > PAGE_BYTES:
        return False
    if nest.reductions[0].position is not None:
        return False
    middles = range(form.outer, form.outer + form.middle)
    return not reads_loops(nest, nest.result, middles)


def window_code(name: str, form: Canonical, work: int) -> Code:
    """The kernel of a small window."""
    nest = form.nest
    (reduction,) = nest.reductions
    arguments = Arguments()
    outer = [f"i{axis}" for axis in range(form.outer)]
    extents = [arguments.new(extent) for extent in nest.extents[: form.outer]]
    width = arguments.new(nest.extents[-1])
    middle = tuple(f"j{axis}" for axis in range(form.middle))
    body = BodyText(nest, outer, middle, "i", arguments, reduced_level=3, page="page")
    operand = nest.values[reduction.operand]
    fused = reduction.function == "sum" and operand.op == "mul" and reduction.dtype.is_float
    targets = operand.operands if fused else (reduction.operand,)
    row: list[str] = []
    columns = [f"total{chain} = {identity_text(reduction)}" for chain in range(CHAINS)]
    counts = (range(extent) for extent in nest.extents[form.outer : form.outer + form.middle])
    for number, taps in enumerate(product(*counts)):
        block = body.block(targets, taps=tuple(map(str, taps)), suffix=f"t{number}")
        row += [*block.row, *block.middle]
        columns += block.inner
        names = [block.names[target] for target in targets]
        total = f"total{number % CHAINS}"
        if fused:
            columns.append(f"{total} = mul_add({names[0]}, {names[1]}, {total})")
        else:
            columns.append(f"{total} = {combined(reduction.function, total, names[0])}")
    for chain in range(1, CHAINS):
        columns.append(f"total0 = {combined(reduction.function, 'total0', f'total{chain}')}")
    given = {i: "total0" for i, value in enumerate(nest.values) if value.op == "reduced"}
    final = body.store(body.block([nest.result], given))
    row += [*final.row, f"for i in range({width}):", *indented(1, [*columns, *final.inner])]
    scratch = arguments.new(Pointer(("scratch", 0)))
    page_words = arguments.new(PAGE_BYTES // 8)
    lines = [
        "at = args",
        *arguments.lines(),
        f"page = {scratch} + thread * {PAGE_BYTES}",
        f"for word in range({page_words}):",
        *indented(1, ["put_i64(page, word, 0)"]),
        f"count = {' * '.join(extents) or '1'}",
        *share("count"),
        *body.setup,
        *start_odometer(outer, extents, "lo"),
        "for row in range(hi - lo):",
        *indented(1, [*row, *step_odometer(outer, extents)]),
    ]
    return Code(name, kernel_text(lines), tuple(arguments.numbers), work, PAGE_BYTES)
