"""`python -m benchmarks.footprint`: one process that `memory.py` measures.

It imports nothing but what satura does for a user: more would be counted.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

SIZES = {"batch": 1, "seq": 128}
_MIB = 1 << 20


def resident(field: str) -> float:
    """A number of this process in MiB, as Linux states it: VmRSS, VmHWM, RssFile."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024
    raise KeyError(field)


def compiled_footprint(path: Path, saved: Path, threads: int) -> dict[str, float]:
    """Of the model at `path`, which is compiled, called and saved here."""
    # What a compile imports is imported first, to be counted apart: nothing here names it.
    import satura
    from satura.pipeline import compiled as _compiled  # noqa: F401
    from satura.pipeline import remembered as _remembered  # noqa: F401
    from satura.pipeline.inputs import random_inputs
    from satura.rewrite.onnx import load as _load  # noqa: F401

    found = {"imported": resident("VmRSS")}
    after = {"recall": "loaded", "kernels": "searched"}  # what is done when a phase starts

    def progress(phase: str, done: float) -> None:
        if not done and phase in after:
            found.setdefault(after[phase], resident("VmRSS"))

    compiled = satura.compile(path, threads, progress=progress)
    symbols = compiled.source.symbols
    sizes = {symbol: SIZES.get(symbol, 16) for symbol in symbols}
    compiled.prepare([sizes] if symbols else [])
    found["compiled"] = resident("VmRSS")
    found["peak"] = resident("VmHWM")
    compiled.run(random_inputs(compiled.source, sizes))
    found["called"] = resident("VmRSS")
    gc.collect()
    found["afterwards"] = resident("VmRSS")
    nodes = compiled.source.nodes
    constants = {node.constant for node in nodes if node.op.name == "constant"}
    weights = sum(constant.nbytes for constant in constants) / _MIB
    statistics = compiled.statistics
    arena, packed = statistics["transient-memory-size"], statistics["constant-size"]
    compiled.save(saved, [sizes] if symbols else [])
    return {**found, "weights": weights, "arena": arena / _MIB, "packed": packed / _MIB}


def opened_footprint(saved: Path) -> dict[str, float]:
    """Of a saved model that is opened and called here."""
    import satura
    from satura.pipeline.inputs import random_arguments

    opened = satura.open(saved, trust=True)
    types = opened.inputs.values()
    symbols = frozenset[str]().union(*(type_.symbols for type_ in types))
    opened.run(random_arguments(opened.inputs, {name: SIZES.get(name, 16) for name in symbols}))
    return {"opened": resident("VmRSS"), "shared": resident("RssFile")}


if __name__ == "__main__":
    step, model, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    saved = model.with_suffix(".satura")
    made = opened_footprint(saved) if step == "open" else compiled_footprint(model, saved, threads)
    sys.stdout.write(json.dumps(made) + "\n")
