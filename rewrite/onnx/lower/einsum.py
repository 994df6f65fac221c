"""Lowering of Einsum: operand by operand, each step one batched matrix product."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.context import Context, NoLowering, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim, product

Labels = tuple[str, ...]


@lowering("Einsum")
def einsum(node: Context) -> int:
    """Sums of products over the labels that the result lacks."""
    build = node.build
    terms, wanted = _parse(node)
    operands = list(zip(node.given, terms, strict=True))
    x, labels = operands[0]
    for position, (y, others) in enumerate(operands[1:], 1):
        later = {label for _, term in operands[position + 1 :] for label in term}
        keep = later | set(wanted)
        x, labels = _product(build, x, labels, y, others, keep)
    x, labels = _sum_away(build, x, labels, set(wanted))
    return build.transpose(x, [labels.index(label) for label in wanted])


def _parse(node: Context) -> tuple[list[Labels], Labels]:
    """Labels of the operands and of the result; an ellipsis becomes labels '0', '1', … ."""
    equation = node.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(node.given):
        raise node.wrong(f"'{equation}' has {len(texts)} terms for {len(node.given)} inputs")
    for text in (*texts, right):
        if any(not label.isalpha() for label in text.replace("...", "", 1)):
            raise node.wrong(f"'{equation}' has '{text}', but its labels are letters")
    if missing := [label for label in right.replace("...", "") if label not in left]:
        raise node.wrong(f"'{equation}' has '{missing[0]}' in its result alone")
    hidden = 0
    for text, x in zip(texts, node.given, strict=True):
        if "..." in text:
            hidden = max(hidden, node.build.rank(x) - len(text.replace("...", "")))
    terms = []
    for text, x in zip(texts, node.given, strict=True):
        rank = node.build.rank(x)
        term = _labels(text, rank - len(text.replace("...", "")), hidden)
        if len(term) != rank:
            raise node.wrong(f"term '{text}' does not fit rank {rank}")
        if len(set(term)) != len(term):
            raise NoLowering
        terms.append(term)
    if arrow:
        return terms, _labels(right, hidden, hidden)
    flat = [label for term in terms for label in term]
    free = sorted(label for label in set(flat) if flat.count(label) == 1 and label.isalpha())
    return terms, (*map(str, range(hidden)), *free)


def _labels(text: str, count: int, hidden: int) -> Labels:
    before, dots, after = text.partition("...")
    middle = map(str, range(hidden - count, hidden)) if dots else ()
    return (*before, *middle, *after)


def _sum_away(build: Tensors, x: int, labels: Labels, keep: set[str]) -> tuple[int, Labels]:
    """x with the labels outside `keep` summed away."""
    gone = [axis for axis, label in enumerate(labels) if label not in keep]
    if not gone:
        return x, labels
    rest = tuple(label for label in labels if label in keep)
    return build.drop(build.reduce("sum", x, gone), gone), rest


def _product(
    build: Tensors, x: int, first: Labels, y: int, second: Labels, keep: set[str]
) -> tuple[int, Labels]:
    """The product of two operands with every label summed that nothing later needs."""
    x, first = _sum_away(build, x, first, keep | set(second))
    y, second = _sum_away(build, y, second, keep | set(first))
    shared = [label for label in first if label in second]
    batch = [label for label in shared if label in keep]
    inner = [label for label in shared if label not in keep]
    rows = [label for label in first if label not in second]
    columns = [label for label in second if label not in first]
    extents = dict(zip(second, build.shape(y), strict=True))
    for label, dim in zip(first, build.shape(x), strict=True):
        (extents[label],) = build.common_shape([dim], [extents.get(label, 1)])
    x = _as_matrices(build, x, first, batch, rows, inner, extents)
    y = _as_matrices(build, y, second, batch, inner, columns, extents)
    labels = (*batch, *rows, *columns)
    result = build.matmul(x, y)
    return build.reshape(result, [extents[label] for label in labels]), labels


def _as_matrices(
    build: Tensors,
    x: int,
    labels: Labels,
    batch: Sequence[str],
    left: Sequence[str],
    right: Sequence[str],
    extents: dict[str, Dim],
) -> int:
    """x as a stack of matrices [batch, left, right]."""
    order = [*batch, *left, *right]
    moved = build.transpose(x, [labels.index(label) for label in order])
    wide = build.expand(moved, [extents[label] for label in order])
    groups = [product(extents[label] for label in group) for group in (batch, left, right)]
    return build.reshape(wide, groups)
