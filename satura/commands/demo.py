"""`satura demo`: one model through every stage, timed and checked."""

from __future__ import annotations

import satura
from satura.backend.cores import usable_threads
from satura.commands.stats import comparison, print_comparison
from satura.commands.terminal import measured, print_json, print_line, progress
from satura.commands.timing import medians
from satura.light import light
from satura.pipeline.inputs import random_inputs
from satura.rewrite.types.comparison import relative_error

MODEL = "light_resnet50"
TOLERANCE = 1e-4
ROUNDS = 3


def demo(threads: int | None, json: bool) -> bool:
    """Run the demo. Returns whether the compiled model agrees with the NumPy interpreter."""
    count = threads or usable_threads()
    with progress(MODEL) as phase:
        phase("drawing weights", 0)
        model = light(MODEL)
        before = satura.compile(model, count, rules="none", progress=phase)
        after = satura.compile(before.source, count, progress=phase)
        arguments = random_inputs(after.source)
        phase("timing", 0)
        seconds = medians(
            {
                "before": lambda: before.run(arguments),
                "after": lambda: after.run(arguments),
            },
            ROUNDS,
        )
        phase("checking against the interpreter", 0)
        expected = satura.interpret(after.source, arguments)
        error = relative_error(after.run(arguments), expected)
    agrees = error <= TOLERANCE
    if json:
        numbers = {"model": MODEL, "threads": count, "seconds": seconds, "error": error}
        print_json({**numbers, "agrees": agrees, **comparison([before], [after])})
        return agrees
    print_comparison(f"{MODEL}, random weights", before, after)
    ratio = seconds["before"] / seconds["after"]
    print_line(
        f"one run on {count} threads, median: {measured(seconds['before'] * 1e3)} ms before, "
        f"{measured(seconds['after'] * 1e3)} ms after ({ratio:.2f}x)"
    )
    verdict = "agrees with" if agrees else "DIFFERS FROM"
    print_line(
        f"the result {verdict} the NumPy interpreter: "
        f"largest error {error:.1e} of the largest value (at most {TOLERANCE:g})"
    )
    return agrees
