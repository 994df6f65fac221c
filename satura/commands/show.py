"""`satura show`: what a stage makes of a model, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from satura.backend.cores import usable_threads
from satura.backend.plan.executables import MERGING
from satura.backend.plan.records import KernelRecord, kernel_records, with_assembly
from satura.commands.models import file_or_light, node_number
from satura.commands.terminal import print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.models import Model, load
from satura.pipeline.phases import Progress
from satura.pipeline.rates import cost_model
from satura.pipeline.sizes import typical_sizes
from satura.pipeline.stages import rewrite
from satura.rewrite.egraph.records import ClassRecord, class_records
from satura.rewrite.egraph.saturate import Limits
from satura.rewrite.errors import CallError
from satura.rewrite.extract.records import DispatchRecord, dispatch_records
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.program.program import Program
from satura.rewrite.program.records import NodeRecord, node_records

Record = NodeRecord | ClassRecord | DispatchRecord | KernelRecord

# What the records of a stage are, in the order of the stages.
STAGES = {
    "program": "nodes",
    "egraph": "classes",
    "extracted": "nodes",
    "schedule": "dispatches",
    "kernels": "kernels",
}


@dataclass(frozen=True)
class Stage:
    """What a stage made: its records, and the program whose nodes these name."""

    program: Program
    records: Sequence[Record]

    def only(self, node: int, kind: str) -> Stage:
        """The records that concern `node`. Raises CallError where there is none."""
        count = len(self.program.nodes)
        if not 0 <= node < count:
            raise CallError(f"there is no node %{node}; the last is %{count - 1}")
        found = [record for record in self.records if record.concerns(node)]
        if not found:
            raise CallError(f"%{node} = {self.program.nodes[node]} is in none of the {kind}")
        return Stage(self.program, found)


def show(
    model: str, values: list[str], stage: str, node: str | None, rules: RuleSet,
    limits: Limits, threads: int | None, assembly: bool, json: bool, executables: str = "cost",
) -> None:  # fmt: skip
    """Print what `stage` makes of `model`, or only what concerns `node`.

    In the first two stages a node is one of the loaded program, later one of the extracted
    program. Raises CallError for an unknown stage or node.
    """
    if stage not in STAGES:
        raise CallError(f"there is no stage {stage!r}; choose from {list(STAGES)}")
    if executables not in MERGING:
        raise CallError(f"executables is {executables!r}; choose from {list(MERGING)}")
    if assembly and stage != "kernels":
        raise CallError("--assembly is for --stage kernels")
    number = None if node is None else node_number(node)
    source = with_values(file_or_light(model), values)
    with progress(f"showing {model}") as phase:
        made = _stage(source, stage, rules, limits, threads or usable_threads(), phase, executables)
        if number is not None:
            made = made.only(number, STAGES[stage])
        records = made.records
        if assembly:
            phase("kernels", 0.0)
            records = [with_assembly(each) for each in records if isinstance(each, KernelRecord)]
    if json:
        outputs = dict(made.program.outputs)
        shown = [asdict(record) for record in records]
        print_json({"stage": stage, "outputs": outputs, STAGES[stage]: shown})
        return
    print_line(("\n" if STAGES[stage] == "nodes" else "\n\n").join(map(str, records)))
    if number is None:
        print_line("\n".join(made.program.output_lines))


def _stage(
    source: Model, stage: str, rules: RuleSet, limits: Limits, threads: int, phase: Progress,
    executables: str,
) -> Stage:  # fmt: skip
    if stage == "program":
        phase("load", 0.0)
        program = load(source)
        return Stage(program, node_records(program))
    cost = None
    if stage == "kernels":  # those that run here; all else is the same on every machine
        cost = cost_model(None, threads, typical_sizes(load(source), None))
    rewritten = rewrite(source, rules, limits, phase, cost=cost)
    if stage == "egraph":
        return Stage(rewritten.source, class_records(rewritten.saturation))
    schedule = rewritten.schedule
    if stage == "extracted":
        return Stage(schedule.program, node_records(schedule.program))
    if stage == "schedule":
        return Stage(schedule.program, dispatch_records(schedule))
    return Stage(schedule.program, kernel_records(schedule, threads, executables))
