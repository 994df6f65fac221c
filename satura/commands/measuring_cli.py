"""The commands `satura bench` and `satura calibrate`, which measure time."""

from __future__ import annotations

from typing import Annotated

import typer

from satura.commands.options import (
    AsJson,
    Cost,
    Executables,
    Limits,
    Precision,
    RuleSetName,
    Sizes,
    Threads,
    Values,
    With,
)

measuring_app = typer.Typer()


@measuring_app.command()
def bench(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODELS",
            help="ONNX files, or names of the onnx package's light models (the default: all).",
        ),
    ] = None,
    size: Sizes = None,
    value: Values = None,
    threads: Threads = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of interleaved runs.")] = 15,
    precision: Precision = "fp32",
    rules: RuleSetName = "default",
    files: With = None,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Per dispatch of MODELS: predicted and measured time."),
    ] = False,
    cost: Cost = "default",
    limits: Limits = "",
    executables: Executables = "cost",
    json: AsJson = False,
) -> None:
    """Time MODELS against onnxruntime (and openvino, where it is installed) in one process."""
    from satura.commands.compiling import compiling

    if profile:
        from satura.commands.profile import profile_models as work
    else:
        from satura.commands.bench import bench as work
    chosen = compiling(
        rules, files, threads, precision, cost, limits=limits, executables=executables
    )
    work(models or [], size or [], value or [], rounds, chosen, json)


@measuring_app.command()
def calibrate(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random programs to measure.")] = 0,
    json: AsJson = False,
) -> None:
    """Measure this machine's rates, for predictions and for --cost calibrated: about a minute."""
    from satura.commands.calibrate import calibrate_machine

    calibrate_machine(seed, json)
