"""How a model becomes what a Compiled runs: one part, for all values or each, or a chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from satura.backend.plan.compiled import CompiledSchedule, compile_schedule
from satura.backend.plan.kernels import refused_dispatches
from satura.backend.plan.plans import Elsewhere
from satura.backend.run.part import Program as Runs
from satura.backend.run.signatures import values_of
from satura.pipeline.chain import Chain
from satura.pipeline.compiled import Compiled
from satura.pipeline.models import Model
from satura.pipeline.phases import Phases, Progress
from satura.pipeline.rewritten import Rewritten
from satura.pipeline.rule_sets import Rules, names_in_the_book
from satura.pipeline.sizes import Dims, check_sizes, declared_sizes, middles
from satura.rewrite.errors import ModelError, UnsupportedError
from satura.rewrite.extract.schedule import Refusals, Schedule
from satura.rewrite.onnx.asked import Asked, bind_inputs
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.files import ModelApart, read_apart
from satura.rewrite.onnx.inputs import declared_inputs
from satura.rewrite.onnx.load import load_at, load_for
from satura.rewrite.onnx.shown_types import shown_types
from satura.rewrite.program.program import Program
from satura.rewrite.types.stored import StoredFile
from satura.rewrite.types.tensor_type import Array


@dataclass(frozen=True)
class Making:
    """How programs are searched and compiled."""

    search: Callable[[Model, Refusals | None], Rewritten]
    search_elsewhere: Callable[[Program, Refusals | None], Schedule]
    dims: Dims | None
    rules: Rules
    threads: int
    progress: Progress | None
    merging: str
    verify: bool

    def kernels(self, model: Model | StoredFile) -> CompiledSchedule:
        """What runs the model, which is read once.

        Where inputs decide shapes it is compiled for the values of each call, and where data do it
        in parts.
        """
        if isinstance(model, Program):
            check_sizes(middles(self.dims), model.symbols)
            return self._part(model)
        apart = read_apart(model)
        check_sizes(middles(self.dims), declared_sizes(apart))
        try:
            return self._one(apart)
        except Asked as asked:
            return self._for_each_value(apart, asked.names)

    def _one(self, model: ModelApart) -> CompiledSchedule:
        """What runs the model by one program. Raises Asked where values of inputs decide shapes."""
        try:
            return self._part(model, model)
        except OpenExtents as found:
            return CompiledSchedule(self.threads, [Chain(model, found, self._one, {})])

    def _for_each_value(self, model: ModelApart, names: frozenset[str]) -> CompiledSchedule:
        """What runs the model by a program for each value of these inputs, and maybe of others."""

        def search(arguments: Mapping[str, Array], known: frozenset[str]) -> Runs:
            names = known
            while True:
                try:
                    program, names = load_for(model, arguments, names, middles(self.dims))
                    values = {name: arguments[name] for name in names}
                    return self._part(program, model, values).program
                except OpenExtents as found:
                    values = {name: arguments[name] for name in names}
                    try:
                        return Chain(model, found, self._one, values)
                    except Asked as asked:
                        names |= asked.names

        types = declared_inputs(model.proto.graph)
        return CompiledSchedule(self.threads, [], names, search, types)

    def _part(
        self, model: Model, whole: ModelApart | None = None,
        values: Mapping[str, Array] | None = None,
    ) -> CompiledSchedule:  # fmt: skip
        """The part that runs `model`, which is the `whole` for these values."""
        rewritten = self.search(model, None)
        given = values or {}
        others = None if whole is None else self._elsewhere(whole, rewritten.source, given)
        phases = Phases(self.progress, dict(rewritten.phases))
        made = replace(rewritten, phases=phases.seconds)

        def again(refusals: Refusals) -> tuple[Schedule, Rewritten]:
            found = self.search(model, refusals)
            phases.seconds.update(found.phases)
            return found.schedule, replace(found, phases=phases.seconds)

        key = values_of(given, given.keys())
        with phases.phase("kernels"):
            part = compile_schedule(
                made.schedule, self.threads, self.progress, others, self.merging, key, made, again
            )
        if self.verify:
            from satura.pipeline.verify import verify as verify_stages

            verify_stages(Compiled(part), None, whole, values)
        return part

    def _elsewhere(
        self, model: ModelApart, source: Program, values: Mapping[str, Array]
    ) -> Elsewhere | None:
        """What gives the schedule for sizes that the program `source` of `model` excludes.

        Those are sizes that do not fulfil its conditions, or differ where it takes them for equal.
        None where it excludes none.
        """
        declared, _ = bind_inputs(declared_inputs(model.proto.graph), values)
        types = source.input_types
        if all(each.is_of_extent for each in source.conditions) and declared == types:
            return None

        chains: list[Chain | None] = []  # the one for all that Python decides, once it was tried

        def at(sizes: Mapping[str, int]) -> Schedule | Chain:
            try:
                program = load_at(model, sizes, types, values, takes_turns=True)
            except OpenExtents as found:
                chain = chains[0] if chains else self._in_turns(model, found, values)
                chains[:] = [chain]
                if chain is not None:
                    return chain
                program = load_at(model, sizes, types, values)
            return self.search_elsewhere(
                program, lambda made: refused_dispatches(made, self.threads, sizes)
            )

        shown = shown_types(model, source, declared)
        return Elsewhere(declared, at, model, lambda: names_in_the_book(self.rules), shown)

    def _in_turns(
        self, model: ModelApart, found: OpenExtents, values: Mapping[str, Array]
    ) -> Chain | None:
        """What runs the model with Python taking the steps of a node, or one of its branches; None
        where nothing does."""
        try:
            return Chain(model, found, self._one, values)
        except (Asked, ModelError, UnsupportedError):
            return None
