"""The stages one by one: load, saturate, extract, and what each has to say.

Run with `python examples/stages.py [model.onnx]`.
"""

from __future__ import annotations

import sys

import satura
from satura.light import light
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.extract.extract import extract
from satura.rewrite.extract.statistics import statistics
from satura.rules import DEFAULT


def main() -> None:
    """Print a line or two per stage for the model named on the command line, or a light one."""
    program = satura.load(sys.argv[1] if len(sys.argv) > 1 else light("light_squeezenet"))
    print(f"loaded: {len(program.nodes)} nodes, such as")
    print("\n".join(str(program).splitlines()[-3:]))

    saturation = saturate(program, DEFAULT)
    classes = saturation.classes
    print(f"\nsaturated: {classes.node_count} e-nodes in {len(classes.nodes)} classes")

    schedule = extract(classes)
    print(f"\nextracted: {len(schedule.program.nodes)} nodes, scheduled as")
    for key, value in statistics(schedule).items():
        print(f"  {key:20} {value:>15,}")


if __name__ == "__main__":
    main()
