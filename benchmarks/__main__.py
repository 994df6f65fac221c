"""`python -m benchmarks [COMMAND] …`: satura and other runtimes on models and layers.

Without a command the models are timed as `satura bench` times them, see its help. `compare` states
how sure the ratio to the best peer is, and writes a CSV file and a plot; `executables` compares
which dispatches share kernels; `layers` times single layers of known networks against onnxruntime,
and `ops` single ops and small blocks; `memory` states what models take in memory; `opening` times
how saved models are opened; `rules` times models by the default, the exact and no rules; `scaling`
simulates many cores; `saved` times what `satura optimize` makes of models in onnxruntime; `search`
times what `satura.compile` does before kernels; `sizes` times calls of ever new sizes.
"""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compare import compare, compare_alone
from benchmarks.executables import executables
from benchmarks.memory import DEFAULT as OF_MEMORY
from benchmarks.memory import memory
from benchmarks.models import MODELS, TINY, build, example_inputs, example_sizes
from benchmarks.opening import opening
from benchmarks.rule_sets import rule_sets
from benchmarks.saved import DEFAULT as SAVED
from benchmarks.saved import saved
from benchmarks.scaling import scaling
from benchmarks.search import search
from benchmarks.single_layers import DTYPES, compare_each, compare_layers
from benchmarks.single_ops import blocks
from benchmarks.sizes import DEFAULT as OF_SIZES
from benchmarks.sizes import sizes
from satura.backend.cores import usable_threads
from satura.commands.bench import Case, print_results
from satura.commands.bench import compare as compare_runtimes
from satura.commands.compiling import Compiling

_LARGE = tuple(name for name in MODELS if name not in TINY)
_MANY = 60  # rounds where differences of a few percent count


def _time(given: Namespace) -> None:
    cases = (  # each built when it is its turn
        Case(name, model, example_inputs(model, example_sizes(name)))
        for name in given.models
        for model in [build(name)]
    )
    results = compare_runtimes(cases, given.rounds, Compiling(threads=given.threads))
    print_results(results, given.threads, given.rounds)


def _compare(given: Namespace) -> None:
    if given.alone:
        compare_alone(given.models[0], given.threads, given.rounds)
    else:
        compare(given.models, given.threads, given.rounds, given.csv)


def _comparison(parser: ArgumentParser) -> None:
    parser.add_argument("--csv", type=Path, help="write all numbers and, beside it, a plot")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)


def _layers(parser: ArgumentParser) -> None:
    parser.add_argument("--dtype", nargs="*", default=["f32"], choices=list(DTYPES))
    _names(parser)


def _names(parser: ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="those whose name has this")


def _json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _machine(parser: ArgumentParser) -> None:
    parser.add_argument("--bandwidth", type=float, default=200.0, help="GB/s of all cores")
    parser.add_argument("--cache", type=float, default=256.0, help="MiB of caches of all cores")


def _lengths(parser: ArgumentParser) -> None:
    parser.add_argument("--lengths", type=int, default=500, help="how many are called")


@dataclass(frozen=True)
class _Command:
    """What runs a command, its models where none are given, and what adds its own options.

    Where `models` are None, it is not about models.
    """

    run: Callable[[Namespace], None]
    models: Sequence[str] | None = _LARGE
    options: Callable[[ArgumentParser], None] = lambda _: None
    rounds: int = 15


_COMMANDS = {
    "": _Command(_time),
    "compare": _Command(_compare, options=_comparison),
    "executables": _Command(lambda x: executables(x.models, x.threads, x.rounds), rounds=_MANY),
    "layers": _Command(
        lambda x: compare_layers(x.dtype, x.threads, x.rounds, x.only), None, _layers
    ),
    "memory": _Command(lambda x: memory(x.models, x.threads), OF_MEMORY),
    "opening": _Command(
        lambda x: opening(x.models, x.threads, x.rounds, x.json),
        ("light_resnet50", "minilm", "bert_base"), _json,
    ),
    "ops": _Command(
        lambda x: compare_each(blocks(), "ops", x.threads, x.rounds, x.only), None, _names, 5
    ),
    "rules": _Command(lambda x: rule_sets(x.models, x.threads, x.rounds)),
    "saved": _Command(lambda x: saved(x.models, x.rounds, x.json), SAVED, _json),
    "scaling": _Command(
        lambda x: scaling(x.models, x.bandwidth, x.cache, x.rounds),
        ("light_resnet50", "bert_base"), _machine,
    ),
    "search": _Command(lambda x: search(x.models)),
    "sizes": _Command(
        lambda x: sizes(x.models, x.threads, x.rounds, x.lengths), OF_SIZES, _lengths, _MANY
    ),
}  # fmt: skip


def main() -> None:
    """Print a table with a line per model or layer."""
    first = "".join(sys.argv[1:2])
    command = _COMMANDS.get(first, _COMMANDS[""])
    parser = ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--threads", type=int, default=usable_threads())
    parser.add_argument("--rounds", type=int, default=command.rounds)
    if command.models is not None:
        parser.add_argument("models", nargs="*", default=list(command.models))
    command.options(parser)
    given = parser.parse_args(sys.argv[2 if first and first in _COMMANDS else 1 :])
    known = dict.fromkeys((*MODELS, *(command.models or ())))
    unknown = [name for name in vars(given).get("models", ()) if name not in known]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; choose from {', '.join(known)}")
    command.run(given)


if __name__ == "__main__":
    main()
