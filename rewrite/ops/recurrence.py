"""The op that carries a state from step to step: LSTM, GRU and RNN after their input projection."""

from __future__ import annotations

import numpy as np

from satura.rewrite.ops.cells import Cell, Phase, phases
from satura.rewrite.ops.formula import evaluate_formula, formula_flops
from satura.rewrite.ops.reductions import products
from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import refuse_unless
from satura.rewrite.types.tensor_type import Array, DType, TensorType


def _recurrence(
    x: Array, weights: Array, first: Array, parameters: Array, lengths: Array, cell: Cell
) -> Array:
    steps, batch = x.shape[:2]
    sides, hidden = weights.shape[:2]
    gates = x.reshape(steps, batch, sides, cell.gates, hidden)
    ends = lengths if lengths.shape == (batch,) else np.full(batch, steps)
    result = np.zeros((steps + len(cell.states), sides, batch, hidden), x.dtype)
    with np.errstate(all="ignore"):
        for side, backward in enumerate(cell.backward):
            matrix = weights[side].reshape(hidden, cell.gates, hidden)
            holes = {
                f"p{number}": np.broadcast_to(row, (batch, hidden))
                for number, row in enumerate(parameters[side])
            }
            state = {name: first[at, side] for at, name in enumerate(cell.states)}
            for step in range(steps)[:: -1 if backward else 1]:
                inputs = {f"x{gate}": gates[step, :, side, gate] for gate in range(cell.gates)}
                runs = np.less(step, ends)[:, None]
                values = {**state, **holes, **inputs}
                for phase in phases(cell, len(holes)):
                    _run(phase, matrix, values)
                state = {name: np.where(runs, values[f"new_{name}"], state[name]) for name in state}
                result[step, side] = np.where(runs, state["h"], 0)
            for at, name in enumerate(cell.states):
                result[steps + at, side] = state[name]
    return result


def _run(phase: Phase, matrix: Array, values: dict[str, Array]) -> None:
    """Adds what a phase computes to `values`."""
    for gate in phase.gates:
        values[f"r{gate}"] = products(values[phase.vector], matrix[:, gate])
    for line in phase.lines:
        operands = [values[name] for name in line.operands]
        values[line.name] = evaluate_formula(line.formula, operands, ())


def cell_flops(cell: Cell, parameters: int) -> float:
    """Weight of the formulas of one unit in one step."""
    found = phases(cell, parameters)
    return sum(formula_flops(line.formula) for phase in found for line in phase.lines)


def _flops(
    result: TensorType, x: TensorType, weights: TensorType, first: TensorType,
    parameters: TensorType, lengths: TensorType, cell: Cell,
) -> float:  # fmt: skip
    units = size_of(x) / cell.gates
    depth = size_of(weights) / max(1.0, size_of(weights.with_shape(weights.shape[::2])))
    held = parameters.shape[1]
    assert isinstance(held, int)
    return 2 * size_of(x) * depth + units * cell_flops(cell, held)


@op(kind=Kind.ALONE, reference=_recurrence, flops=_flops)
def recurrence(
    x: TensorType, weights: TensorType, first: TensorType, parameters: TensorType,
    lengths: TensorType, cell: Cell,
) -> TensorType:  # fmt: skip
    """The results of all steps, [step, side, batch, unit], and behind them the last states.

    x [step, batch, side · gate · unit] is the input of the gates, weights [side, unit,
    gate · unit] what the state is multiplied by, first [state, side, batch, unit] the states before
    the first step, parameters [side, number, unit] as the cell says. A sequence of `lengths`
    [batch] has ended from that step on: its results are 0 and its states stay; with lengths [0]
    none ends.
    """
    refuse_unless(x.dtype in (DType.F32, DType.F64), f"a recurrence of {x.dtype.value}")
    same = all(each.dtype is x.dtype for each in (weights, first, parameters))
    refuse_unless(same, "the operands' element types differ")
    refuse_unless(lengths.dtype is DType.I64, f"lengths are {lengths.dtype.value}")
    ranks = (x.rank, weights.rank, first.rank, parameters.rank, lengths.rank)
    refuse_unless(ranks == (3, 3, 4, 3, 1), f"operands of ranks {ranks}")
    steps, batch, width = x.shape
    sides, hidden, columns = weights.shape
    held = parameters.shape[1]
    fixed = all(isinstance(dim, int) for dim in (sides, hidden, held))
    refuse_unless(fixed, "sides, units and parameters have fixed numbers")
    assert isinstance(held, int) and isinstance(hidden, int) and isinstance(sides, int)
    refuse_unless(sides == len(cell.backward), f"{sides} sides, {len(cell.backward)} directions")
    phases(cell, held)
    refuse_unless(columns == cell.gates * hidden, f"{columns} columns of {cell.gates} gates")
    refuse_unless(width == sides * cell.gates * hidden, f"{width} inputs of the gates")
    refuse_unless(first.shape == (len(cell.states), sides, batch, hidden), f"first states {first}")
    refuse_unless(parameters.shape == (sides, held, hidden), f"parameters {parameters}")
    refuse_unless(lengths.shape in ((batch,), (0,)), f"lengths {lengths}")
    return x.with_shape((steps + len(cell.states), sides, batch, hidden))


__all__ = ["Cell", "cell_flops", "recurrence"]
