"""A kernel before and after compilation, and what names it in caches."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from satura.backend.target import MICROKERNEL, host_target
from satura.rewrite.errors import SaturaError
from satura.rewrite.system.sources import digest_of, sources_in
from satura.rewrite.system.versions import installed_version

ADDRESS_BYTES = 8


class KernelError(SaturaError):
    """A kernel that does not compile: a fault of satura, not of the model."""


class KernelSource(NamedTuple):
    """Text that defines `kernel(args, thread, threads)`; `name` is for people and messages.

    Sources with equal text share one piece of code, whatever their names.
    """

    name: str
    text: str

    @property
    def key(self) -> str:
        """The hash of everything that the object code depends on."""
        return self._hash(environment())

    @property
    def symbol(self) -> str:
        """The kernel's name in its object code, whichever version of LLVM compiled it."""
        return f"satura_{self._hash(running())[:40]}"

    def _hash(self, where: str) -> str:
        return hashlib.sha256(f"{where}\n{self.text}".encode()).hexdigest()


class Microkernel(KernelSource):
    """What many kernels call: it has the text of a helper's name alone."""

    @staticmethod
    def of(symbol: str) -> Microkernel:
        """The microkernel that kernels know by `symbol`."""
        name = symbol.removeprefix(MICROKERNEL)
        return Microkernel(name, f"microkernel {name}")

    @property
    def symbol(self) -> str:
        return MICROKERNEL + self.name


class CompiledKernel(NamedTuple):
    """Machine code for `symbol`, and the functions of others that it calls.

    It is an image that starts at byte `entry`, or object code for LLVM to load if that is None.
    """

    symbol: str
    externals: tuple[str, ...]
    entry: int | None
    code: bytes

    @property
    def microkernels(self) -> tuple[Microkernel, ...]:
        """Those of its externals that are compiled here."""
        return microkernels_of(self.externals)

    def packed(self) -> bytes:
        """This kernel as bytes for the cache."""
        return json.dumps([self.symbol, self.externals, self.entry]).encode() + b"\n" + self.code

    @staticmethod
    def unpacked(data: bytes) -> CompiledKernel:
        """The kernel that `packed` wrote."""
        header, _, code = data.partition(b"\n")
        symbol, externals, entry = json.loads(header)
        return CompiledKernel(symbol, tuple(externals), entry, code)


def microkernels_of(externals: Iterable[str]) -> tuple[Microkernel, ...]:
    """Those of some functions that are microkernels."""
    return tuple(Microkernel.of(name) for name in externals if name.startswith(MICROKERNEL))


@lru_cache(maxsize=1)
def environment() -> str:
    """Versions and target: everything but the text that object code depends on."""
    versions = f"numba {installed_version('numba')} llvmlite {installed_version('llvmlite')}"
    return f"{versions} {running()}"


@lru_cache(maxsize=1)
def running() -> str:
    """Code and target: what object code that is made already depends on where it runs."""
    backend = os.path.dirname(os.path.dirname(__file__))
    code = digest_of((path.removeprefix(backend), path) for path in sources_in(backend))
    return f"code {code} target {host_target().identity}"
