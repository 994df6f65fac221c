"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="An ONNX file, or a light model's name.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", "-t", min=1, help="Threads; all cores by default.")
]
ThreadsOfCosts = Annotated[
    int | None,
    typer.Option(
        "--threads", "-t", min=1,
        help="Threads that default and calibrated costs are for, all cores by default; reference"
        " costs are for one.",
    ),
]  # fmt: skip
RuleSetName = Annotated[str, typer.Option("--rules", help="The rule set: none, exact or default.")]
Precision = Annotated[str, typer.Option(help="fp32, or exact: bit for bit.")]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size",
        metavar="NAME=N",
        help="The size of a symbol in random inputs, 16 by default (schedules assume 64);"
        " repeatable.",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--value", metavar="NAME=VALUE",
        help="The value of an input, such as one that decides shapes: numbers, as in axes=0,2, or"
        " an .npy file; repeatable.",
    ),
]  # fmt: skip
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="NAME",
        help="An input that each call gives, although MODEL has an initializer for it, which is a"
        " constant otherwise; repeatable.",
    ),
]  # fmt: skip
_TYPICAL = (
    "A symbol's typical size, such as batch=1, or a range of sizes, such as seq=1:512, for which to"
    " be fast; other sizes give equally correct results."
)
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=N",
        help=f"{_TYPICAL} Repeatable.",
    ),
]  # fmt: skip
DimsOfInputs = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=N",
        help=f"{_TYPICAL} Random inputs have this size unless --size gives another. Repeatable.",
    ),
]  # fmt: skip
Cost = Annotated[str, typer.Option(help="default, calibrated (this machine's) or reference.")]
Executables = Annotated[
    str,
    typer.Option(
        metavar="LEVEL",
        help="Which dispatches share a kernel: none, exact (equal ones), generic (wherever one can"
        " serve), or cost (where sharing loses less time than compiling another takes).",
    ),
]
_LIMITS = (
    "after rounds=N rounds, at nodes=N e-nodes, or, once there are enough=N times as many e-nodes"
    " as nodes of the program, after they have doubled gainless=N times without a cheaper program."
    " Separate several by commas, as in rounds=5,nodes=2000."
)
Limits = Annotated[
    str, typer.Option(metavar="NAME=N,…", help=f"When to stop the search: {_LIMITS}")
]
EachLimits = Annotated[
    list[str] | None,
    typer.Option(
        "--limits", metavar="NAME=N,…", help=f"Repeatable. When to stop each search: {_LIMITS}"
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        help="Use machine code in a saved file that others may have written; otherwise it is"
        " compiled again."
    ),
]
With = Annotated[
    list[Path] | None,
    typer.Option(
        "--with", metavar="FILE.py", exists=True, dir_okay=False,
        help="A file of further rules and ops; repeatable. A rule that fails is dropped with a"
        " warning.",
    ),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of a table.")]
