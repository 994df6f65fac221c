"""Former places of what rule files import; they go with the next minor version."""

from __future__ import annotations

import warnings


def warn(name: str) -> None:
    """Warn whoever imports the module `name`, which has moved."""
    warnings.warn(
        f"{name} goes with the next minor version of satura: import from satura.language",
        DeprecationWarning,
        stacklevel=3,
    )
