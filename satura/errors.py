"""Every error that satura raises on purpose; catch SaturaError to catch them all."""

from satura.rewrite.errors import (
    CallError,
    ModelError,
    ProgramError,
    RuleError,
    SaturaError,
    UnsupportedError,
    VerificationError,
)

__all__ = [
    "CallError",
    "ModelError",
    "ProgramError",
    "RuleError",
    "SaturaError",
    "UnsupportedError",
    "VerificationError",
]
