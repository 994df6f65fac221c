"""The command `satura`. Each command reads its arguments here; its work is in satura/commands/.

Exit codes: 0 fine, 1 an error that satura reports (one line on stderr), 2 wrong usage.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn, TextIO

import typer

from satura.commands.options import (
    AsJson,
    Cost,
    Dims,
    ModelPath,
    Precision,
    RuleSetName,
    Sizes,
    Threads,
    With,
)
from satura.rewrite.errors import SaturaError

app = typer.Typer(
    name="satura",
    help="Tensor programs made faster by rewrite rules: ONNX in, CPU kernels out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
cache_app = typer.Typer(
    help="The folder of compiled kernels and remembered schedules.", no_args_is_help=True
)
app.add_typer(cache_app, name="cache")


def _version(wanted: bool) -> None:
    if wanted:
        from satura import __version__

        typer.echo(f"satura {__version__}")
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


@app.command()
def run(
    model: ModelPath,
    inputs: Annotated[
        Path | None,
        typer.Option(
            help="Arguments by name, as .npz; seeded random ones by default.", exists=True
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Where to write the outputs (.npz).")] = None,
    size: Sizes = None,
    dim: Dims = None,
    threads: Threads = None,
    precision: Precision = "fp32",
    cost: Cost = "default",
    verify: Annotated[bool, typer.Option(help="Compare every stage with the interpreter.")] = False,
    files: With = None,
    json: AsJson = False,
) -> None:
    """Compile MODEL, run it once and show its outputs."""
    from satura.commands.rule_files import with_files
    from satura.commands.run import run as run_model
    from satura.pipeline.sizes import parse_dims

    rules = with_files("default", files or [])
    typical = parse_dims(dim or [])
    run_model(
        model, inputs, output, size or [], typical, threads, precision, cost, rules, verify, json
    )


@app.command()
def optimize(
    model: ModelPath,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it.")],
    rules: RuleSetName = "default",
    files: With = None,
    text: Annotated[bool, typer.Option(help="Print the program as text, too.")] = False,
) -> None:
    """Rewrite MODEL and write the result as an ONNX file."""
    from satura.commands.optimize import optimize as optimize_model
    from satura.commands.rule_files import with_files

    optimize_model(model, output, with_files(rules, files or []), text)


@app.command()
def stats(
    model: ModelPath,
    rules: RuleSetName = "default",
    files: With = None,
    dim: Dims = None,
    cost: Cost = "default",
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Count dispatches, fills, copies, bytes before and after rewriting MODEL."""
    from satura.commands.rule_files import with_files
    from satura.commands.stats import stats as show_stats
    from satura.pipeline.sizes import parse_dims

    show_stats(model, with_files(rules, files or []), threads, json, parse_dims(dim or []), cost)


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
    limits: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N,…", help="rounds, nodes, enough, gainless; repeatable."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="E-graphs that are made at a time.")] = 1,
    csv: Annotated[
        Path | None,
        typer.Option(help="Write all numbers to this file; what stands in it is not done again."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write plots of cost, bound and time to this image.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare extractors: the predicted cost of what each chooses, and a bound that none beats."""
    from satura.commands.experiment import experiment as run_experiment

    tried = rules or ["default"], extractor or ["search"], cost or ["reference"], limits or []
    run_experiment(models, *tried, jobs, csv, plot, json)


@app.command()
def show(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="An ONNX file, or a light model's name.")
    ],
    stage: Annotated[
        str, typer.Option(help="program, egraph, extracted, schedule or kernels.")
    ] = "schedule",
    node: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Only what concerns this node: of the program as loaded for the first two stages,"
            " else of the extracted one.",
        ),
    ] = None,
    rules: RuleSetName = "default",
    files: With = None,
    threads: Threads = None,
    assembly: Annotated[
        bool, typer.Option("--assembly", help="With --stage kernels: their machine code, too.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Print what a stage makes of MODEL: the program, the e-graph's classes, the extracted program,
    the dispatches that it is scheduled as, or the text of their kernels."""
    from satura.commands.rule_files import with_files
    from satura.commands.show import show as show_stage

    rule_set = with_files(rules, files or [])
    show_stage(model, stage, node, rule_set, threads, assembly, json)


@app.command()
def bench(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODELS",
            help="ONNX files, or names of the onnx package's light models (the default: all).",
        ),
    ] = None,
    size: Sizes = None,
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
    json: AsJson = False,
) -> None:
    """Time MODELS against onnxruntime (and openvino, where it is installed) in one process."""
    from satura.commands.bench import bench as run_bench
    from satura.commands.rule_files import with_files

    chosen = with_files(rules, files or [])
    if profile:
        from satura.commands.profile import profile_models
        from satura.light import NAMES

        given = models or list(NAMES)
        profile_models(given, size or [], threads, rounds, precision, chosen, cost, json)
        return
    run_bench(models or [], size or [], threads, rounds, precision, chosen, json)


