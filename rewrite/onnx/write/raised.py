"""Ops of ONNX that programs spell out in small ones: each is its lowering read backwards.

A runtime has a kernel for each of them, and cannot always find it in the small ones. The formula of
an op is what the loader makes of a node of it, so that there is no other statement of its meaning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product as cartesian

import numpy as np
from onnx import helper

from satura.rewrite.errors import SaturaError
from satura.rewrite.onnx.calls import Call
from satura.rewrite.onnx.lower.context import Context, NoLowering
from satura.rewrite.onnx.lower.table import LOWERINGS
from satura.rewrite.onnx.lower.tensors import SameSize, Tensors
from satura.rewrite.onnx.opsets import means_the_same
from satura.rewrite.onnx.values import Values
from satura.rewrite.onnx.write.emitter import OPSET, Emitter, Site
from satura.rewrite.onnx.write.formula import Formula, Match, found, root_kind
from satura.rewrite.onnx.write.marks import dequantised, quantised
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim, exact_quotient, symbol
from satura.rewrite.types.tensor_type import DType, TensorType

_UNKNOWN = (0.84765625, 1.30078125)
"""Numbers that stand in formulas for attributes; no lowering has them, and f32 holds them."""


@dataclass(frozen=True)
class Form:
    """A form of an ONNX op.

    `numbers` are attributes that are read from the program. An op that `has_axis` is tried along
    each. `operands` says what those after the first are, which are constants or left out. The first
    has the type of the result, or it stands so many nodes `behind` it.
    """

    op_type: str
    numbers: tuple[str, ...] = ()
    fixed: tuple[tuple[str, object], ...] = ()
    operands: tuple[str, ...] = ()
    has_axis: bool = False
    least_rank: int = 0
    behind: int = 0


_FORMS = (
    Form("Softmax", has_axis=True),
    Form("LogSoftmax", has_axis=True),
    Form("Gelu"),
    Form("Gelu", fixed=(("approximate", "tanh"),)),
    Form("LayerNormalization", ("epsilon",), operands=("last", "last"), has_axis=True),
    Form("LayerNormalization", ("epsilon",), operands=("last",), has_axis=True),
    Form("InstanceNormalization", ("epsilon",), operands=("line", "line"), least_rank=3),
    Form("LpNormalization", fixed=(("p", 2),), has_axis=True),
    Form("LpNormalization", fixed=(("p", 1),), has_axis=True),
    Form("LeakyRelu", ("alpha",)),
    Form("PRelu", operands=("along",), has_axis=True),
    Form("Elu", ("alpha",)),
    Form("Celu", ("alpha",)),
    Form("Selu"),
    Form("HardSwish"),
    Form("HardSigmoid", ("alpha", "beta")),
    Form("Softplus"),
    Form("Softsign"),
    Form("ThresholdedRelu", ("alpha",)),
    Form("Clip", operands=("scalar", "scalar")),
    Form("Trilu", fixed=(("upper", 0),), least_rank=2),
    Form("Trilu", fixed=(("upper", 1),), least_rank=2),
    *(
        Form("CumSum", fixed=(("exclusive", a), ("reverse", b)), operands=("axis",), has_axis=True)
        for a in (1, 0)  # the longer formula first
        for b in (0, 1)
    ),
    Form(
        "Resize",
        fixed=(
            ("mode", "nearest"),
            ("nearest_mode", "floor"),
            ("coordinate_transformation_mode", "asymmetric"),
        ),
        operands=("absent", "scales"),
        behind=3,
    ),
)
_UNKNOWN_SHAPES: Mapping[str, Callable[[tuple[Dim, ...], int], tuple[Dim, ...]]] = {
    "scalar": lambda shape, axis: (),
    "line": lambda shape, axis: shape[1:2],
    "last": lambda shape, axis: shape[axis:],
    "along": lambda shape, axis: (*(1,) * axis, shape[axis], *(1,) * (len(shape) - axis - 1)),
}


@dataclass(frozen=True)
class Raised:
    """An op of ONNX and the nodes that it reads; then come constants, and what is left out."""

    op_type: str
    reads: tuple[int, ...]
    attributes: Mapping[str, object]
    constants: tuple[Constant | None, ...] = ()

    def written(self, emit: Emitter, site: Site) -> str:
        """The name of the op's result."""
        operands = [site.operand(position) for position in range(len(self.reads))]
        operands += ["" if each is None else emit.constant(each) for each in self.constants]
        return emit.node(self.op_type, *operands, **self.attributes)

    def call(self, index: int, type_: TensorType) -> Call:
        """The op as a node of ONNX that computes node `index` of this type."""
        operands = [*self.reads, *self.constants]
        names = ["" if x is None else f"i{at}" for at, x in enumerate(operands)]
        proto = helper.make_node(self.op_type, names, ["o0"])
        proto.attribute.extend(helper.make_attribute(*pair) for pair in self.attributes.items())
        content = proto.SerializeToString(deterministic=True)
        host = HostCall(self.op_type, "", OPSET, content, (type_,))
        return Call(host, tuple(x for x in operands if x is not None), (index,))


