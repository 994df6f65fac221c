"""`satura show`: what a stage makes of a model, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
from satura.rewrite.onnx.cut import OpenExtents
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

    def as_json(self, kind: str) -> dict[str, object]:
        """The outputs and the records, which are of this kind."""
        shown = [asdict(record) for record in self.records]
        return {"outputs": dict(self.program.outputs), kind: shown}


def show(
    model: str, values: list[str], stage: str, node: str | None, compiling: Compiling,
    assembly: bool, json: bool,
) -> None:  # fmt: skip
    """Print what `stage` makes of `model`, or only what concerns `node`.

    Of a model that runs in several parts each is shown. In the first two stages a node is one of
    the loaded program, later one of the extracted program. Raises CallError for an unknown stage or
    node.
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
        parts = _parts(source, compiling, phase)
        if number is not None and len(parts) > 1:
            raise CallError(f"--node is for one program, and {model} runs in {len(parts)} parts")
        stages = [_stage(program, stage, compiling, phase) for program, _ in parts]
        if number is not None:
            stages = [made.only(number, STAGES[stage]) for made in stages]
        if assembly:
            phase("kernels", 0.0)
            stages = list(map(_with_assembly, stages))
    if json:
        rows = [made.as_json(STAGES[stage]) for made in stages]
        steps = [{**row, "hosts": nodes} for row, (_, nodes) in zip(rows, parts, strict=True)]
        print_json({"stage": stage, **(rows[0] if _is_one(parts) else {"parts": steps})})
        return
    for at, (made, (_, nodes)) in enumerate(zip(stages, parts, strict=True), 1):
        if not _is_one(parts):
            print_line(f"# part {at} of {len(parts)}")
        between = "\n" if STAGES[stage] == "nodes" else "\n\n"
        print_line(between.join(map(str, made.records)))
        if number is None:
            print_line("\n".join(made.program.output_lines))
        for host in nodes:
            print_line(f"# then {host} runs in Python")


_Part = tuple[Program, tuple[str, ...]]
"""A program as it is loaded, and the nodes that run in Python behind it."""


def _parts(source: Model, compiling: Compiling, phase: Progress) -> list[_Part]:
    """The program of a model, or of one that runs in several parts those of each."""
    phase("load", 0.0)
    try:
        return [(load(source), ())]
    except OpenExtents as error:
        compiled = replace(compiling, rules="none", cost="default").compile(source, phase)
        if compiled.deciding:
            raise error from None
        return [
            (part.source, nodes) for part, nodes in zip(compiled.parts, compiled.hosts, strict=True)
        ]


def _is_one(parts: Sequence[_Part]) -> bool:
    """Whether a model is one program, and nothing runs in Python beside it."""
    return len(parts) == 1 and not parts[0][1]


def _with_assembly(made: Stage) -> Stage:
    kernels = [each for each in made.records if isinstance(each, KernelRecord)]
    return replace(made, records=[with_assembly(each) for each in kernels])


def _stage(program: Program, stage: str, compiling: Compiling, phase: Progress) -> Stage:
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
