"""Extractors on choice graphs: what they choose is whole, and the exact one is the cheapest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import pow
from random import Random

import numpy as np
import pytest

from benchmarks.models import build
from satura.pipeline.phases import Phases
from satura.pipeline.stages import _searches, best_schedule, rewrite, search
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.extract.candidates import (
    WIDTH,
    add_variants,
    candidates,
    enumerate_fragments,
)
from satura.rewrite.extract.choice_graph import ChoiceGraph, Extractor, Result
from satura.rewrite.extract.cost import given_or_default
from satura.rewrite.extract.exact import _circles, exact, relax
from satura.rewrite.extract.extract import EXTRACTORS, Appraised, choices, extract
from satura.rewrite.extract.greedy import dag_greedy, tree_greedy
from satura.rewrite.extract.landmarks import Landmarks, landmarks
from satura.rewrite.extract.local_search import local_search
from satura.rewrite.extract.templates import Templates
from satura.rewrite.language.rule import RuleSet
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT
from tests.random_programs import random_program
from tests.test_extract import unrewritten
from tests.tiers import deep_but

CLOSE = 1 + 1e-7


def random_graph(seed: int) -> ChoiceGraph:
    """A choice graph of few classes, most of which read each other in circles."""
    random = Random(seed)
    size = random.randint(2, 7)
    homes, leaves, costs = [], [], []
    for cls in range(size):
        for _ in range(random.randint(1, 3)):
            width = random.choice((0, 1, 1, 2, 3)) if random.random() < 0.9 else 0
            homes.append(cls)
            leaves.append(tuple(sorted(random.sample(range(size), min(width, size)))))
            costs.append(float(random.choice((0, 1, 2, 3, 5, 8))))
    goals = tuple(random.sample(range(size), random.randint(1, 2)))
    return ChoiceGraph(size, tuple(homes), tuple(leaves), tuple(costs), goals)


def is_whole(graph: ChoiceGraph, choice: dict[int, int]) -> bool:
    """Whether the goals can be computed by the chosen candidates, one after another."""
    computed: set[int] = set()
    for _ in range(graph.size):
        computed |= {c for c, k in choice.items() if computed.issuperset(graph.leaves[k])}
    return computed.issuperset(graph.goals)


def cheapest(graph: ChoiceGraph) -> float | None:
    """The cost of the best choice, by trying all; None where there is none."""
    costs = []
    for picks in product(*((None, *some) for some in graph.candidates)):
        choice = {cls: k for cls, k in enumerate(picks) if k is not None}
        if is_whole(graph, choice):
            costs.append(graph.cost(choice.values()))
    return min(costs, default=None)


def check(graph: ChoiceGraph, result: Result) -> None:
    choice = dict(result.choice)
    assert all(graph.homes[candidate] == cls for cls, candidate in choice.items())
    assert is_whole(graph, choice)
    assert result.cost == pytest.approx(graph.cost(choice.values()))


@pytest.mark.parametrize("seed", deep_but(range(60), range(500)))
def test_extractors_on_random_graphs(seed: int) -> None:
    graph = random_graph(seed)
    best = cheapest(graph)
    for extractor in EXTRACTORS.values():
        if best is None:
            with pytest.raises(ProgramError, match="cannot be computed by any of its candidates"):
                extractor(graph)
            continue
        result = extractor(graph)
        check(graph, result)
        assert best <= result.cost * CLOSE
        assert result.bound <= best * CLOSE
    if best is not None:
        found = exact(graph)
        assert found.cost == pytest.approx(best)
        assert found.bound == pytest.approx(best, rel=1e-6)
        assert landmarks(graph).bound <= best * CLOSE
        search = local_search(graph).cost
        assert search <= min(dag_greedy(graph).cost, tree_greedy(graph).cost) * CLOSE


def test_search_gains_in_each_of_equal_layers() -> None:
    """What fails in an unequal layer, or gains in an equal one, is tried in the others too."""
    homes, leaves, costs, goals = [], [], [], []
    for layer, shared in enumerate((5.0, 3.0, 3.0, 3.0)):
        left, right, both, first, second = range(5 * layer, 5 * layer + 5)
        homes += [left, right, both, first, first, second, second]
        leaves += [(), (), (), (left,), (both,), (right,), (both,)]
        costs += [2.0, 2.0, shared, 1.0, 1.0, 1.0, 1.0]
        goals += [first, second]
    graph = ChoiceGraph(20, tuple(homes), tuple(leaves), tuple(costs), tuple(goals))
    assert dag_greedy(graph).cost == 24
    assert local_search(graph).cost == 6 + 3 * 5


def test_search_leaves_a_class_together_with_what_it_reads() -> None:
    """As a number per row, and what is reduced from it, where a wide tensor is stored as well."""
    narrow, wide, least, again = range(4)
    first, second, third, other, far = range(4, 9)
    of: dict[int, list[tuple[float, tuple[int, ...]]]] = {
        narrow: [(2.6, ())],
        wide: [(2.61, (narrow,)), (2.69, ())],
        least: [(2.5, (narrow,)), (5.05, ())],
        again: [(2.55, (least,)), (2.6, (wide,))],
        first: [(2.69, (narrow,)), (2.78, (wide,))],
        second: [(2.69, (narrow,)), (2.78, (wide,))],
        third: [(2.95, (wide,))],
        other: [(2.52, (least,)), (2.52, (again,))],
        far: [(2.52, (least,)), (2.52, (again,))],
    }
    homes = [cls for cls, found in of.items() for _ in found]
    costs = [cost for found in of.values() for cost, _ in found]
    leaves = [read for found in of.values() for _, read in found]
    goals = (first, second, third, other, far)
    graph = ChoiceGraph(9, tuple(homes), tuple(leaves), tuple(costs), goals)
    assert local_search(graph).cost == pytest.approx(exact(graph).cost)


def test_what_was_moved_settles() -> None:
    """Where what goes over to a class early is better served by what others compute afterwards."""
    graph = random_graph(52815)
    assert local_search(graph).cost == cheapest(graph)


@pytest.mark.parametrize("seed", deep_but(range(2), range(100), range(25)))
def test_every_landmark_has_a_chosen_candidate(seed: int) -> None:
    program, _, _ = random_program(seed)
    found = choices(rewrite(program, "default", None, None).saturation.classes)
    marks = landmarks(found.graph)
    for extractor in EXTRACTORS.values():
        result = extractor(found.graph)
        check(found.graph, result)
        chosen = set(result.choice.values())
        assert all(chosen.intersection(cut) for cut in marks.cuts)
        left = max((marks.left[candidate] for candidate in chosen), default=0.0)
        assert marks.bound + left <= result.cost * CLOSE


@pytest.mark.parametrize("seed", deep_but((0, 217, 248), range(100), (*range(25), 48, 73)))
def test_search_makes_the_exact_choice_on_random_programs(seed: int) -> None:
    program, _, _ = random_program(seed)
    graph = choices(rewrite(program, "default", None, None).saturation.classes).graph
    best = exact(graph)
    assert best.gap < 1e-6
    assert local_search(graph).cost == pytest.approx(best.cost, rel=1e-3)


def test_a_program_that_only_the_grown_graph_has_is_found() -> None:
    """Here the short search after a round sees no gain in what the next round brings."""
    program, _, _ = random_program(3)
    saturation = rewrite(program, "default", None, None).saturation
    met = saturation.best
    assert isinstance(met, Appraised)
    assert best_schedule(saturation).seconds < 0.95 * met.seconds


@pytest.mark.deep
def test_rules_make_no_program_dearer() -> None:
    """Here a short search finds something cheaper after the rule, and a long one without it."""
    others = [rule.name for rule in DEFAULT if rule.name != "compose_reshapes"]
    model = build("tiny_swin")
    plain, made = (rewrite(model, r, None, None) for r in (RuleSet(), DEFAULT.without(*others)))
    start, met = made.saturation.start, made.saturation.best
    assert isinstance(start, Appraised) and isinstance(met, Appraised)
    assert met.seconds < start.seconds
    assert made.schedule.seconds <= plain.schedule.seconds * CLOSE


@pytest.mark.parametrize(
    ("seed", "law"),
    [
        (273, "reshape_past"), (258, "pad_out_of"), (3004, "drop_identity_cast"),
        (4003, "slice_into"), (4085, "transpose_past_pad"), (4138, "drop_identity_broadcast"),
        (4234, "broadcast_out_of_slice"),
    ],
)  # fmt: skip
def test_a_law_that_once_misled_the_search_makes_no_program_dearer(seed: int, law: str) -> None:
    """An output that several dispatches can read in its shape; the operand of an op in the middle
    of a dispatch, which a law made a pad of what is not stored; parts that two concats want; what
    is computed in a dispatch from what is computed beside it; what gives way only together."""
    program = random_program(seed)[0]
    found, less = (
        rewrite(program, rules, None, None).schedule for rules in (DEFAULT, DEFAULT.without(law))
    )
    assert found.seconds <= less.seconds * CLOSE


def unrolled(steps: int) -> Program:
    """A recurrence written out, each of whose states is read by a product, too."""
    build, batch = Builder(), symbol("batch")
    decay, gain = (build.input(name, DType.F32, (batch, steps, 64, 8)) for name in ("a", "b"))
    weights, state, results = build.input("c", DType.F32, (batch, steps, 8)), -1, []
    for step in range(steps):
        kept, new, read = (
            build.gather(each, build.constant(step), 1) for each in (decay, gain, weights)
        )
        state = build.binary("add", build.binary("mul", kept, state), new) if step else new
        column = build.reshape(read, (batch, 8, 1))
        results.append(build.reshape(build.matmul(state, column), (batch, 1, 64)))
    return build.program({"y": build.concat(results, 1)})


def test_a_program_as_it_was_is_searched_however_much_rules_seem_to_gain() -> None:
    """Here rules seem to gain a tenth; a longer search of what was there is left out only where
    computing alone takes longer than the best."""
    plain = rewrite(unrolled(12), "none", None, None)
    start, first = plain.saturation.start, plain.saturation.start_classes
    assert isinstance(start, Appraised) and first is not None
    assert 0 < start.work < 0.9 * start.seconds
    other = rewrite(unrolled(13), "none", None, None).saturation
    for seconds, is_searched in ((0.9 * start.seconds, True), (0.9 * start.work, False)):
        met, classes = Appraised(seconds, None, plain.schedule), other.classes
        found = replace(plain.saturation, best=met, best_classes=classes, classes=classes)
        assert len(_searches(found, met, None)) == 1 + is_searched


def sampled(corners: int) -> Program:
    """A sum of what is gathered at places of which each takes some operations, as the corners
    around a point do."""
    build, batch = Builder(), symbol("batch")
    image, place = build.input("x", DType.F32, (4096, 32)), build.input("p", DType.F32, (batch, 64))
    total = -1
    for corner in range(corners):
        step = build.broadcast(build.constant([[corner / 2]], DType.F32), (batch, 64))
        there = build.binary("add", place, step)
        for _ in range(12):
            there = build.binary("mul", there, place)
        index = build.cast(build.unary("floor", there), DType.I64)
        share = build.broadcast(
            build.reshape(build.binary("sub", there, place), (batch, 64, 1)), (batch, 64, 32)
        )
        seen = build.binary("mul", build.gather(image, index, 0), share)
        total = build.binary("add", total, seen) if corner else seen
    return build.program({"y": total})


def test_fragments_that_leave_room_to_grow_are_kept() -> None:
    """Alone a gather computes its places at little cost, but four of them do not fit in one
    dispatch then: where places are stored, it takes about as long as three."""
    three, four = (rewrite(sampled(count), "none", None, None).schedule for count in (3, 4))
    assert four.seconds < 1.3 * three.seconds


def test_an_extractor_of_a_users_own() -> None:
    """The dearest candidate that is computable: what a user writes is what is emitted."""

    def dearest(graph: ChoiceGraph) -> Result:
        costs = tuple(max(graph.costs) - cost for cost in graph.costs)
        turned = ChoiceGraph(graph.size, graph.homes, graph.leaves, costs, graph.goals)
        choice = dag_greedy(turned).choice
        return Result(choice, graph.cost(choice.values()))

    program, _, _ = random_program(3)
    classes = rewrite(program, "default", None, None).saturation.classes
    extractor: Extractor = dearest
    assert extract(classes, method=extractor).seconds > extract(classes).seconds


def test_what_is_shared_is_paid_once_by_dags_and_twice_by_trees() -> None:
    """Class 3 from 1 and 2, both from 0, costs 13; alone it costs 15."""
    homes, leaves = (0, 1, 2, 3, 3), ((), (0,), (0,), (1, 2), ())
    graph = ChoiceGraph(4, homes, leaves, (10.0, 1.0, 1.0, 1.0, 15.0), (3,))
    assert dag_greedy(graph).choice[3] == 3
    assert tree_greedy(graph).choice[3] == 4


@pytest.mark.parametrize("seed", deep_but(range(20), range(60)))
def test_the_integer_program_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a bad start, and with circles forbidden only where they are met, it is exact."""
    graph = random_graph(seed)
    best = cheapest(graph)
    monkeypatch.setattr("satura.rewrite.extract.exact.local_search", tree_greedy)
    none = Landmarks(0.0, (), graph.costs)
    monkeypatch.setattr("satura.rewrite.extract.exact.landmarks", lambda graph: none)
    monkeypatch.setattr("satura.rewrite.extract.exact._circles", lambda graph, of: iter(()))
    if best is not None:
        assert exact(graph).cost == pytest.approx(best)


