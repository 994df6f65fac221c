"""Kernels as text, with what is needed to run and to share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from satura.backend.lower.body import Argument


class KernelForm(Protocol):
    """What the text of a kernel depends on, where another one can do the same with other
    arguments."""

    def may_serve(self, other: KernelForm) -> bool:
        """Whether a kernel of this form may run what one of the form `other` runs."""


@dataclass(frozen=True)
class Code:
    """A kernel's text, its arguments in order, and the scratch bytes that each thread needs.

    `work` is the number of innermost iterations: small kernels are not worth a second thread.
    In a `form` that another dispatch has, it takes `extra_cycles` of a core more than in its own.
    """

    name: str
    text: str
    arguments: tuple[Argument, ...]
    work: int
    scratch: int = 0
    form: KernelForm | None = None
    extra_cycles: float = 0.0
