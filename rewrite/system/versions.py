"""Versions of installed packages, told without importing them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def installed_version(package: str) -> str:
    """The version of an installed package that has one name for pip and for import.

    The folder beside the package says it; `importlib.metadata` takes longer to import than to ask,
    and is asked where there is no such folder.
    """
    spec = find_spec(package)
    if spec is not None and spec.origin is not None:
        site = Path(spec.origin).parent.parent
        beside = [path.name for path in site.glob(f"{package}-*.dist-info")]
        if len(beside) == 1:
            return beside[0].removeprefix(f"{package}-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version(package)
