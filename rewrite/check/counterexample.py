"""A failure as something to read and to paste."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from satura.rewrite.check.both_sides import Failure
from satura.rewrite.check.compare import node_values
from satura.rewrite.check.disagreement import elements_where_unlike
from satura.rewrite.check.no_right_side import RefusedOp, refused_op
from satura.rewrite.check.report import Counterexample
from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.language.terms import Known
from satura.rewrite.ops.registry import user_op
from satura.rewrite.program.program import Program, ProgramBuilder
from satura.rewrite.program.text import array_python
from satura.rewrite.types.attributes import UserAttribute
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import Array

MOST_SHOWN = 100  # elements of a result


def counterexample(failure: Failure, rule: Rule) -> Counterexample:
    """What a report shows of a failure."""
    instance = failure.instance
    direction = instance.direction if instance else rule.directions[0]
    arguments = dict(failure.arguments)
    known = _known_arrays(direction, arguments) if instance else {}
    for name in known:
        del arguments[name]
    refused = None
    if instance is not None and not failure.has_right:
        refused = refused_op(instance, failure.sizes)
    whole = with_constants(refused.program if refused else failure.program, known)
    program = replace(whole, outputs=whole.outputs[:1]) if refused else whole
    results = _results_text(program, arguments, most=2 if failure.is_difference else 1)
    if len(results) == 2 and results["left"] == results["right"]:  # but for the shapes
        shapes = {name: program.nodes[index].type.shape for name, index in program.outputs}
        results = {name: f"{shapes[name]} {text}" for name, text in results.items()}
    return Counterexample(
        direction.label if instance else rule.name,
        direction.place,
        str(direction),
        {name: str(value) for name, value in instance.values} if instance else {},
        dict(failure.sizes),
        failure.reason + _operands_text(failure),
        results.get("left", ""),
        results.get("right", ""),
        "\n".join(
            [
                *_declarations(program, rule),
                _program_text(program, failure, arguments),
                *_lines_without_right(refused, whole, failure),
            ]
        ),
    )


def _operands_text(failure: Failure) -> str:
    """The elements of which a difference is made, where the arrays are too large to be shown."""
    sizes = [array.size for array in failure.arguments.values()]
    if not failure.is_difference or max(sizes, default=0) <= MOST_SHOWN:
        return ""
    found = elements_where_unlike(failure.program, failure.arguments)
    return "".join(f", where {name} has {element!s}" for name, element in found.items())


def with_constants(program: Program, known: Mapping[str, Array]) -> Program:
    """The program where the inputs of these names are constants."""
    builder = ProgramBuilder()
    places: list[int] = []
    for node in program.nodes:
        if node.op.name == "input" and node.input_name in known:
            places.append(builder.add("constant", (), Constant(known[node.input_name])))
        else:
            operands = [places[operand] for operand in node.operands]
            places.append(builder.add(node.op.name, operands, *node.attributes))
    return builder.program({name: places[index] for name, index in program.outputs})


def _known_arrays(direction: Direction, arguments: Mapping[str, Array]) -> dict[str, Array]:
    return {
        name: array
        for name, array in arguments.items()
        if issubclass(direction.variables[name], Known)
    }


def _results_text(program: Program, arguments: Mapping[str, Array], most: int) -> dict[str, str]:
    """What the first outputs are; nothing where even the left side cannot be computed."""
    try:
        values = node_values(program.nodes[: max(program.output_nodes[:most]) + 1], arguments)
    except Exception:  # whatever an op makes of what attribute functions answered
        return {}
    shown = {name: values[index] for name, index in program.outputs[:most]}
    return {
        name: str(array.tolist()) if array.size <= MOST_SHOWN else f"{array.shape} {array.dtype}"
        for name, array in shown.items()
    }


def _declarations(program: Program, rule: Rule) -> list[str]:
    """Lines that declare users' ops and attributes, by loading the rule's file."""
    values = [value for node in program.nodes for value in node.attributes]
    classes = dict.fromkeys(type(value) for value in values if isinstance(value, UserAttribute))
    if not classes and not any(user_op(node.op, node.attributes) for node in program.nodes):
        return []
    load = ["from satura.pipeline.rule_file import load_rules", f"load_rules({str(rule.file)!r})"]
    return load + [f"from {each.__module__} import {each.__name__}" for each in classes]


def _program_text(program: Program, failure: Failure, arguments: Mapping[str, Array]) -> str:
    lines = [program.python(), "arguments = {"]
    for name, array in arguments.items():
        lines.append(f"    {name!r}: {array_python(array)},")
    lines.append("}")
    if failure.has_right and not failure.is_computed:
        return "\n".join([*lines, *_one_after_the_other(program)])
    lines.append("results = interpret(program, arguments)")
    shown = _results_text(program, arguments, most=2)
    alike = failure.has_right and len({*shown.values()}) == 1
    shape = 'results["{name}"].shape, ' if alike else ""
    lines += [
        f'print("{name:5}", {shape.format(name=name)}results["{name}"].tolist())'
        for name, _ in program.outputs
    ]
    return "\n".join(lines)


def _lines_without_right(
    refused: RefusedOp | None, program: Program, failure: Failure
) -> list[str]:
    """Lines that show why there is no right side, or at least say it; none where there is one."""
    if failure.has_right:
        return []
    if refused is not None:
        return refused.lines(program)
    return [f'print("right", {failure.reason!r})']


def _one_after_the_other(program: Program) -> list[str]:
    """Lines that print the left side, then the right one or why it cannot be computed."""
    stop = program.output_nodes[0] + 1
    return [
        "from dataclasses import replace",
        f"left = replace(program, nodes=program.nodes[:{stop}], outputs=program.outputs[:1])",
        'print("left ", interpret(left, arguments)["left"].tolist())',
        "try:",
        '    print("right", interpret(program, arguments)["right"].tolist())',
        "except Exception as error:",
        '    print("right cannot be computed:", error)',
    ]
