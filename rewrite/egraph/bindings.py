"""egglog's bindings without its package, whose own language would take most of the time to import.

They are the module that `import egglog` has, too: the interpreter loads a library once.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

from satura.rewrite.system.interrupts import imported

_NAME = "egglog.bindings"


def _load_bindings() -> ModuleType:
    if (whole := imported(_NAME)) is not None:
        return whole
    package = importlib.util.find_spec("egglog")
    folders = package.submodule_search_locations if package is not None else []
    spec = PathFinder.find_spec(_NAME, folders)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"there is no module {_NAME}; install egglog again")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(_NAME, None)  # the loader may enter it, which its package is to do
    return module


if TYPE_CHECKING:
    from egglog import bindings as bindings
else:
    bindings = _load_bindings()
