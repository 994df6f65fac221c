"""Imported modules, by their names."""

from __future__ import annotations

import sys
from types import ModuleType

from satura.rewrite.errors import CallError, brief


def imported_module(name: object) -> ModuleType:
    """The module of a name. Raises CallError where none is imported under it."""
    if isinstance(name, ModuleType):
        raise CallError(f"a module is named by a text: give {name.__name__!r}, not the module")
    if not isinstance(name, str):
        raise CallError(f"a module is named by a text, such as __name__, not by {brief(name)}")
    if name not in sys.modules:
        raise CallError(f"the module {name!r} is not imported yet: import it before")
    return sys.modules[name]
