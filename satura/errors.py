"""Every error that satura raises on purpose; catch SaturaError to catch them all."""

from satura.rewrite.errors import (
    ArtifactError,
    CallError,
    EqualSizesWarning,
    FileError,
    HostFallbackWarning,
    LimitWarning,
    ModelError,
    OpError,
    ProgramError,
    RuleDroppedWarning,
    RuleError,
    RuleWarning,
    SaturaError,
    StruckWarning,
    UnsupportedError,
    VerificationError,
)

__all__ = [
    "ArtifactError",
    "CallError",
    "EqualSizesWarning",
    "FileError",
    "HostFallbackWarning",
    "LimitWarning",
    "ModelError",
    "OpError",
    "ProgramError",
    "RuleDroppedWarning",
    "RuleError",
    "RuleWarning",
    "SaturaError",
    "StruckWarning",
    "UnsupportedError",
    "VerificationError",
]
