"""Kernels of a schedule as `satura show` prints them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from satura.backend.constants import ConstantStore, fold_constants
from satura.backend.jit.kernel import KernelSource
from satura.backend.plan.executables import executables
from satura.backend.plan.kernels import kernel_codes
from satura.rewrite.extract.schedule import Schedule


@dataclass(frozen=True)
class KernelRecord:
    """A kernel: its source text, and the numbers and nodes of the dispatches that run it.

    `assembly` is its machine code as text, where that was asked for.
    """

    name: str
    dispatches: tuple[int, ...]
    nodes: tuple[int, ...]
    source: str
    assembly: str | None = None

    def concerns(self, node: int) -> bool:
        """Whether a dispatch that runs this kernel reads, computes or stores that node."""
        return node in self.nodes

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.dispatches))
        head = f"kernel {self.name}: dispatch{'es' * (len(self.dispatches) > 1)} {shown}"
        return "\n\n".join([head, self.source.rstrip(), *filter(None, [self.assembly])])


def kernel_records(
    schedule: Schedule, threads: int, level: str = "cost"
) -> tuple[KernelRecord, ...]:
    """The distinct kernels of `schedule`; symbolic sizes count as representative ones.

    `level` says which dispatches share one: see `MERGING`. Nothing is compiled.
    """
    sizes = schedule.program.typical
    concrete = fold_constants(schedule).concrete(sizes)
    codes = kernel_codes(concrete, threads, ConstantStore(), bool(sizes), level)
    records = []
    for kernel in executables(list(codes.values())):
        users = [number for number, code in codes.items() if code.text == kernel.source]
        dispatches = [concrete.dispatches[number] for number in users]
        nodes = dict.fromkeys(n for d in dispatches for n in (*d.operands, *d.nodes, d.root))
        records.append(KernelRecord(kernel.name, tuple(users), tuple(nodes), kernel.source))
    return tuple(records)


def with_assembly(kernel: KernelRecord) -> KernelRecord:
    """`kernel` with its machine code for this CPU. Raises KernelError where it does not compile."""
    from satura.backend.jit.translate import assembly

    return replace(kernel, assembly=assembly(KernelSource(kernel.name, kernel.source)).rstrip())
