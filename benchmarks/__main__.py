"""`python -m benchmarks [MODELS…]`: the benchmark models in satura and in other runtimes.

What is measured, and how, is described in `satura bench --help`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.models import MODELS, TINY, build, example_inputs
from satura.backend.target import usable_threads
from satura.commands.bench import Case, compare, print_results

SEQUENCE, TINY_SEQUENCE = 128, 32


def cases(names: list[str]) -> Iterator[Case]:
    """The models of these names, each built when it is its turn."""
    for name in names:
        model = build(name)
        sizes = {"batch": 1, "seq": TINY_SEQUENCE if name in TINY else SEQUENCE}
        yield Case(name, model, example_inputs(model, sizes))


def main() -> None:
    """Print a table with a line per model."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("models", nargs="*", default=[n for n in MODELS if n not in TINY])
    parser.add_argument("--threads", type=int, default=usable_threads())
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.models if name not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; choose from {', '.join(MODELS)}")
    results = compare(cases(arguments.models), arguments.threads, arguments.rounds)
    print_results(results, arguments.threads, arguments.rounds)


if __name__ == "__main__":
    main()
