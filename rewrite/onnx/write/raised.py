"""Ops of ONNX that programs spell out in small ones: each is its lowering read backwards.

A runtime has a kernel for each of them, and cannot always find it in the small ones. The formula of
an op is what the loader makes of a node of it, so that there is no other statement of its meaning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from onnx import helper

from satura.rewrite.errors import SaturaError
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.lower.table import LOWERINGS
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.values import Values
from satura.rewrite.onnx.write.emitter import OPSET, Emitter, Site
from satura.rewrite.onnx.write.formula import Formula, found, root_kind
from satura.rewrite.program.program import Node
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType, TensorType

_UNKNOWN = (0.84765625, 1.30078125)
"""Numbers that stand in formulas for attributes; no lowering has them, and f32 holds them."""


@dataclass(frozen=True)
class Form:
    """A form of an ONNX op whose first operand and result have one type.

    `numbers` are attributes that are read from the program. An op that has an `axis` is tried along
    each. `constants` says what the other operands are, which are constants: scalars, a vector of
    the channels, or a tensor of the axes from `axis` on.
    """

    op_type: str
    numbers: tuple[str, ...] = ()
    fixed: tuple[tuple[str, object], ...] = ()
    constants: tuple[str, ...] = ()
    has_axis: bool = False
    least_rank: int = 0


_FORMS = (
    Form("Softmax", has_axis=True),
    Form("LogSoftmax", has_axis=True),
    Form("Gelu"),
    Form("Gelu", fixed=(("approximate", "tanh"),)),
    Form("LayerNormalization", ("epsilon",), constants=("last", "last"), has_axis=True),
    Form("LayerNormalization", ("epsilon",), constants=("last",), has_axis=True),
    Form("InstanceNormalization", ("epsilon",), constants=("line", "line"), least_rank=3),
    Form("LpNormalization", fixed=(("p", 2),), has_axis=True),
    Form("LpNormalization", fixed=(("p", 1),), has_axis=True),
    Form("LeakyRelu", ("alpha",)),
    Form("Elu", ("alpha",)),
    Form("Celu", ("alpha",)),
    Form("Selu"),
    Form("HardSwish"),
    Form("HardSigmoid", ("alpha", "beta")),
    Form("Softplus"),
    Form("Softsign"),
    Form("ThresholdedRelu", ("alpha",)),
    Form("Clip", constants=("scalar", "scalar")),
)


@dataclass(frozen=True)
class Raised:
    """An op of ONNX and the nodes that it reads; constants have the shapes that it wants."""

    op_type: str
    reads: tuple[int, ...]
    attributes: Mapping[str, object]
    constants: tuple[Constant, ...] = ()

    def written(self, emit: Emitter, site: Site) -> str:
        """The name of the op's result."""
        operands = [site.operand(position) for position in range(len(self.reads))]
        operands += map(emit.constant, self.constants)
        return emit.node(self.op_type, *operands, **self.attributes)


def raised(nodes: Sequence[Node], index: int) -> Raised | None:
    """The op that computes node `index` from nodes far behind it, if there is one."""
    node = nodes[index]
    if node.op.name not in ("unary", "binary", "select") or node.type.dtype is not DType.F32:
        return None
    for form, fixed, formula in _formulas(root_kind(node), node.type):
        match = found(formula, nodes, index)
        if match is not None:
            numbers = {name: match.numbers[at] for at, name in enumerate(form.numbers)}
            constants = tuple(match.constants[at] for at in range(len(form.constants)))
            return Raised(form.op_type, (match.x,), {**fixed, **numbers}, constants)
    return None


@lru_cache(maxsize=1024)
def _formulas(kind: str, type_: TensorType) -> Sequence[tuple[Form, Mapping[str, object], Formula]]:
    """All forms for an operand of this type whose result a node of this kind computes."""
    result = []
    for form in _FORMS_OF.get(kind, ()):
        for axis in range(type_.rank) if form.has_axis else [0]:
            fixed = dict(form.fixed) | ({"axis": axis} if form.has_axis else {})
            formula = _formula(form, type_, axis, fixed)
            if formula is not None:
                result.append((form, fixed, formula))
    return result


def _formula(form: Form, type_: TensorType, axis: int, fixed: dict[str, object]) -> Formula | None:
    """What the loader makes of a node of this form; None where it refuses it."""
    if type_.rank < form.least_rank or 0 in type_.shape:
        return None
    build = Tensors()
    shapes: dict[str, tuple[Dim, ...]] = {
        "scalar": (), "line": type_.shape[1:2], "last": type_.shape[axis:],
    }  # fmt: skip
    x = build.input("x", type_.dtype, type_.shape)
    others = [
        build.input(f"c{at}", type_.dtype, shapes[kind]) for at, kind in enumerate(form.constants)
    ]
    unknown: dict[str, object] = dict(zip(form.numbers, _UNKNOWN, strict=False))
    names = [build.nodes[each].input_name for each in (x, *others)]
    proto = helper.make_node(form.op_type, names, ["y"])
    for pair in (fixed | unknown).items():
        proto.attribute.append(helper.make_attribute(*pair))
    try:
        results = LOWERINGS[form.op_type](Context(build, Values(build), proto, OPSET, (x, *others)))
    except SaturaError:
        return None
    result = results if isinstance(results, int) else results[0]
    known = {number: at for at, number in enumerate(_UNKNOWN[: len(form.numbers)])}
    return Formula(tuple(build.nodes), result, x, tuple(others), known)


def _by_kind() -> Mapping[str, Sequence[Form]]:
    """The forms by the kind of the node that computes their results."""
    result = defaultdict(list)
    for form in _FORMS:
        fixed = dict(form.fixed) | ({"axis": 0} if form.has_axis else {})
        formula = _formula(form, TensorType(DType.F32, (2, 2, 2)), 0, fixed)
        assert formula is not None
        result[root_kind(formula.nodes[formula.result])].append(form)
    return result


_FORMS_OF = _by_kind()
