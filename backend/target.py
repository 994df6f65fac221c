"""The machine that kernels are compiled for: its name, its features, the width of its vectors."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from satura.backend.cores import usable_of, usable_threads
from satura.rewrite.errors import UnsupportedError
from satura.rewrite.system.interrupts import to_the_end

if TYPE_CHECKING:
    import llvmlite.binding as llvm

F32_BYTES = 4
LARGEST_BLOCK = 16  # rows, a register each
SMALLEST_BLOCK = 4  # elements one by one take no longer
MICROKERNEL = "satura_microkernel_"  # what symbols of microkernels begin with; a name follows

_MATRICES, _MATRICES_OF_BF16 = {"+amxtile", "+amxint8"}, {"+amxtile", "+amxbf16"}
# Linux saves the registers of matrices, 8 KiB, for processes alone that have asked for them.
_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS = 158, 0x1023, 18
_INFORMATION = "/proc/cpuinfo"
# What LLVM's name of the processor and of its features follow from.
_TELLING = {
    "x86_64": ("vendor_id", "cpu family", "model", "stepping", "flags"),
    "aarch64": ("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
}


class Target(NamedTuple):
    """A CPU as LLVM or the system names it. `vector_bytes` is the widest register kernels may use.

    The features that are asked for here have one name in both.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int

    @property
    def lanes(self) -> int:
        """How many f32 values one vector holds."""
        return self.vector_bytes // F32_BYTES

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        wide = self.vector_bytes == 64 or self.triple.startswith(("aarch64", "arm64"))
        return 32 if wide else 16

    @property
    def sums_four_products(self) -> bool:
        """Whether one instruction adds four products of u8 and i8 to each i32 of a vector."""
        features = self.features.split(",")
        if self.vector_bytes == 64:
            return "+avx512vnni" in features
        masked = {"+avx512vnni", "+avx512vl"} <= set(features)
        return self.triple.startswith("x86_64") and ("+avxvnni" in features or masked)

    @property
    def multiplies_matrices(self) -> bool:
        """Whether instructions multiply matrices of u8 and i8 in registers of their own."""
        return self.sums_four_products and self._has_matrices(_MATRICES)

    @property
    def multiplies_matrices_of_bf16(self) -> bool:
        """The same of bf16, whose products are added as f32."""
        return self._has_matrices(_MATRICES_OF_BF16)

    def _has_matrices(self, needed: set[str]) -> bool:
        known = self.triple.startswith("x86_64") and self.vector_bytes == 64
        return known and needed <= set(self.features.replace("-", "").split(","))

    @property
    def adds_octets(self) -> bool:
        """Whether instructions add two products of u8 and i8 as i16, and two of i16 as i32."""
        narrow = self.vector_bytes == 16 and "+ssse3" not in self.features.split(",")
        return self.triple.startswith("x86_64") and not narrow

    def block_edges(self, itemsize: int) -> tuple[int, ...]:
        """The rows and columns of square blocks that are transposed in registers, largest first."""
        edge = min(LARGEST_BLOCK, self.vector_bytes // itemsize)
        edges = [edge]
        while edge > SMALLEST_BLOCK:
            edge //= 2
            edges.append(edge)
        return tuple(edges)

    @property
    def identity(self) -> str:
        """What compiled code depends on, as one line."""
        return f"{self.triple} {self.cpu} {self.features} {self.vector_bytes}"

    def machine(self) -> llvm.TargetMachine:
        """A code generator for this CPU: of code that runs at any address, see `jit/linking.py`."""
        import llvmlite.binding as llvm

        told = named_by_system()
        named = self if told is None or told.cpu != self.cpu else _named_by_llvm()
        return llvm.Target.from_triple(named.triple).create_target_machine(
            cpu=named.cpu, features=named.features, opt=3, reloc="pic", codemodel="small",
            jit=True,
        )  # fmt: skip


def _vector_bytes(features: set[str]) -> int:
    if "avx512f" in features:
        return 64
    if features >= {"avx2", "fma"}:
        return 32
    return 16


def _widest_allowed() -> int:
    asked = os.environ.get("SATURA_VECTOR_BYTES", "64")
    if asked not in ("16", "32", "64"):
        raise UnsupportedError(f"SATURA_VECTOR_BYTES is '{asked}'; it must be 16, 32 or 64")
    return int(asked)


@lru_cache(maxsize=1)
def host_target() -> Target:
    """This machine: LLVM is asked only where the system does not tell all of it.

    $SATURA_VECTOR_BYTES (16, 32 or 64) narrows the vectors, to compare or to test. Instructions on
    matrices are left out where the system does not permit them.
    """
    found = named_by_system() or to_the_end(_named_by_llvm)
    if "+amx" not in found.features or _permits_matrices():
        return found
    kept = [name for name in found.features.split(",") if not name.startswith("+amx")]
    return found._replace(features=",".join(kept))


def _permits_matrices() -> bool:
    """Whether this process, its threads and what it forks may multiply matrices from now on."""
    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError, TypeError):
        return False
    asked = map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS))
    return bool(call(*asked) == 0)


def named_by_system(information: str | os.PathLike[str] = _INFORMATION) -> Target | None:
    """None where the system does not tell all, as where it imitates another processor."""
    try:
        kind = os.uname().machine
        with open(information, errors="replace") as lines:
            first = [line.partition(":") for line in takewhile(str.strip, lines)]
    except (OSError, AttributeError):
        return None
    found = {name.strip(): value.strip() for name, _, value in first}
    *model, flags = (found.get(name, "") for name in _TELLING.get(kind, [""]))
    if not flags or not all(model):
        return None
    features = {flag.replace("_", "") for flag in flags.split()}
    return _target(f"{kind}-unknown-linux-gnu", " ".join(model), features)


@lru_cache(maxsize=1)
def _named_by_llvm() -> Target:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    on = {name for name, is_on in features.items() if is_on}
    found = _target(llvm.get_process_triple(), llvm.get_host_cpu_name(), on)
    off = [f"-{name}" for name in sorted(features.keys() - on)]
    return found._replace(features=",".join([found.features, *off]))


def _target(triple: str, cpu: str, features: set[str]) -> Target:
    told = ",".join(f"+{name}" for name in sorted(features))
    return Target(triple, cpu, told, min(_vector_bytes(features), _widest_allowed()))


def threads_for(asked: int | None) -> int:
    """How many threads to run on: `asked`, but no more than are usable; all of those for None.

    Raises CallError for what is not a number of threads; warns where fewer are usable.
    """
    return usable_threads() if asked is None else usable_of(asked, "threads", ", or None for all")
