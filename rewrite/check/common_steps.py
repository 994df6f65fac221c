"""Firings of several slices that get one step along an axis, or of which one gets it.

Slices hang together by where they begin and end: a law of them may count elements where it has to
count steps, or forget that they have steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from satura.rewrite.check.instances import Instance, fires, is_well_typed
from satura.rewrite.types.attributes import Attribute, Slices
from satura.rewrite.types.tensor_type import TensorType

T = TypeVar("T")

STEPS = (2, 2, 2, 3, -1, -2)
DRAWS = 2000
WANTED = 200  # that fire
LONE = 0.2  # of them: one slice alone has the step
JOINED = 0.5  # of others: one slice begins where another one ends
SHORTENED = 0.3  # of slices: to one element, which has no second one a step away
GROWN = 0.5  # of tensors: so that all slices fit, one after the other


@dataclass(frozen=True)
class _Run:
    """What a slice reads along one axis."""

    start: int
    size: int
    step: int

    @property
    def first(self) -> int:
        """The least place that it reads from."""
        return self.start + min(0, (self.size - 1) * self.step)

    def beginning_at(self, first: int) -> _Run:
        return replace(self, start=self.start + first - self.first)


def with_common_steps(firings: Sequence[Instance], seed: int, scale: int) -> Iterator[Instance]:
    """Firings with another step along one axis of all slices, as long as their tensors fit."""
    random = Random(seed)
    chosen = [(each, axis) for each in firings for axis in _common_axes(each)]
    known = {each.values for each in firings}
    most = len(known) + WANTED * scale
    for _ in range(DRAWS * scale if chosen else 0):
        instance = _restepped(*random.choice(chosen), random)
        if instance.values not in known and is_well_typed(instance) and fires(instance):
            known.add(instance.values)
            yield instance
        if len(known) == most:
            return


def _common_axes(instance: Instance) -> list[int]:
    """The axes along which at least two slices read known places."""
    slices = [value for _, value in instance.values if isinstance(value, Slices)]
    ranks = {len(each.sizes) for each in slices}
    axes = range(ranks.pop()) if len(slices) > 1 and len(ranks) == 1 else ()
    return [axis for axis in axes if all(_run(each, axis) for each in slices)]


def _run(slices: Slices, axis: int) -> _Run | None:
    start, size = slices.starts[axis], slices.sizes[axis]
    if isinstance(start, int) and isinstance(size, int) and size > 0:
        return _Run(start, size, slices.steps[axis])
    return None


def _restepped(base: Instance, axis: int, random: Random) -> Instance:
    """The instance with one step for all slices along an axis, and some tensors longer there."""
    slices = {name: value for name, value in base.values if isinstance(value, Slices)}
    runs = {name: run for name, value in slices.items() if (run := _run(value, axis))}
    runs = _with_step(runs, random.choice(STEPS), random)
    end = max(run.first for run in runs.values())
    end += sum(run.size * abs(run.step) for run in runs.values())
    grown = random.choice((0.0, GROWN, 1.0))

    def changed(name: str, value: TensorType | Attribute) -> TensorType | Attribute:
        if isinstance(value, Slices):
            run = runs[name]
            return Slices(
                _with(value.starts, axis, run.start),
                _with(value.sizes, axis, run.size),
                _with(value.steps, axis, run.step),
            )
        if isinstance(value, TensorType) and axis < value.rank and random.random() < grown:
            dim = value.shape[axis]
            long = max(dim, end) if isinstance(dim, int) else dim
            return value.with_shape(_with(value.shape, axis, long))
        return value

    return replace(base, values=tuple((name, changed(name, each)) for name, each in base.values))


def _with_step(runs: Mapping[str, _Run], step: int, random: Random) -> dict[str, _Run]:
    """The runs in steps of `step`, or one of them; some are shorter. One may begin at the end of
    another one: of all that it steps over, or of as many elements."""
    found = {name: _stepped(run, step, random) for name, run in runs.items()}
    if random.random() < LONE:
        alone = random.choice(sorted(runs))
        return {**runs, alone: found[alone]}
    if random.random() < JOINED:
        first, second = random.sample(sorted(found), 2)
        before = found[first]
        taken = before.size * random.choice((1, abs(step)))
        found[second] = found[second].beginning_at(before.first + taken)
    return found


def _stepped(run: _Run, step: int, random: Random) -> _Run:
    if random.random() < SHORTENED:
        run = _Run(random.choice((run.start, run.start + run.size - 1)), 1, 1)
    return replace(run, step=step).beginning_at(run.first)


def _with(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])
