"""Versions of installed packages, told without importing them."""

from __future__ import annotations

import os
from importlib.util import find_spec


def installed_version(package: str) -> str:
    """The version of an installed package that has one name for pip and for import.

    The folder beside the package says it; `importlib.metadata` takes longer to import than to ask,
    and is asked where there is no such folder.
    """
    spec = find_spec(package)
    if spec is not None and spec.origin is not None:
        start, end = f"{package}-", ".dist-info"
        names = os.listdir(os.path.dirname(os.path.dirname(spec.origin)))
        beside = [name for name in names if name.startswith(start) and name.endswith(end)]
        if len(beside) == 1:
            return beside[0].removeprefix(start).removesuffix(end)
    from importlib.metadata import version

    return version(package)
