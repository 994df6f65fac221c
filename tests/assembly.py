"""The assembly of a kernel for a CPU that need not be there.

`python -m tests.assembly CPU VECTOR_BYTES PROGRAM` writes it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from unittest.mock import patch

from satura.backend import target
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType


def elementwise() -> Program:
    """A loop that LLVM vectorises."""
    build = Builder()
    x = build.input("x", DType.F32, (1000,))
    return build.program({"y": build.unary("sqrt", x)})


def contraction() -> Program:
    """A microkernel, and a loop over its results that LLVM vectorises."""
    build = Builder()
    x, w = (build.input(name, DType.F32, (96, 96)) for name in "xw")
    return build.program({"y": build.unary("sqrt", build.matmul(x, w))})


PROGRAMS = {"elementwise": elementwise, "contraction": contraction}


def assembly(program: Program) -> str:
    """The code of `program` as one kernel, for the CPU that `host_target` names."""
    # Imported here: these modules take the name `host_target` as it is at that moment.
    from satura.backend.constants import ConstantStore
    from satura.backend.jit.kernel import KernelSource
    from satura.backend.jit.translate import assembly as assembly_of
    from satura.backend.plan.kernels import kernel_code
    from tests.trivial_scheduler import one_dispatch

    schedule = one_dispatch(program)
    (dispatch,) = schedule.dispatches
    code = kernel_code(schedule, dispatch, 1, ConstantStore(), False)
    assert code is not None
    return assembly_of(KernelSource(code.name, code.text))


if __name__ == "__main__":
    cpu, vector_bytes, program = sys.argv[1:]
    named = replace(target.host_target(), cpu=cpu, features="", vector_bytes=int(vector_bytes))
    with patch("satura.backend.target.host_target", lambda: named):
        print(assembly(PROGRAMS[program]()))