def test_variants_make_a_cheaper_choice() -> None:
    classes = rewrite(random_program(20)[0], "default", None, None).saturation.classes
    plain = choices(classes, rounds=0)
    cost, less = (local_search(each.graph).cost for each in (plain, add_variants(plain)))
    assert less < 0.9 * cost


def weighted_means(steps: int) -> Program:
    """Means of values so far, weighted by e to the power of keys that decay, step after step."""
    build = Builder()
    keys, values = (build.input(name, DType.F32, (steps, 128)) for name in ("k", "v"))
    bonus, decay, total, weight, most = (
        build.constant(np.linspace(-1, last, 128, dtype=np.float32)[None]) for last in range(5)
    )

    def joined(held: int, new: int, value: int, total: int, weight: int) -> tuple[int, int, int]:
        """The larger power, and by it the sums of what was held and of a new value."""
        most = build.binary("max", held, new)
        old, one = (build.unary("exp", build.binary("sub", x, most)) for x in (held, new))
        more = build.binary("mul", one, value)
        sums = [(total, more), (weight, one)]
        scaled = [build.binary("add", build.binary("mul", old, x), y) for x, y in sums]
        return most, scaled[0], scaled[1]

    means = []
    for step in range(steps):
        key, value = (build.slice(each, (step, 0), (1, 128)) for each in (keys, values))
        _, *mean = joined(most, build.binary("add", bonus, key), value, total, weight)
        means.append(build.binary("div", *mean))
        faded = build.binary("add", decay, most)
        most, total, weight = joined(faded, key, value, total, weight)
    return build.program({"y": build.concat(means, 0)})


