"""`python -m benchmarks [COMMAND] …`: satura and other runtimes on models and layers.

Without a command the models are timed as `satura bench` times them, see its help. `compare` states
how sure the ratio to the best peer is, and writes a CSV file and a plot; `executables` compares
which dispatches share kernels; `layers` times single layers against onnxruntime; `memory` states
what models take in memory; `opening` times how saved models are opened; `scaling` simulates many
cores; `saved` times what `satura optimize` makes of models in onnxruntime; `search` times what
`satura.compile` does before kernels; `sizes` times calls of ever new sizes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.compare import SEQUENCE, TINY_SEQUENCE, compare, compare_alone
from benchmarks.executables import executables
from benchmarks.memory import DEFAULT, memory
from benchmarks.models import MODELS, TINY, build, example_inputs
from benchmarks.opening import opening
from benchmarks.saved import DEFAULT as SAVED
from benchmarks.saved import saved
from benchmarks.scaling import scaling
from benchmarks.search import search
from benchmarks.single_layers import DTYPES, compare_layers
from benchmarks.sizes import DEFAULT as OF_SIZES
from benchmarks.sizes import sizes
from satura.backend.cores import usable_threads
from satura.commands.bench import Case, print_results
from satura.commands.bench import compare as compare_runtimes
from satura.commands.compiling import Compiling

COMMANDS = (
    "compare", "executables", "layers", "memory", "opening", "saved", "scaling", "search", "sizes",
)  # fmt: skip
_MANY = 60  # rounds where differences of a few percent count


def cases(names: list[str]) -> Iterator[Case]:
    """The models of these names, each built when it is its turn."""
    for name in names:
        model = build(name)
        sizes = {"batch": 1, "seq": TINY_SEQUENCE if name in TINY else SEQUENCE}
        yield Case(name, model, example_inputs(model, sizes))


def main() -> None:
    """Print a table with a line per model or layer."""
    first = "".join(sys.argv[1:2])
    command = first if first in COMMANDS else ""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--threads", type=int, default=usable_threads())
    is_close = command in ("executables", "sizes")
    parser.add_argument("--rounds", type=int, default=_MANY if is_close else 15)
    if command == "layers":
        parser.add_argument("--dtype", nargs="*", default=["f32"], choices=list(DTYPES))
        parser.add_argument("--only", default="", help="layers whose name has this")
    elif command == "memory":
        parser.add_argument("models", nargs="*", default=list(DEFAULT))
    elif command == "opening":
        parser.add_argument("models", nargs="*", default=["light_resnet50", "minilm", "bert_base"])
        parser.add_argument("--json", action="store_true", help="print JSON")
    elif command == "saved":
        parser.add_argument("models", nargs="*", default=list(SAVED))
        parser.add_argument("--json", action="store_true", help="print JSON")
    elif command == "scaling":
        parser.add_argument("models", nargs="*", default=["light_resnet50", "bert_base"])
        parser.add_argument("--bandwidth", type=float, default=200.0, help="GB/s of all cores")
    elif command == "sizes":
        parser.add_argument("models", nargs="*", default=list(OF_SIZES))
        parser.add_argument("--lengths", type=int, default=500, help="how many are called")
    else:
        parser.add_argument("models", nargs="*", default=[n for n in MODELS if n not in TINY])
    if command == "compare":
        parser.add_argument("--csv", type=Path, help="write all numbers and, beside it, a plot")
        parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(sys.argv[2:] if command else sys.argv[1:])
    threads, rounds = arguments.threads, arguments.rounds
    if command == "layers":
        compare_layers(arguments.dtype, threads, rounds, arguments.only)
        return
    known = [*MODELS, *DEFAULT] if command == "memory" else list(MODELS)
    unknown = [name for name in arguments.models if name not in known]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; choose from {', '.join(known)}")
    if command == "memory":
        memory(arguments.models, threads)
        return
    if command == "opening":
        opening(arguments.models, threads, rounds, arguments.json)
        return
    if command == "saved":
        saved(arguments.models, rounds, arguments.json)
        return
    if command == "scaling":
        scaling(arguments.models, arguments.bandwidth, min(rounds, 5))
        return
    if command == "executables":
        executables(arguments.models, threads, rounds, {"batch": 1, "seq": SEQUENCE})
        return
    if command == "search":
        search(arguments.models)
        return
    if command == "sizes":
        sizes(arguments.models, threads, rounds, arguments.lengths)
        return
    if command == "compare" and arguments.alone:
        compare_alone(arguments.models[0], threads, rounds)
    elif command == "compare":
        compare(arguments.models, threads, rounds, arguments.csv)
    else:
        results = compare_runtimes(cases(arguments.models), rounds, Compiling(threads=threads))
        print_results(results, threads, rounds)


if __name__ == "__main__":
    main()
