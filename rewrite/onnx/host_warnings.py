"""Warnings of ops that run on the host, by their references."""

from __future__ import annotations

from collections.abc import Mapping

from satura.rewrite.errors import HostFallbackWarning, warn_caller
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import HostCall


def warn_of_host_calls(program: Program, reasons: Mapping[HostCall, str]) -> None:
    """Warn of each op of a program that runs on the host, and say why."""
    on_host = [node.op for node in program.nodes if node.op.user and node.op.kind is Kind.HOST]
    for op in dict.fromkeys(on_host):
        warn_caller(
            f"op '{op.name}' has no formula: it runs on the host, by its reference",
            HostFallbackWarning,
        )
    for node in program.nodes:
        call = node.attributes[0] if node.attributes else None
        if isinstance(call, HostCall):
            warn_caller(
                f"{reasons[call]}: it runs on the slow reference"
                " implementation of the onnx package",
                HostFallbackWarning,
            )