def test_what_is_stored_crowds_nothing_out() -> None:
    """A wide enumeration that does not know what a narrow one stores is at 38.38 us here."""
    program, *_ = random_program(1128)
    classes = search(program, DEFAULT, None, Phases()).saturation.classes
    model = given_or_default(None)
    told = candidates(classes, model).start
    untold = add_variants(enumerate_fragments(classes, Templates(model), WIDTH), 2 * WIDTH).start
    assert told.cost < 0.998 * untold.cost


@pytest.mark.deep
def test_what_fusion_decides_is_searched_widely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponentials that two results share, stored or computed again."""
    program = weighted_means(40)
    wide = rewrite(program, DEFAULT, None, None).schedule.seconds
    monkeypatch.setattr("satura.pipeline.stages._LARGE", 0)
    narrow = rewrite(program, DEFAULT, None, None).schedule.seconds
    assert wide < 0.93 * narrow


def test_variants_store_only_what_others_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """In large graphs."""
    monkeypatch.setattr("satura.rewrite.extract.candidates.LARGE", 0)
    build = Builder()
    x, y = (build.unary("exp", build.input(name, DType.F32, (1, 8, 8, 4))) for name in "xy")
    both = build.binary("mul", build.unary("neg", x), build.unary("abs", y))
    alone, beside = (
        choices(unrewritten(build.program(outputs)), rounds=0)
        for outputs in ({"both": both}, {"both": both, "x": x})
    )
    assert len(add_variants(alone).found) == len(alone.found)
    assert len(add_variants(beside).found) > len(beside.found)


@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e-30])
def test_costs_that_are_next_to_nothing_are_no_landmarks(unit: float) -> None:
    graph = ChoiceGraph(3, (0, 1, 2), ((), (0,), (1,)), (unit, 9e-16 * unit, 9e-16 * unit), (2,))
    assert landmarks(graph).bound == unit and len(landmarks(graph).cuts) == 1
    assert exact(graph).cost == pytest.approx(unit)


def of_many_magnitudes(random: Random) -> float:
    return pow(10.0, random.uniform(-9, 3))


def near_each_other(random: Random) -> float:
    return random.choice((1, 2)) + random.choice((0.0, 1e-7, 1e-6, 2e-6))


def far_apart(random: Random) -> float:
    return random.choice((0.0, 1e-17, 1e-15, 2e-15, 1e-12, 1e-9, 1.0, 1e3))


@pytest.mark.parametrize("unit", [5e-324, 1e-318, 1e-200, 1e-16, 1.0, 1e6, 1e200])
@pytest.mark.parametrize("draw", [of_many_magnitudes, near_each_other, far_apart])
@pytest.mark.parametrize("seed", deep_but((*range(6), 13, 16), range(200)))
def test_costs_of_any_magnitude(seed: int, draw: Callable[[Random], float], unit: float) -> None:
    """The exact choice is the cheapest to 1e-9, and no bound is above it."""
    random, graph = Random(seed), random_graph(seed)
    graph = replace(graph, costs=tuple(unit * draw(random) for _ in graph.costs))
    best = cheapest(graph)
    if best is None:
        return
    found, relaxed = exact(graph), relax(graph)
    same = pytest.approx(best, rel=2e-9, abs=5e-324)
    assert found.cost == same and found.bound == same and found.bound <= found.cost
    most = best * (1 + 2e-9)
    assert landmarks(graph).bound <= most and relaxed.bound <= min(most, relaxed.cost)


def test_without_scipy_only_what_needs_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where classes read each other, which are looked for first."""
    monkeypatch.setattr("satura.rewrite.extract.exact.find_spec", lambda name: None)
    monkeypatch.setattr("satura.rewrite.extract.exact._Model", None)
    graph = ChoiceGraph(3, (0, 0, 1, 1, 2), ((1,), (), (0,), (), (0, 1)), (0.0, 5, 0.0, 5, 1), (2,))
    none = Landmarks(0.0, (), graph.costs)
    monkeypatch.setattr("satura.rewrite.extract.exact.landmarks", lambda graph: none)
    assert relax(graph).cost == 6.0
    with pytest.raises(CallError, match="exact extraction needs scipy"):
        exact(graph)


