"""satura: tensor programs made faster by rewrite rules.

    import satura

    compiled = satura.compile("model.onnx")     # load, rewrite, extract, JIT-compile
    outputs = compiled.run({"x": array})

The stages can be taken one by one: `load` gives a Program, `optimize` rewrites it, `save` writes
it back to ONNX, `interpret` says what it means, `why` why a rule fires or does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from satura import errors
from satura.rewrite.system.interrupts import import_whole

if TYPE_CHECKING:
    from satura.artifact.opened import Opened
    from satura.pipeline import distributed as distributed
    from satura.pipeline.api import compile, interpret, load, open, optimize, save, why
    from satura.pipeline.compiled import Compiled
    from satura.rewrite.egraph.limits import Limits

__version__ = "0.1.0"

__all__ = [
    "Compiled", "Limits", "Opened", "compile", "errors", "interpret", "load", "open", "optimize",
    "save", "why",
]  # fmt: skip


_CLASSES = {
    "Compiled": "satura.pipeline.compiled",
    "Limits": "satura.rewrite.egraph.limits",
    "Opened": "satura.artifact.opened",
}
_PUBLIC = ("experiments", "language", "ops", "rules", "testing")
_MODULES = {"distributed": "satura.pipeline.distributed"} | {
    name: f"satura.{name}" for name in _PUBLIC
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: a stage alone needs no other stage."""
    if name in _MODULES:
        import_whole(_MODULES[name])
        return import_module(_MODULES[name])
    if name not in __all__:
        raise AttributeError(f"module 'satura' has no attribute {name!r}")
    module = _CLASSES.get(name, "satura.pipeline.api")
    import_whole(module)
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, those that were not used yet, too: for completion."""
    return sorted({*globals(), *__all__, *_MODULES})
