"""Fragments: whatever `combine` admits is a dispatch that the backend can lower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from satura.backend.constants import ConstantStore
from satura.backend.plan.kernels import kernel_code
from satura.pipeline.stages import rewrite
from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract import templates
from satura.rewrite.extract.assemble import assemble
from satura.rewrite.extract.candidates import candidates
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import choices
from satura.rewrite.extract.folding import fold
from satura.rewrite.extract.forms import INLINED
from satura.rewrite.extract.fragments import Fragment, combine
from satura.rewrite.extract.placement import place
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.extract.templates import Instance
from satura.rewrite.program.interpreter import bind_sizes
from satura.rewrite.types.attributes import Parameter
from tests.random_programs import random_program
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


@pytest.mark.parametrize("seed", deep_but(range(5), range(60)))
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


@pytest.mark.parametrize("seed", deep_but(range(4), range(60)))
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
        assert fragment.seconds(found.classes, found.model) == template.seconds
