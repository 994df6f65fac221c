"""satura: tensor programs made faster by rewrite rules.

    import satura

    compiled = satura.compile("model.onnx")     # load, rewrite, extract, JIT-compile
    outputs = compiled.run({"x": array})

The stages can be taken one by one: `load` gives a Program, `optimize` rewrites it, `save` writes
it back to ONNX, `interpret` says what it means.
"""

from satura.api import compile, interpret, load, optimize, save
from satura.compiled import Compiled

__version__ = "0.1.0"

__all__ = ["Compiled", "compile", "interpret", "load", "optimize", "save"]
