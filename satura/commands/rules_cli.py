"""Commands about rules and ops; see `cli.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from satura.commands.options import AsJson, ModelName, RuleSetName, Values, With

rules_app = typer.Typer()
LONGEST = 86_400.0  # seconds: no system waits for ever


@rules_app.command()
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
        list[str] | None, typer.Option(metavar="NAME", help="Only this rule or family; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same report.")] = 0,
    deep: Annotated[bool, typer.Option("--deep", help="Ten times as many instances.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=LONGEST, help="CPU seconds for each rule; 60, or 600 with --deep."
        ),
    ] = None,
    json: AsJson = False,
    json_lines: Annotated[
        bool, typer.Option("--json-lines", help="A line of JSON for each rule, when it is judged.")
    ] = False,
) -> None:
    """Test rules on random instances, and prove those that can be proved; exit with 1 if one is
    refuted, vacuous, or does not end."""
    if json and json_lines:
        raise typer.BadParameter("--json is one text, --json-lines many: choose one of them")
    from satura.commands.check import check_rules

    sound = check_rules(files or [], book, rule or [], seed, deep, seconds, json, json_lines)
    raise typer.Exit(0 if sound else 1)


@rules_app.command()
def why(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="[RULE] MODEL", help="A rule's name, and an ONNX file or a light model's name."
        ),
    ],
    value: Values = None,
    choice: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="A node of the rewritten program, such as 12; no RULE."),
    ] = None,
    with_: With = None,
    rules: RuleSetName = "default",
    seconds: Annotated[
        float,
        typer.Option(min=0.1, max=LONGEST, help="When to give up a rule that does not end."),
    ] = 30.0,
    json: AsJson = False,
) -> None:
    """Say why RULE fires on MODEL or does not: what each step of its pattern matches, what it made,
    and the nearest miss. With --choice, say why a node is computed as it is: which other candidates
    lost, by how much, and which terms of the cost decided."""
    if choice is not None and len(asked) == 1:
        from satura.commands.choice import choice as explain_choice

        explain_choice(choice, asked[0], value or [], with_ or [], rules, json)
        return
    if choice is not None or len(asked) != 2:
        raise typer.BadParameter("give a RULE and a MODEL, or --choice NODE and a MODEL")
    from satura.commands.why import why as explain_rule

    explain_rule(asked[0], asked[1], value or [], with_ or [], rules, seconds, json)


@rules_app.command()
def explain(
    model: ModelName,
    nodes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NODES]...", help="Numbers of rewritten nodes; all by default."),
    ] = None,
    value: Values = None,
    with_: With = None,
    rules: RuleSetName = "default",
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--sizes", "--size", metavar="NAME=N",
            help="A size, or a range LOW:HIGH, of a symbol: say which sizes share kernels; other"
            " symbols have typical sizes. Repeatable. Of more than 10,000 a sample is examined.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Say which rules, in order, produced the nodes that MODEL is rewritten to. With --sizes, say
    which classes sizes fall into, and what distinguishes these."""
    if sizes:
        from satura.commands.classes import show_classes
        from satura.commands.rule_files import with_files

        everything = with_files(rules, with_ or [])
        show_classes(model, value or [], nodes or [], everything, sizes, json)
        return
    from satura.commands.explain import explain as explain_nodes

    explain_nodes(model, value or [], nodes or [], rules, with_ or [], json)


@rules_app.command()
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
    value: Values = None,
    with_: With = None,
    subsets: Annotated[
        int,
        typer.Option(
            min=0,
            help="With --worth, also leave out all laws, all laws that round, and this many random"
            " halves; exit with 1 if fewer laws make a model cheaper by more than 0.5 %.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same halves.")] = 0,
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Write --worth to this file; results already in it are not computed again."
        ),
    ] = None,
) -> None:
    """List the rules of a set: law, whether it holds bit for bit, whether it is proved, and where
    it is defined."""
    if not worth and (subsets or csv or value or with_):
        raise typer.BadParameter("--subsets, --csv, --value and --with need --worth MODEL")
    if markdown and (json or grep or worth or rules != "default"):
        raise typer.BadParameter("--markdown is the text of a page: nothing else goes with it")
    if worth:
        from satura.commands.worth import print_worths

        is_monotone = print_worths(worth, value or [], rules, with_ or [], subsets, seed, csv, json)
        raise typer.Exit(0 if is_monotone or not subsets else 1)
    if markdown:
        from satura.commands.pages import rules_page
        from satura.commands.terminal import print_line

        print_line(rules_page().rstrip("\n"))
    else:
        from satura.commands.listing import list_rules

        list_rules(rules, grep, json)


@rules_app.command()
def ops(
    json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The text of docs/ops.md.")] = False,
) -> None:
    """List the canonical ops."""
    if markdown and json:
        raise typer.BadParameter("--markdown is the text of a page: nothing else goes with it")
    from satura.commands.listing import list_ops
    from satura.commands.pages import ops_page
    from satura.commands.terminal import print_line

    if markdown:
        print_line(ops_page().rstrip("\n"))
    else:
        list_ops(json)
