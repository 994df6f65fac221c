"""Fragments: whatever `combine` admits is a dispatch that the backend can lower."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from satura.backend.constants import ConstantStore
from satura.backend.plan.compiled import compile_schedule
from satura.backend.plan.kernels import kernel_code
from satura.pipeline.stages import rewrite
from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract import templates
from satura.rewrite.extract.assemble import assemble
from satura.rewrite.extract.candidates import candidates, enumerate_fragments
from satura.rewrite.extract.combine import MAX_NODES, combine
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.enumeration import agree
from satura.rewrite.extract.extract import choices, extract
from satura.rewrite.extract.folding import fold
from satura.rewrite.extract.forms import INLINED
from satura.rewrite.extract.fragments import Fragment
from satura.rewrite.extract.greedy import members
from satura.rewrite.extract.placement import place
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.extract.settle import schedule
from satura.rewrite.extract.templates import Instance, Templates
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import bind_sizes, interpret
from satura.rewrite.types.attributes import Parameter
from satura.rewrite.types.tensor_type import DType
from tests.onnxruntime_reference import assert_close
from tests.random_programs import random_program
from tests.test_extract import unrewritten
from tests.tiers import deep_but

MODEL = CostModel()


def admitted(classes: EClasses, monkeypatch: pytest.MonkeyPatch) -> list[Fragment]:
    """Every fragment that becomes a kernel of its own or a part of one during extraction."""
    found: list[Fragment] = []

    def recorded(
        classes: EClasses, cls: int, node: ENode, parts: tuple[Fragment | None, ...],
        model: CostModel,
    ) -> Fragment | None:  # fmt: skip
        fragment = combine(classes, cls, node, parts, model)
        if fragment is not None and fragment.form in INLINED:
            found.append(fragment)
        return fragment

    monkeypatch.setattr(templates, "combine", recorded)
    candidates(classes, MODEL)
    return found


def alone(classes: EClasses, fragment: Fragment) -> Schedule:
    """The schedule whose one dispatch is `fragment`; what it reads are inputs."""
    nodes = list(classes.nodes)
    for leaf in fragment.reads:
        nodes[leaf] = (ENode("input", (), (Parameter(f"x{leaf}", classes.types[leaf]),)),)
    isolated = replace(
        classes, nodes=tuple(nodes), inputs=tuple(fragment.reads), outputs=(("y", fragment.cls),)
    )
    folding = fold(isolated, MODEL)
    return place(assemble(isolated, {fragment.cls: fragment}, folding, MODEL), MODEL)


@pytest.mark.parametrize("seed", deep_but([2], range(60), range(12)))
@pytest.mark.parametrize("rules", ["none", "default"])
def test_every_fragment_lowers(seed: int, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, arguments, _ = random_program(seed)
    sizes = bind_sizes(program, arguments)
    classes = rewrite(program, rules, None, None).saturation.classes
    fragments = admitted(classes, monkeypatch)
    assert fragments
    for fragment in fragments:
        schedule = alone(classes, fragment).concrete(sizes)
        (dispatch,) = schedule.dispatches
        kernel_code(schedule, dispatch, 1, ConstantStore(), bool(sizes))


@pytest.mark.parametrize("seed", deep_but(range(1), range(60), range(12)))
def test_templates_say_what_their_fragments_are(seed: int) -> None:
    program, _, _ = random_program(seed)
    found = choices(rewrite(program, "default", None, None).saturation.classes)
    instances = [each for each in found.found if isinstance(each, Instance)]
    assert instances
    for instance in instances:
        fragment, template = found.enumeration.fragment(instance), instance.template
        assert (fragment.cls, fragment.node) == (instance.cls, instance.node)
        assert (fragment.form, fragment.anchor is None) == (template.form, template.anchor is None)
        assert list(fragment.reads) == instance.reads
        assert list(fragment.computed) == instance.computed
        given = found.enumeration.given
        assert list(members(instance.leaves)) == sorted(
            k for k in fragment.reads if given[k] is None
        )
        assert instance.given == pytest.approx(sum(given[k] or 0.0 for k in fragment.reads))
        assert fragment.seconds(found.classes, found.model) == template.prices.seconds


@pytest.mark.parametrize(("times", "grows"), [(1, True), (4096, False)])
def test_nothing_grows_from_what_is_better_read(times: int, grows: bool) -> None:
    """Dear work on few elements is not repeated for each of the many that they are broadcast to."""
    build = Builder()
    few = build.input("few", DType.F32, (1, 4096))
    many = build.input("many", DType.F32, (times, 4096))
    worked = few
    for _ in range(8):
        worked = build.unary("erf", worked)
    spread = build.broadcast(worked, (times, 4096))
    classes = unrewritten(build.program({"y": build.binary("add", spread, many)}))
    found = enumerate_fragments(classes, Templates(MODEL))
    ((_, goal),) = classes.outputs
    sizes = [found.fragment(candidate).size for candidate in found.graph.candidates[goal]]
    assert (max(sizes) >= 9) is grows


def test_loops_that_contractions_read_stand_beside_cheaper_ones() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (64, 64))
    codes = build.cast(build.unary("round", x), DType.U8)
    weights = build.constant(np.ones((64, 64), np.int8))
    sums = build.matmul(build.cast(codes, DType.I32), build.cast(weights, DType.I32))
    found = enumerate_fragments(unrewritten(build.program({"y": sums})), Templates(MODEL))
    work = [dispatch.features.summed for dispatch in schedule(found, found.start).dispatches
            if dispatch.features is not None]  # fmt: skip
    assert "octets" in work[-1]


def test_rows_of_other_axes_stand_beside_cheaper_ones() -> None:
    """What a sum of all pixels is broadcast to has the axes of the transposed image, of which the
    sum is dearer: of the image itself nothing else could fuse with it."""
    build = Builder()
    image = build.transpose(build.input("x", DType.F32, (2, 5, 7, 4)), (0, 3, 1, 2))
    total = build.reduce("sum", image, (1, 2, 3))
    last = build.transpose(build.unary("tanh", total), (2, 3, 0, 1))
    outputs = {"y": build.broadcast(total, (2, 4, 5, 7)), "z": last}
    made = rewrite(build.program(outputs), "default", None, None).schedule
    assert [dispatch.form for dispatch in made.dispatches] == [Form.ROW] * 2


def test_of_equal_ways_to_read_operands_one_goes_on() -> None:
    """A product that can see both operands is not kept reading copies, too."""
    build, shape = Builder(), (64, 4, 49, 32)
    x, y = (build.input(name, DType.F32, (64, 49, 4, 32)) for name in "xy")
    x, y = (build.unary("exp", each) for each in (x, y))
    right = build.transpose(y, (0, 2, 3, 1))
    classes = unrewritten(
        build.program({"z": build.matmul(build.transpose(x, (0, 2, 1, 3)), right)})
    )
    made = enumerate_fragments(classes, Templates(MODEL)).enumeration
    assert classes.types[classes.outputs[0][1]].shape == (*shape[:3], 49)
    ((_, kept),) = made.options[classes.outputs[0][1]].values()
    assert [part and part.node.op for part in kept.parts] == ["transpose", "transpose"]


@pytest.mark.parametrize("dtype", [DType.U8, DType.I8])
@pytest.mark.parametrize(("zero", "function"), [(0, None), (119, None), (119, "relu")])
def test_depthwise_windows_convert_octets_that_they_read(
    zero: int, function: str | None, dtype: DType
) -> None:
    """And their borders cost nothing; but work beyond that is not repeated for each tap."""
    build, shape = Builder(), (1, 33, 33, 64)

    def spread(number: float, dtype: DType) -> int:
        return build.broadcast(build.constant([[[[number]]]], dtype), shape)

    octets = build.cast(build.unary("round", build.input("x", DType.F32, shape)), dtype)
    moved = build.binary("sub", build.cast(octets, DType.I16), spread(zero, DType.I16))
    seen = build.binary("mul", build.cast(moved, DType.F32), spread(0.02, DType.F32))
    seen = seen if function is None else build.unary(function, seen)
    window = build.window(DType.F32, (3, 3), lo=(1, 1), hi=(1, 1))
    weights = build.constant(np.ones((3, 3, 1, 64), np.float32))
    program = build.program({"y": build.conv(seen, weights, window, 64)})
    found = enumerate_fragments(unrewritten(program), Templates(MODEL))
    chosen = schedule(found, found.start)
    last = chosen.dispatches[-1]
    read = {chosen.program.nodes[operand].type.dtype for operand in last.operands}
    assert (dtype in read) is (function is None)
    code = kernel_code(chosen, last, 1, ConstantStore(), False)
    assert code is not None
    assert not re.search(r"choose\(v\w+, v\w+, v", code.text)


def test_what_is_cheaper_inside_rows_is_kept_beside_what_is_cheaper_in_a_loop() -> None:
    """A loop is cut into runs by a pad; in a row each element is told from its neighbours."""
    build = Builder()
    x = build.input("x", DType.F32, (40, 60))
    padded = build.pad(build.slice(x, (0, 0), (40, 58)), (0, 1), (0, 1))
    sines = build.unary("sin", x)
    outputs = {"row": build.reduce("sum", padded, (1,)), "loop": build.unary("neg", padded)}
    classes = unrewritten(build.program(outputs | {"sines": sines}))
    nodes = list(classes.nodes)
    nodes[padded] += nodes[sines]  # as if they were equal
    for output, is_cut in (("row", False), ("loop", True)):
        one = replace(classes, nodes=tuple(nodes), outputs=((output, outputs[output]),))
        found = enumerate_fragments(one, Templates(MODEL))
        (dispatch,) = (made := schedule(found, found.start)).dispatches
        assert ("pad" in {made.program.nodes[node].op.name for node in dispatch.nodes}) == is_cut


@pytest.mark.parametrize("seed", deep_but((1, 9, 1066), range(40)))
def test_no_option_does_as_well_as_another_with_fewer_classes(seed: int) -> None:
    """A wide search has few places for options, and none for what is of no use."""
    made = rewrite(random_program(seed)[0], "default", None, None)
    classes = made.saturation.best_classes
    assert classes is not None
    wide = enumerate_fragments(classes, Templates(MODEL), 8).enumeration
    for options in wide.options:
        kept = {key: each for key, (_, each) in options.items() if isinstance(key, tuple)}
        for (key, first), (other, second) in permutations(kept.items(), 2):
            if key[0] == other[0] and not first.leaves & ~second.leaves:
                alone = [each.template.prices.inlined + each.given for each in (first, second)]
                assert alone[0] > alone[1] or first.template.longer_in_rows > 0


def test_what_is_not_tried_does_not_fuse() -> None:
    build, shape = Builder(), (8, 8)
    x, y = (build.input(name, DType.F32, shape) for name in "xy")
    products = [build.matmul(x, y), build.matmul(y, x)]
    rows = [build.broadcast(build.reduce("sum", each, (1,)), shape) for each in (x, y)]
    pairs = [build.binary("add", a, b) for a in (*products, *rows) for b in (*products, *rows)]
    classes = unrewritten(build.program({f"o{at}": pair for at, pair in enumerate(pairs)}))
    made = enumerate_fragments(classes, Templates(MODEL)).enumeration
    fused = refused = 0
    for cls, (node, *_) in enumerate(classes.nodes):
        if node.op != "binary":
            continue
        options = [[part for _, part in made.options[each].values()] for each in node.operands]
        for parts in product(*options):
            found = made.instances.combined(cls, 0, parts)
            fused += agree(parts)
            refused += not agree(parts)
            assert agree(parts) or found is None
    assert fused and refused


def test_a_chain_of_movements_of_a_constant_costs_one_copy() -> None:
    build = Builder()
    weights = build.constant(np.ones((64, 192), np.float32))
    split = build.reshape(build.transpose(weights, (1, 0)), (12, 16, 64))
    moved = build.reshape(build.transpose(split, (1, 0, 2)), (192, 64))
    doubled = build.binary("add", moved, moved)
    classes = unrewritten(build.program({"y": moved, "z": doubled}))
    (_, y), (_, z) = classes.outputs
    prices = [price or 0.0 for price in fold(classes, CostModel(constant=0.0)).given]
    (kept,) = [prices[c] for c, (node,) in enumerate(classes.nodes) if node.op == "constant"]
    copied = prices[y] - kept
    assert 0 < copied < kept
    assert prices[z] - kept == pytest.approx(3 * copied)  # two operands, and the sum


@pytest.mark.parametrize("operands", [1, 2])
@pytest.mark.parametrize("repeats", [False, True])
def test_long_chains_of_movements_are_cut(repeats: bool, operands: int) -> None:
    """What one fragment cannot hold is stored on the way, though it is only moved on."""
    build = Builder()
    ends = []
    for name in "xy"[:operands]:
        x = build.input(name, DType.F32, (2, 3))
        for _ in range(3 * MAX_NODES // 4):
            x = build.reshape(build.transpose(x, (1, 0)), (2, 3))
            if repeats:
                x = build.reshape(build.broadcast(build.reshape(x, (1, 2, 3)), (1, 2, 3)), (2, 3))
        ends.append(x)
    result = build.unary("sin", ends[0] if operands == 1 else build.binary("add", *ends))
    program = build.program({"z": result})
    arguments = {name: np.arange(6, dtype=np.float32).reshape(2, 3) for name in "xy"[:operands]}
    made = extract(unrewritten(program))
    found = compile_schedule(made, 1).run(arguments)["z"]
    assert_close(found, interpret(program, arguments)["z"])