def test_a_bound_is_not_above_the_cost_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ChoiceGraph(2, (0, 1, 1), ((1,), (), ()), (0.1, 0.7, 0.8), (0,))
    above = replace(landmarks(graph), bound=graph.cost((0, 1)) * (1 + 1e-15))
    monkeypatch.setattr("satura.rewrite.extract.exact.landmarks", lambda graph: above)
    for found in (exact(graph), relax(graph)):
        assert found.bound == found.cost


def chain(length: int, reach: int = 1) -> ChoiceGraph:
    """Classes with a candidate for each of so many before them that it reads."""
    homes = [cls for cls in range(length) for _ in range(max(1, min(cls, reach)))]
    leaves = [(cls - 1 - k,) for cls in range(1, length) for k in range(min(cls, reach))]
    costs = (1.0,) * len(homes)
    return ChoiceGraph(length, tuple(homes), ((), *leaves), costs, (length - 1,))


@pytest.mark.deep
def test_what_every_choice_computes_is_charged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One landmark after the other took time that grows as the square of a chain's length."""
    monkeypatch.setattr("satura.rewrite.extract.landmarks.STEPS", 0)
    for extractor in EXTRACTORS.values():
        assert extractor(chain(20_000)).cost == 20_000
    assert exact(chain(20_000)).bound == landmarks(chain(20_000)).bound == 20_000


