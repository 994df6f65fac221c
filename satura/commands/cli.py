"""The command `satura`. Each command reads its arguments here; files beside do its work.

Exit codes: 0 fine, 1 an error that satura reports (one line on stderr), 2 a wrong call: an option,
a name or a file that does not exist, or inputs that do not fit.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from satura.commands.cache_cli import cache_app
from satura.commands.failures import FAILURES, fail, leave, log_lines, show_warning, stdout
from satura.commands.measuring_cli import measuring_app
from satura.commands.options import (
    AsJson,
    Cost,
    Dims,
    DimsOfInputs,
    EachLimits,
    Executables,
    Inputs,
    Limits,
    ModelName,
    Precision,
    RuleSetName,
    Sizes,
    Threads,
    ThreadsOfCosts,
    Trust,
    Values,
    With,
)
from satura.commands.rules_cli import rules_app
from satura.rewrite.errors import on_command_line

app = typer.Typer(
    name="satura",
    help="Tensor programs made faster by rewrite rules: ONNX in, CPU kernels out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(measuring_app)
app.add_typer(cache_app, name="cache")
app.add_typer(rules_app)


def _version(wanted: bool) -> None:
    if wanted:
        from satura import __version__

        with stdout() as stream:
            stream.write(f"satura {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(threads: Threads = None, json: AsJson = False) -> None:
    """Optimise, compile, time and check the onnx package's ResNet-50 with random weights."""
    from satura.commands.demo import demo as run_demo

    raise typer.Exit(0 if run_demo(threads, json) else 1)