@app.command()
def calibrate(
    seed: Annotated[int, typer.Option(min=0, help="Other random programs to measure.")] = 0,
    json: AsJson = False,
) -> None:
    """Measure this machine's rates, for predictions and for --cost calibrated: about a minute."""
    from satura.commands.calibrate import calibrate_machine

    calibrate_machine(seed, json)


@app.command()
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILES",
            help="Python files with rules; the rule book by default.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    book: Annotated[bool, typer.Option("--book", help="Check the rule book, too.")] = False,
    rule: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this rule; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same report.")] = 0,
    deep: Annotated[bool, typer.Option("--deep", help="Ten times as many instances.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, help="The limit for each rule; 60, or 600 with --deep."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Test rules on random instances, and prove those that can be proved; exits with 1 where one is
    refuted, vacuous, or does not come to an end."""
    from satura.commands.check import check_rules

    sound = check_rules(files or [], book, rule or [], seed, deep, seconds, json)
    raise typer.Exit(0 if sound else 1)


@app.command()
def why(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="[RULE] MODEL", help="A rule's name, and an ONNX file or a light model's name."
        ),
    ],
    choice: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="A node of the rewritten program, such as 12; no RULE."),
    ] = None,
    with_: With = None,
    rules: RuleSetName = "default",
    seconds: Annotated[
        float, typer.Option(min=0.1, help="When to give up a rule that does not end.")
    ] = 30.0,
    json: AsJson = False,
) -> None:
    """Say why RULE fires on MODEL or does not: what each step of its pattern matches, what it made,
    and the nearest miss. With --choice, say why a node is computed as it is: which other candidates
    lost, by how much, and which terms of the cost decided."""
    if choice is not None and len(asked) == 1:
        from satura.commands.choice import choice as explain_choice

        explain_choice(choice, asked[0], with_ or [], rules, json)
        return
    if choice is not None or len(asked) != 2:
        raise typer.BadParameter("give a RULE and a MODEL, or --choice NODE and a MODEL")
    from satura.commands.why import why as explain_rule

    explain_rule(asked[0], asked[1], with_ or [], rules, seconds, json)


@app.command()
def explain(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="An ONNX file, or a light model's name.")
    ],
    nodes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NODES]...", help="Numbers of rewritten nodes; all by default."),
    ] = None,
    rules: RuleSetName = "default",
    json: AsJson = False,
) -> None:
    """Say which rules, one after the other, the nodes come from that MODEL is rewritten to."""
    from satura.commands.explain import explain as explain_nodes

    explain_nodes(model, nodes or [], rules, json)


@app.command()
def rules(
    rules: Annotated[str, typer.Argument(metavar="SET", help="The rule set.")] = "default",
    grep: Annotated[
        str, typer.Option(metavar="TEXT", help="Only rules whose name, law or place has it.")
    ] = "",
    json: AsJson = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The text of docs/rules.md.")
    ] = False,
    worth: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="What each law gains on this model, by leaving it out (minutes); repeatable.",
        ),
    ] = None,
) -> None:
    """List the rules of a set: law, whether it holds bit for bit, whether it is proved, and where
    it is defined."""
    if worth:
        from satura.commands.worth import print_worths

        print_worths(worth, rules, json)
    elif markdown:
        from satura.commands.pages import rules_page

        typer.echo(rules_page(), nl=False)
    else:
        from satura.commands.listing import list_rules

        list_rules(rules, grep, json)


@app.command()
def ops(
    json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The text of docs/ops.md.")] = False,
) -> None:
    """List the canonical ops."""
    from satura.commands.listing import list_ops
    from satura.commands.pages import ops_page

    if markdown:
        typer.echo(ops_page(), nl=False)
    else:
        list_ops(json)


@cache_app.command("show")
def cache_show(json: AsJson = False) -> None:
    """Show where kernels and schedules are kept and how much they take."""
    from satura.commands.cache import show

    show(json)


@cache_app.command("clear")
def cache_clear() -> None:
    """Remove all compiled kernels and remembered schedules."""
    from satura.commands.cache import clear

    clear()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line `arguments` (this process's by default) and exit."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as some daemons have it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what the terminal cannot show must not end us
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app(arguments)
    except SaturaError as error:
        _fail(str(error))
    except MemoryError as error:
        _fail(f"out of memory: {error or 'there is no more'}")
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Leave as Ctrl-C would have us leave: children ended, temporary files removed."""
    sys.exit(128 + number)


def _fail(message: str) -> None:
    _complain(message)
    sys.exit(1)


def _complain(message: str) -> None:
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(message.split()))
    print(f"satura: {shown}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Warnings as one line each, without the place in satura's own code that raised them."""
    _complain(f"warning: {message}")