def test_landmarks_are_looked_for_in_a_limited_number_of_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = chain(300, reach=2)
    whole = landmarks(graph)
    monkeypatch.setattr("satura.rewrite.extract.landmarks.STEPS", 1_000)
    part = landmarks(graph)
    assert part.cuts == whole.cuts[: len(part.cuts)] and len(part.cuts) < len(whole.cuts)
    assert part.bound < whole.bound == local_search(graph).cost == 151


@pytest.mark.deep
def test_large_circles_have_rows_for_pairs_that_read_each_other() -> None:
    """Not for all pairs of thousands of classes."""
    size = 1_000
    homes = (*range(size), *range(size - 1))
    leaves = ((), *((cls - 1,) for cls in range(1, size)), *((cls + 1,) for cls in range(size - 1)))
    graph = ChoiceGraph(size, homes, leaves, (1.0,) * len(homes), (size - 1,))
    of = {cls: list(candidates) for cls, candidates in enumerate(graph.candidates)}
    found = list(_circles(graph, of))
    assert found[-1] == frozenset(range(size))
    assert found[:-1] == [frozenset((cls, cls + 1)) for cls in range(size - 1)]
    assert exact(graph).cost == size


def test_what_an_extractor_raises_names_it() -> None:
    def mine(graph: ChoiceGraph) -> Result:
        raise ValueError(f"{graph.size} classes")

    made = Builder()
    classes = unrewritten(made.program({"y": made.unary("exp", made.input("x", DType.F32, (3,)))}))
    with pytest.raises(ValueError, match="classes") as raised:
        extract(classes, method=mine)
    assert raised.value.__notes__ == ["in the extractor 'mine'"]
