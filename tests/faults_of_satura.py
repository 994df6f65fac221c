"""Mistakes in the pipeline, saved programs, experiments and commands."""

from __future__ import annotations

from tests.fault import Fault

SATURA_FAULTS = (
    # satura/pipeline
    Fault(
        "satura/pipeline/rates.py",
        'if cache.load(probe) != b"probe":',
        'if cache.load(probe) == b"probe":',
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/pipeline/rates.py",
        "not 0 <= seconds <= 1",
        "not seconds <= 1",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/pipeline/sizes.py",
        "isqrt(max(1, low) * high)",
        "(low + high) // 2",
        "tests/test_sizes.py",
    ),
    Fault(
        "satura/pipeline/remembered.py",
        "model.identity,",
        '"",',
        "tests/test_sizes.py",
    ),
    Fault(
        "satura/pipeline/remembered.py",
        "        str(program),",
        "        str(len(program.nodes)),",
        "tests/test_remembered.py",
    ),
    Fault(
        "satura/pipeline/rule_sets.py",
        'return f"rules {names}" if all(map(is_of_the_book, rules)) else None',
        'return f"rules {names}"',
        "tests/test_remembered.py",
    ),
    Fault(
        "satura/pipeline/ready.py",
        "environment(), content.hexdigest()]",
        "environment()]",
        "tests/test_ready.py",
    ),
    Fault(
        "satura/pipeline/ready.py",
        "len(program.first_sizes) >= MOST_CLASSES",
        "len(program.first_sizes) > MOST_CLASSES",
        "tests/test_ready.py",
    ),
    Fault(
        "satura/pipeline/widened.py",
        "or evaluate(dim, sizes) == size",
        "or evaluate(dim, sizes) >= size",
        "tests/test_data_extents.py",
    ),
    # satura/artifact
    Fault(
        "satura/artifact/classes.py",
        "own = outputs.values() if self.types is None else self.types",
        "own = outputs.values()",
        "tests/test_other_sizes.py",
    ),
    Fault(
        "satura/artifact/sums.py",
        "total += word",
        "total = word",
        "tests/test_artifact_damage.py",
    ),
    # satura/experiments
    Fault(
        "satura/experiments/calibration.py",
        "(*features.moved, *features.work)",
        "features.work",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/experiments/calibration.py",
        "min(pair, key=_seconds)",
        "max(pair, key=_seconds)",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/experiments/training.py",
        "reduce(function, x, (1,))",
        "reshape(self.build.reduce(function, x, (1,)), (self.build.type(x).shape[0], 1))",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/pipeline/api.py",
        "typical_sizes(program, dims), is_exact)",
        "typical_sizes(program, dims))",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/pipeline/api.py",
        "refusals, middles(dims), is_exact,",
        "refusals, middles(dims),",
        "tests/test_calibration.py",
    ),
    Fault(
        "satura/pipeline/ready.py",
        "parts = [identity, is_exact, repr(limits),",
        "parts = [identity, repr(limits),",
        "tests/test_ready.py",
    ),
    Fault(
        "satura/artifact/elsewhere.py",
        "search(found, rules, is_exact,",
        "search(found, rules, False,",
        "tests/test_artifacts.py",
    ),
    Fault(
        "satura/experiments/profile.py",
        "np.cumsum(counts) - (counts - 1) / 2",
        "np.cumsum(counts)",
        "tests/test_profile.py",
    ),
    # satura/commands
    Fault(
        "satura/commands/rules_cli.py",
        "raise typer.Exit(0 if sound else 1)",
        "raise typer.Exit(0)",
        "tests/test_check_command.py",
    ),
)
