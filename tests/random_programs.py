"""Random well-conditioned programs over all canonical ops.

A value is *exact* when every correct implementation gives the same bits: inputs, movement,
integers, comparisons, max and min. Ops that jump (floor, casts to integers, comparisons) are only
applied to exact values, so that rounding elsewhere cannot flip them, and magnitudes are kept small
so that errors stay small. NaN, inf and -0.0 enter through the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from satura.rewrite.check.compare import magnitude
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.comparison import agreement, first_difference
from satura.rewrite.types.dims import Dim, SymbolicDim, symbol
from satura.rewrite.types.tensor_type import Array, DType

DIMS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 17)
DTYPES = (
    DType.F32, DType.F32, DType.F32, DType.F32, DType.F32, DType.F64, DType.I32, DType.I64,
    DType.BOOL, DType.U8, DType.F16, DType.BF16, DType.I8,
)  # fmt: skip
SMOOTH = ("exp", "tanh", "sigmoid", "erf", "sin", "cos", "atan", "asinh")
LIMIT = 100.0
_LEAST = 0.01


@dataclass
class RandomProgram:
    """A program under construction, with what is known of each value."""

    random: np.random.Generator
    sizes: dict[str, int]
    build: Builder = field(default_factory=Builder)
    arguments: dict[str, Array] = field(default_factory=dict)
    values: list[int] = field(default_factory=list)
    exact: dict[int, bool] = field(default_factory=dict)
    bound: dict[int, float] = field(default_factory=dict)

    def keep(self, node: int, exact: bool, bound: float) -> int:
        self.exact[node] = self.exact.get(node, False) or exact
        self.bound[node] = bound
        self.values.append(node)
        return node

    def shape(self, node: int) -> tuple[Dim, ...]:
        return self.build.type(node).shape

    def dtype(self, node: int) -> DType:
        return self.build.type(node).dtype

    def pick(self, fits: Callable[[int], bool] = lambda node: True) -> int | None:
        """A value that fits; later ones more often, so that programs grow deep."""
        found = [node for node in self.values if fits(node)]
        if not found:
            return None
        return found[-1 - min(int(self.random.geometric(0.35)) - 1, len(found) - 1)]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def dim(self) -> Dim:
        if self.sizes and self.chance(0.15):
            return symbol("n")
        return int(self.random.choice(DIMS))

    def element_count(self, node: int) -> int:
        return int(np.prod([evaluate(d, self.sizes) for d in self.shape(node)], dtype=np.int64))

    def data(self, dtype: DType, shape: tuple[int, ...], special: bool) -> Array:
        if dtype is DType.BOOL:
            return np.asarray(self.random.random(shape) < 0.5)
        if dtype.is_integer:
            low = 0 if dtype.value.startswith("u") else -5
            return np.asarray(self.random.integers(low, 9, shape)).astype(dtype.numpy)
        array = np.asarray(self.random.standard_normal(shape)).astype(dtype.numpy)
        if special and array.size:
            flat = array.reshape(-1)
            for value in (np.nan, np.inf, -np.inf, -0.0, 0.0):
                if self.chance(0.3):
                    flat[int(self.random.integers(array.size))] = value
        return array

    def new_input(self, dtype: DType | None = None, shape: tuple[Dim, ...] | None = None) -> int:
        dtype = dtype or DTYPES[int(self.random.integers(len(DTYPES)))]
        if shape is None:
            rank = int(self.random.choice([0, 1, 2, 3, 3, 4, 4]))
            shape = tuple(self.dim() for _ in range(rank))
        name = f"x{len(self.arguments)}"
        node = self.build.input(name, dtype, shape)
        concrete = tuple(evaluate(d, self.sizes) for d in shape)
        self.arguments[name] = self.data(dtype, concrete, special=self.chance(0.4))
        return self.keep(node, True, 9.0)

    def new_constant(self, dtype: DType, shape: tuple[int, ...]) -> int:
        return self.keep(self.build.constant(self.data(dtype, shape, False)), True, 9.0)

    def like(self, node: int) -> int:
        """A value of the same type: an existing one, a broadcast constant, or a new input."""
        type_ = self.build.type(node)
        same = [other for other in self.values if self.build.type(other) == type_]
        if same and self.chance(0.6):
            return same[int(self.random.integers(len(same)))]
        if self.chance(0.7):
            small = tuple(n if isinstance(n, int) and self.chance(0.4) else 1 for n in type_.shape)
            constant = self.new_constant(type_.dtype, small)
            return self.keep(self.build.broadcast(constant, type_.shape), True, 9.0)
        return self.new_input(type_.dtype, type_.shape)

    def tamed(self, node: int) -> int:
        """The value, scaled down when it has grown large."""
        if self.bound[node] <= LIMIT or not self.dtype(node).is_float:
            return node
        return self.keep(self.build.unary("tanh", node), False, 1.0)

    def above_one(self, node: int) -> int:
        """|value| + 1: near 0 a quotient, and a root, turn small errors into large ones."""
        build, shape = self.build, self.shape(node)
        one = build.reshape(build.constant(1, self.dtype(node)), (1,) * len(shape))
        return build.binary("add", build.unary("abs", node), build.broadcast(one, shape))


Step = Callable[[RandomProgram], None]


def _float(program: RandomProgram) -> Callable[[int], bool]:
    return lambda node: program.dtype(node).is_float


def elementwise(program: RandomProgram) -> None:
    node = program.pick(lambda v: program.dtype(v) is not DType.BOOL)
    if node is None:
        return
    node = program.tamed(node)
    exact, bound, build = program.exact[node], program.bound[node], program.build
    if program.chance(0.4):
        name = str(program.random.choice(["neg", "abs", "relu", "sign"]))
        if name == "sign" and not exact:  # it jumps at 0
            name = "abs"
        if not program.dtype(node).is_float or program.chance(0.5):
            program.keep(build.unary(name, node), exact, bound)
        elif exact and program.chance(0.3):
            name = str(program.random.choice(["floor", "ceil", "round", "isnan", "isinf"]))
            program.keep(build.unary(name, node), True, bound)
        elif program.chance(0.3):
            size = build.unary("abs", node) if exact else program.above_one(node)
            program.keep(build.unary("sqrt", size), False, 1 + bound)
        else:
            small = program.keep(build.unary("tanh", node), False, 1.0) if bound > 4 else node
            name = str(program.random.choice(SMOOTH))
            program.keep(build.unary(name, small), False, 60.0)
        return
    other = program.tamed(program.like(node))
    if program.dtype(other) is not program.dtype(node):
        return
    both = exact and program.exact[other]
    name = str(program.random.choice(["add", "sub", "mul", "max", "min", "div", "compare"]))
    joint = bound * program.bound[other] if name == "mul" else bound + program.bound[other]
    whole = program.dtype(node).is_integer
    if name == "compare":
        if both:
            name = str(program.random.choice(["eq", "lt", "le"]))
            program.keep(build.binary(name, node, other), True, 1.0)
    elif name == "div" and not whole:
        program.keep(build.binary("div", node, program.above_one(other)), False, bound)
    else:
        selects = name in ("max", "min")
        program.keep(build.binary(name, node, other), both and (whole or selects), joint)


def logic(program: RandomProgram) -> None:
    node = program.pick(lambda v: program.dtype(v) is DType.BOOL)
    if node is None:
        return
    if program.chance(0.3):
        program.keep(program.build.unary("not", node), True, 1.0)
        return
    if program.chance(0.4):
        x = program.new_input(DType.F32, program.shape(node))
        y = program.like(x)
        exact = program.exact[x] and program.exact[y]
        bound = max(program.bound[x], program.bound[y])
        program.keep(program.build.select(node, x, y), exact, bound)
        return
    name = str(program.random.choice(["and", "or", "xor"]))
    program.keep(program.build.binary(name, node, program.like(node)), True, 1.0)


def convert(program: RandomProgram) -> None:
    node = program.pick(lambda v: program.exact[v])
    if node is None:
        return
    dtype = DTYPES[int(program.random.integers(len(DTYPES)))]
    program.keep(program.build.cast(node, dtype), True, max(9.0, program.bound[node]))


def move(program: RandomProgram) -> None:
    node = program.pick(lambda v: len(program.shape(v)) > 0)
    if node is None:
        return
    build, random, shape = program.build, program.random, program.shape(node)
    rank, exact, bound = len(shape), program.exact[node], program.bound[node]
    kind = str(random.choice(["transpose", "reshape", "slice", "pad", "concat", "broadcast"]))
    if kind == "transpose":
        result = build.transpose(node, random.permutation(rank).tolist())
    elif kind == "reshape":
        result = build.reshape(node, _reshaped(program, shape))
    elif kind == "slice":
        result = _sliced(program, node)
    elif kind == "pad":
        lo = [int(random.integers(0, 3)) for _ in shape]
        hi = [int(random.integers(0, 3)) for _ in shape]
        value = float(random.choice([0.0, 1.0, 2.0]))
        result = build.pad(node, lo, hi, value)
    elif kind == "concat":
        other = program.like(node)
        exact = exact and program.exact[other]
        bound = max(bound, program.bound[other])
        result = build.concat([node, other], int(random.integers(rank)))
    else:
        target = tuple(int(random.choice([1, 2, 3, 5])) if n == 1 else n for n in shape)
        result = build.broadcast(node, target)
    if program.element_count(result) <= 20_000:
        program.keep(result, exact, max(bound, 2.0))


def _reshaped(program: RandomProgram, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """`shape` with extents merged, split or units inserted."""
    dims = list(shape)
    for _ in range(int(program.random.integers(1, 4))):
        at = int(program.random.integers(len(dims) + 1))
        choice = int(program.random.integers(3))
        if choice == 0:
            dims.insert(at, 1)
        elif choice == 1 and at + 1 < len(dims):
            dims[at : at + 2] = [dims[at] * dims[at + 1]]
        elif at < len(dims):
            extent = dims[at]
            for factor in (2, 3, 5):
                if isinstance(extent, int) and extent and extent % factor == 0:
                    dims[at : at + 1] = [factor, extent // factor]
                    break
    return tuple(dims[:6]) if len(dims) <= 6 else shape


def _sliced(program: RandomProgram, node: int) -> int:
    starts: list[Dim] = []
    sizes: list[Dim] = []
    steps: list[int] = []
    for extent in program.shape(node):
        if isinstance(extent, SymbolicDim) or extent == 0 or program.chance(0.4):
            starts.append(0)
            sizes.append(extent)
            steps.append(1)
            continue
        step = int(program.random.choice([1, 1, 2, -1]))
        size = int(program.random.integers(1, (extent - 1) // abs(step) + 2))
        span = (size - 1) * abs(step)
        first = int(program.random.integers(0, extent - span))
        starts.append(first if step > 0 else first + span)
        sizes.append(size)
        steps.append(step)
    return program.build.slice(node, starts, sizes, steps)


def combine(program: RandomProgram) -> None:
    def fits(v: int) -> bool:
        return len(program.shape(v)) > 0 and program.dtype(v) is not DType.BOOL

    node = program.pick(fits)
    if node is None:
        return
    node = program.tamed(node)
    build, random, rank = program.build, program.random, len(program.shape(node))
    count = int(random.integers(1, rank + 1))
    axes = sorted(random.choice(rank, count, replace=False).tolist())
    exact, bound = program.exact[node], program.bound[node]
    name = str(random.choice(["sum", "max", "min", "arg", "prod"]))
    if name == "arg":
        axis = axes[0]
        extent = program.shape(node)[axis]
        if exact and isinstance(extent, int) and extent > 0:
            which = "max" if program.chance(0.5) else "min"
            result = build.arg_reduce(which, node, axis, program.chance(0.5))
            program.keep(result, True, float(extent))
        return
    if name == "prod":
        node = program.keep(build.unary("sign", node), exact, 1.0) if exact else node
        if not exact:
            return
    whole = not program.dtype(node).is_float
    result = build.reduce(name, node, axes)
    grown = bound * max(1, program.element_count(node)) if name == "sum" else max(bound, 1.0)
    finite = name != "sum" or program.element_count(result) > 0
    if finite:
        program.keep(result, exact and (whole or name in ("max", "min", "prod")), grown)
    if program.chance(0.6):
        wide = build.broadcast(result, program.shape(node))
        program.keep(wide, program.exact.get(result, False), grown)


def pooled(program: RandomProgram) -> None:
    def fits(v: int) -> bool:
        static = all(isinstance(n, int) and n > 0 for n in program.shape(v)[1:])
        return len(program.shape(v)) in (3, 4) and static and program.dtype(v) is not DType.BOOL

    node = program.pick(fits)
    if node is None:
        return
    node = program.tamed(node)
    random, shape = program.random, program.shape(node)
    name = str(random.choice(["max", "sum", "min"]))
    axis = int(random.integers(1, len(shape)))
    sizes, strides = [1] * len(shape), [1] * len(shape)
    lo, hi = [0] * len(shape), [0] * len(shape)
    for position in (axis, 1):
        sizes[position] = int(random.integers(1, 4))
        strides[position] = int(random.integers(1, 3))
        lo[position], hi[position] = int(random.integers(0, 2)), int(random.integers(0, 3))
    dtype = program.dtype(node)
    window = program.build.window(dtype, sizes, strides, None, lo, hi, fill=1)
    if any(
        isinstance(n, int) and n + a + b < k
        for n, k, a, b in zip(shape, sizes, lo, hi, strict=True)
    ):
        return
    exact = program.exact[node] and (name != "sum" or not dtype.is_float)
    program.keep(program.build.pool(name, node, window), exact, 9 * max(1.0, program.bound[node]))


def multiplied(program: RandomProgram) -> None:
    node = program.pick(lambda v: len(program.shape(v)) >= 2 and program.dtype(v) is not DType.BOOL)
    if node is None:
        return
    node = program.tamed(node)
    shape, dtype, random = program.shape(node), program.dtype(node), program.random
    columns = int(random.choice([0, 1, 3, 8, 17, 70]))
    right_shape = (*shape[:-2], shape[-1], columns)
    static = tuple(n for n in right_shape if isinstance(n, int))
    if program.chance(0.6) and len(static) == len(right_shape):
        right = program.new_constant(dtype, static)
    else:
        right = program.new_input(dtype, right_shape)
    inner = evaluate(shape[-1], program.sizes)
    result = program.build.matmul(node, right)
    program.keep(result, program.exact[node] and not dtype.is_float, 9.0 * LIMIT * max(1, inner))


def convolved(program: RandomProgram) -> None:
    def fits(v: int) -> bool:
        static = all(isinstance(n, int) for n in program.shape(v)[1:])
        return 3 <= len(program.shape(v)) <= 4 and static and program.dtype(v).is_float

    node = program.pick(fits)
    if node is None:
        return
    node = program.tamed(node)
    random, build = program.random, program.build
    shape, dtype = program.shape(node), program.dtype(node)
    channels = evaluate(shape[-1], {})
    groups = [g for g in (1, 2, 3, 4, channels) if g and channels % g == 0] or [1]
    count = int(random.choice(groups))
    spatial = len(shape) - 2
    kernel = [int(random.integers(1, 4)) for _ in range(spatial)]
    lo = [int(random.integers(0, 3)) for _ in range(spatial)]
    hi = [int(random.integers(0, 3)) for _ in range(spatial)]
    for k, n, a, b in zip(kernel, shape[1:-1], lo, hi, strict=True):
        if evaluate(n, {}) + a + b < k:
            return
    out = count * int(random.choice([1, 2, 9, 33]))
    weight = build.constant(program.data(dtype, (*kernel, channels // count, out), False), dtype)
    window = build.window(
        dtype, kernel, [int(random.integers(1, 3)) for _ in kernel], None, lo, hi,
        fill=float(random.choice([0.0, 0.0, 1.0])),
    )  # fmt: skip
    result = build.conv(node, weight, window, count)
    if program.element_count(result) <= 50_000:
        size = float(np.prod(kernel)) * max(1, channels)
        program.keep(result, False, LIMIT * 9 * size)


def looked_up(program: RandomProgram) -> None:
    node = program.pick(lambda v: len(program.shape(v)) > 0)
    if node is None:
        return
    random, shape = program.random, program.shape(node)
    axis = int(random.integers(len(shape)))
    extent = shape[axis]
    if isinstance(extent, SymbolicDim) or extent == 0:
        return
    where = tuple(int(n) for n in random.choice([1, 2, 5], int(random.integers(0, 3))))
    indices = random.integers(-extent, extent, where)
    if program.chance(0.5):
        at = program.build.constant(np.asarray(indices, np.int64))
    else:
        name = f"x{len(program.arguments)}"
        at = program.build.input(name, DType.I64, where)
        program.arguments[name] = np.asarray(indices, np.int64)
    result = program.build.gather(node, at, axis)
    program.keep(result, program.exact[node], program.bound[node])


def ramp(program: RandomProgram) -> None:
    shape = tuple(program.dim() for _ in range(int(program.random.integers(1, 4))))
    dtype = DType.I64 if program.chance(0.6) else DType.F32
    axis = int(program.random.integers(len(shape)))
    program.keep(program.build.iota(shape, axis, dtype), True, 20.0)
    if program.sizes:
        program.keep(program.build.extent(symbol("n") * 2 + 1), True, 20.0)


STEPS: tuple[tuple[Step, float], ...] = (
    (elementwise, 8), (logic, 1), (convert, 1), (move, 8), (combine, 2), (pooled, 1),
    (multiplied, 1), (convolved, 1.5), (looked_up, 0.6), (ramp, 0.3),
)  # fmt: skip


def random_program(seed: int) -> tuple[Program, dict[str, Array], dict[str, bool]]:
    """A program of 10 to 60 ops, arguments for it, and for each output whether it is exact."""
    random = np.random.default_rng(seed)
    sizes = {"n": int(random.choice([1, 2, 3, 5]))} if random.random() < 0.3 else {}
    program = RandomProgram(random, sizes)
    goal = int(random.integers(10, 61))
    program.new_input(DType.F32, (2, 5, 7, 4))
    program.new_input()
    if sizes:
        program.new_input(DType.F32, (symbol("n"), 3, 4))
    weights = np.array([weight for _, weight in STEPS])
    for _ in range(10 * goal):
        if len(program.build.nodes) >= goal:
            break
        step = int(random.choice(len(STEPS), p=weights / weights.sum()))
        STEPS[step][0](program)
    read = {operand for node in program.build.nodes for operand in node.operands}
    ends = [v for v in dict.fromkeys(program.values) if v not in read]
    ends = [v for v in ends if program.build.nodes[v].op.name != "input"] or program.values[-1:]
    outputs = {f"y{k}": v for k, v in enumerate(ends)}
    exact = {name: program.exact[v] for name, v in outputs.items()}
    return program.build.program(outputs), program.arguments, exact


def compare(expected: Array, got: Array, exact: bool) -> str | None:
    """What differs, or None: bits for exact values, else 1e-4 of the largest finite magnitude.

    Where all are below _LEAST, they are what is left of values that cancel.
    """
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
    step = {"float16": 2e-2, "bfloat16": 2e-1}.get(expected.dtype.name, 1e-4)
    scale = max(magnitude([expected]), _LEAST)
    same = agreement(expected, got, None if exact else step * scale)
    at = first_difference(same)
    if at is None:
        return None
    return f"element {at}: {got[at]!r} instead of {expected[at]!r} ({int((~same).sum())} differ)"