@app.command("compile")
def compile_model(
    model: ModelName,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write it.")],
    value: Values = None,
    input: Inputs = None,
    dim: Dims = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N[,NAME=N…]", help="Sizes that the file is ready for; repeatable."
        ),
    ] = None,
    threads: Threads = None,
    precision: Precision = "fp32",
    cost: Cost = "default",
    limits: Limits = "",
    executables: Executables = "cost",
    files: With = None,
    without_model: Annotated[
        bool,
        typer.Option(
            "--without-model",
            help="Leave the model out of the file: sizes that need another search then fail.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Compile MODEL and save it with its weights: `satura run` and satura.open start it at once."""
    from satura.commands.compile import compile_to
    from satura.commands.compiling import compiling
    from satura.commands.models import file_or_light
    from satura.commands.replaced import refuse_to_replace

    source = file_or_light(model)
    refuse_to_replace(output, source, files)
    chosen = compiling("default", files, threads, precision, cost, dim, limits, executables, input)
    compile_to(model, source, output, size or [], value or [], chosen, not without_model, json)


@app.command()
def run(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="An ONNX file, a light model's name, or a file that `satura compile` wrote.",
        ),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(
            help="Arguments by name, as .npz; seeded random ones by default. The tensors of a"
            " sequence s are named s[0], s[1], and so on.",
            exists=True,
        ),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE.npy",
            help="One argument, or the tensor s[0] of a sequence s, as .npy; repeatable.",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Where to write the outputs (.npz).")] = None,
    size: Sizes = None,
    value: Values = None,
    dim: DimsOfInputs = None,
    threads: Threads = None,
    precision: Precision = "fp32",
    cost: Cost = "default",
    limits: Limits = "",
    executables: Executables = "cost",
    trust: Trust = False,
    verify: Annotated[
        bool,
        typer.Option(
            help="Compare every stage, or the saved program, with the interpreter, at typical"
            " sizes and at the sizes of the inputs that are given."
        ),
    ] = False,
    files: With = None,
    json: AsJson = False,
) -> None:
    """Compile MODEL, or open a compiled one, run it once and show its outputs."""
    from satura.artifact.container import is_artifact
    from satura.commands.models import file_or_light
    from satura.commands.replaced import refuse_other_than_results, refuse_to_replace
    from satura.commands.run import run, run_opened

    arrays = [Path(each.partition("=")[2]) for each in input or []]
    arrays += [inputs] if inputs else []
    source = file_or_light(model)
    refuse_to_replace(output, source, [*(files or []), *arrays])
    refuse_other_than_results(output)
    given = (inputs, input or [], size or [])
    if isinstance(source, Path) and is_artifact(source):
        of_models = {
            "--value": value,
            "--dim": dim,
            "--threads": threads,
            "--limits": limits,
        }
        changed = {
            "--precision": precision != "fp32", "--cost": cost != "default",
            "--executables": executables != "cost",
        }  # fmt: skip
        late = {**of_models, **changed}
        run_opened(source, given, output, trust, files or [], late, verify, json)
        return
    from satura.commands.compiling import compiling

    chosen = compiling("default", files, threads, precision, cost, dim, limits, executables)
    run(model, source, given, output, value or [], chosen, verify, json)


@app.command()
def optimize(
    model: ModelName,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it.")],
    value: Values = None,
    input: Inputs = None,
    rules: RuleSetName = "default",
    files: With = None,
    dim: Dims = None,
    cost: Cost = "reference",
    limits: Limits = "",
    text: Annotated[bool, typer.Option("--text", help="Print the program as text, too.")] = False,
    time: Annotated[
        bool, typer.Option("--time", help="Time MODEL and OUT in onnxruntime, taking turns.")
    ] = False,
    size: Sizes = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Rewrite MODEL and write the result as an ONNX file, for other runtimes: OUT may be MODEL.

    Nodes whose result sizes depend on data, such as NonZero, stay as they are in MODEL; the nodes
    before and after them are rewritten. With --json, `same` says whether OUT has the nodes of
    MODEL, wired alike, and `cheaper` whether it has others, of a program that rules made cheaper.
    """
    from satura.commands.bench import needs_onnxruntime
    from satura.commands.compiling import compiling
    from satura.commands.models import file_or_light
    from satura.commands.optimize import Timing
    from satura.commands.optimize import optimize as optimize_model
    from satura.commands.replaced import refuse_to_replace
    from satura.pipeline.inputs import parse_sizes

    source = file_or_light(model)
    refuse_to_replace(output, source, files, may_be_model=True)
    chosen = compiling(rules, files, threads, cost=cost, dims=dim, limits=limits, inputs=input)
    timing = Timing(parse_sizes(size or []), threads) if time else None
    if timing is not None:
        needs_onnxruntime("--time")
    optimize_model(model, source, output, value or [], chosen, text, timing, json)


@app.command()
def stats(
    model: ModelName,
    value: Values = None,
    rules: RuleSetName = "default",
    files: With = None,
    dim: Dims = None,
    cost: Cost = "default",
    limits: Limits = "",
    executables: Executables = "cost",
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Count dispatches, fills, copies, bytes before and after rewriting MODEL.

    With --json, `before`, `after`, `executables`, `phases` and `rules` are for the whole MODEL.
    `parts` lists the same for each part that it runs in (mostly one), with its `hosts`: the nodes
    that run in Python after it.
    """
    from satura.commands.compiling import compiling
    from satura.commands.stats import stats as show_stats

    chosen = compiling(
        rules, files, threads, cost=cost, dims=dim, limits=limits, executables=executables
    )
    show_stats(model, value or [], chosen, json)


@app.command()
def experiment(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL…", help="ONNX files, light models' names, or e-graphs as JSON."
        ),
    ],
    extractor: Annotated[
        list[str] | None,
        typer.Option(help="search, exact, dag or tree; repeatable, search by default."),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(help="none, exact or default; repeatable, default by default."),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(help="reference, default or calibrated; repeatable, reference by default."),
    ] = None,
    files: With = None,
    limits: EachLimits = None,
    threads: ThreadsOfCosts = None,
    dim: Dims = None,
    value: Values = None,
    jobs: Annotated[int, typer.Option(min=1, help="E-graphs made at a time.")] = 1,
    cluster: Annotated[
        str, typer.Option(metavar="ADDRESS", help="A Dask scheduler, whose workers make them.")
    ] = "",
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Write all numbers to this file; trials already in it are not run again."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write plots of cost, bound and time to this image.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare extractors: the predicted cost of what each chooses, and a bound that no choice of
    the same candidates beats, a weaker one where these are more than 10000. More rules may raise
    the cost here, but not in `compile`: it also keeps the cheapest program met while rules run,
    and searches more widely, also without rules."""
    from satura.commands.experiment import experiment as run_experiment

    tried = rules or ["default"], extractor or ["search"], cost or ["reference"], limits or []
    run_experiment(
        models, *tried, jobs, cluster, csv, plot, json, dim or [], threads, value or [], files or []
    )


@app.command()
def show(
    model: ModelName,
    stage: Annotated[
        str, typer.Option(help="program, egraph, extracted, schedule or kernels.")
    ] = "schedule",
    node: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Only records that concern this node, numbered as in the loaded program for the"
            " first two stages, else as in the extracted one.",
        ),
    ] = None,
    value: Values = None,
    rules: RuleSetName = "default",
    files: With = None,
    dim: Dims = None,
    cost: Cost = "default",
    limits: Limits = "",
    executables: Executables = "cost",
    threads: Threads = None,
    assembly: Annotated[
        bool, typer.Option("--assembly", help="With --stage kernels: their machine code, too.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Print the result of a stage for MODEL: the program, the e-graph's classes, the extracted
    program, the dispatches that it is scheduled as, or the text of their kernels."""
    from satura.commands.compiling import compiling
    from satura.commands.show import show as show_stage

    chosen = compiling(
        rules, files, threads, cost=cost, dims=dim, limits=limits, executables=executables
    )
    show_stage(model, value or [], stage, node, chosen, assembly, json)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line `arguments` (this process's by default) and exit."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), leave)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as some daemons have it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what the terminal cannot show must not end us
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings(), log_lines(), on_command_line():
            warnings.showwarning = show_warning
            try:
                app(arguments)
            finally:
                with stdout() as stream:
                    stream.flush()
    except FAILURES as error:
        fail(error)


if __name__ == "__main__":
    main()
