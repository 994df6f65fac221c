"""`satura show`: what a stage makes of a model, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from satura.backend.plan.kernels import refused_dispatches
from satura.backend.plan.merging import MERGING
from satura.backend.plan.records import KernelRecord, kernel_records, with_assembly
from satura.backend.target import threads_for
from satura.commands.compiling import Compiling
from satura.commands.models import file_or_light, node_number
from satura.commands.terminal import print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.models import Model, load
from satura.pipeline.phases import Progress
from satura.pipeline.rates import cost_model
from satura.pipeline.remembered import rewrite_once
from satura.pipeline.sizes import check_sizes, typical_sizes
from satura.pipeline.stages import rewrite
from satura.rewrite.egraph.records import ClassRecord, class_records
from satura.rewrite.errors import CallError
from satura.rewrite.extract.records import DispatchRecord, dispatch_records
from satura.rewrite.program.program import Program
from satura.rewrite.program.records import NodeRecord, check_node, node_records

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
        check_node(self.program, node)
        found = [record for record in self.records if record.concerns(node)]
        if not found:
            raise CallError(f"%{node} = {self.program.nodes[node]} is in none of the {kind}")
        return Stage(self.program, found)


def show(
    model: str, values: list[str], stage: str, node: str | None, compiling: Compiling,
    assembly: bool, json: bool,
) -> None:  # fmt: skip
    """Print what `stage` makes of `model`, or only what concerns `node`.

    In the first two stages a node is one of the loaded program, later one of the extracted
    program. Raises CallError for an unknown stage or node.
    """
    if stage not in STAGES:
        raise CallError(f"there is no stage {stage!r}; choose from {list(STAGES)}")
    if compiling.executables not in MERGING:
        raise CallError(f"executables is {compiling.executables!r}; choose from {list(MERGING)}")
    if assembly and stage != "kernels":
        raise CallError("--assembly is for --stage kernels")
    number = None if node is None else node_number(node)
    source = with_values(file_or_light(model), values)
    with progress(f"showing {model}") as phase:
        made = _stage(source, stage, compiling, phase)
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


def _stage(source: Model, stage: str, compiling: Compiling, phase: Progress) -> Stage:
    phase("load", 0.0)
    program = load(source)
    if stage == "program":
        return Stage(program, node_records(program))
    threads = threads_for(compiling.threads)
    check_sizes(compiling.dims or {}, program.symbols)
    cost = cost_model(compiling.cost, threads, typical_sizes(program, compiling.dims))
    refusals = partial(refused_dispatches, threads=threads)
    asked = program, compiling.rules, compiling.limits, phase
    if stage == "egraph":
        searched = rewrite(*asked, cost=cost, refusals=refusals)
        return Stage(searched.source, class_records(searched.saturation))
    schedule = rewrite_once(*asked, cost=lambda _: cost, refusals=refusals).schedule
    if stage == "extracted":
        return Stage(schedule.program, node_records(schedule.program))
    if stage == "schedule":
        return Stage(schedule.program, dispatch_records(schedule))
    return Stage(schedule.program, kernel_records(schedule, threads, compiling.executables))