@dataclass(frozen=True)
class _Candidate:
    """A form at one type: the attributes and constants that are known, and its formula."""

    form: Form
    fixed: Mapping[str, object]
    constants: tuple[Constant | None, ...]
    formula: Formula

    def raised(self, match: Match) -> Raised:
        """The op with what the formula's unknown parts are."""
        numbers = {name: match.numbers[at] for at, name in enumerate(self.form.numbers)}
        unknown = iter(match.constants[at] for at in range(len(match.constants)))
        constants = tuple(
            next(unknown) if kind in _UNKNOWN_SHAPES else known
            for kind, known in zip(self.form.operands, self.constants, strict=True)
        )
        return Raised(self.form.op_type, (match.x,), {**self.fixed, **numbers}, constants)


def raised(nodes: Sequence[Node], index: int, opset: int) -> Raised | None:
    """The op of `opset` that computes node `index` from nodes far behind it, if there is one."""
    node = nodes[index]
    mark = quantised(nodes, index) or dequantised(nodes, index)
    if mark is not None:
        attributes: Mapping[str, object] = {} if mark.axis is None else {"axis": mark.axis}
        reads = (mark.x,) if isinstance(mark.x, int) else ()
        constants = () if isinstance(mark.x, int) else (mark.x,)
        return Raised(mark.op_type, reads, attributes, (*constants, mark.scale, mark.zero))
    if node.type.dtype not in (DType.F32, DType.F16) or 0 in node.type.shape:
        return None
    for form in _by_kind().get(root_kind(node), ()):
        if not means_the_same(form.op_type, OPSET, opset):
            continue
        x = index
        for _ in range(form.behind):
            x = next(iter(nodes[x].operands), x)
        for candidate in _candidates(form, nodes[x].type, node.type):
            match = found(candidate.formula, nodes, index)
            if match is not None:
                return candidate.raised(match)
    return None


@lru_cache(maxsize=4096)
def _candidates(form: Form, x: TensorType, result: TensorType) -> Sequence[_Candidate]:
    """A form for an operand and a result of these types, along each axis."""
    if x.dtype is not result.dtype or x.rank != result.rank or x.rank < form.least_rank:
        return ()
    axes = range(x.rank) if form.has_axis else [0]
    found = (_candidate(form, x, result, axis) for axis in axes)
    return tuple(each for each in found if each is not None)


def _candidate(form: Form, x: TensorType, result: TensorType, axis: int) -> _Candidate | None:
    """What the loader makes of a node of this form; None where it refuses it, or makes nothing."""
    build = Tensors()
    fixed = dict(form.fixed)
    if form.has_axis and not {"axis", "along"} & {*form.operands}:
        fixed["axis"] = axis
    operands: list[int | None] = [build.input("x", x.dtype, x.shape)]
    constants: list[Constant | None] = []
    unknown: list[int] = []
    for kind in form.operands:
        known: Constant | None = None
        if kind == "axis":
            known = Constant(np.array(axis))
        elif kind == "scales":
            scales = [exact_quotient(a, b) for a, b in zip(result.shape, x.shape, strict=True)]
            if not scales or scales[-1] == 1 or not all(isinstance(each, int) for each in scales):
                return None  # a runtime repeats what is more than single elements as fast
            known = Constant(np.array(scales, np.float32))
        constants.append(known)
        if kind in _UNKNOWN_SHAPES:
            shape = _UNKNOWN_SHAPES[kind](x.shape, axis)
            unknown.append(build.input(f"c{len(unknown)}", x.dtype, shape))
            operands.append(unknown[-1])
        else:
            operands.append(None if known is None else build.constant(known.array))
    numbers = dict(zip(form.numbers, _UNKNOWN, strict=False))
    names = ["" if each is None else f"v{each}" for each in operands]
    proto = helper.make_node(form.op_type, names, ["y"])
    for pair in [*fixed.items(), *numbers.items()]:
        proto.attribute.append(helper.make_attribute(*pair))
    try:
        results = LOWERINGS[form.op_type](
            Context(build, Values(build), proto, OPSET, tuple(operands))
        )
    except (SaturaError, NoLowering, SameSize):
        return None
    at = results if isinstance(results, int) else results[0]
    if at == operands[0]:
        return None
    places = {_UNKNOWN[place]: place for place in range(len(form.numbers))}
    formula = Formula(tuple(build.nodes), at, 0, tuple(unknown), places)
    return _Candidate(form, fixed, tuple(constants), formula)


@lru_cache(maxsize=1)
def _by_kind() -> Mapping[str, Sequence[Form]]:
    """The forms by the kinds of the nodes that compute their results, at several extents."""
    kinds: dict[str, list[Form]] = defaultdict(list)
    extents: tuple[Dim, ...] = (2, 1000, 1024, symbol("n"))
    for form, extent in cartesian(_FORMS, extents):
        x = TensorType(DType.F32, (extent, 2, 2))
        result = replace(x, shape=(extent, 2, 4)) if form.behind else x
        for some in _candidates(form, x, result)[:1]:
            of_kind = kinds[root_kind(some.formula.nodes[some.formula.result])]
            if form not in of_kind:
                of_kind.append(form)
    return kinds
