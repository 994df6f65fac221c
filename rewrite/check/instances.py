"""Instances of a law's left side: types and attributes drawn so that the pattern is well typed."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import cast

from satura.rewrite.check.named_values import (
    high_ranks,
    named_functions,
    named_numbers,
    near_extents,
)
from satura.rewrite.check.operands import MANY_CHANNELS
from satura.rewrite.check.user_ops import draw_operands
from satura.rewrite.errors import RuleError
from satura.rewrite.language.called import failed_function
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import AttributeVariable, Literal
from satura.rewrite.language.terms import (
    Application,
    Approximate,
    Known,
    ScalarTerm,
    Tensor,
    Term,
    build_term,
    subterms,
    term_variables,
    type_of,
)
from satura.rewrite.language.type_check import ANY_DTYPE, ANY_RANK, PossibleTypes
from satura.rewrite.ops import Kind, Op
from satura.rewrite.ops.draw import (
    Draw,
    DrawError,
    Given,
    is_concrete,
    reject_unless,
)
from satura.rewrite.program.program import Program, ProgramBuilder
from satura.rewrite.types.attributes import (
    Attribute,
    Padding,
    Parameter,
    Refuse,
    Shape,
    Slices,
    UnaryFn,
    Window,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, symbols_of
from satura.rewrite.types.tensor_type import COMPUTED, DType, TensorType
from satura.rewrite.types.typical import representative

ROOT_STAYS = 0.4
ATTRIBUTE_STAYS = 0.8
OTHER_DTYPE = 0.2
MANY_GROUPS_DRAWS = 0.08  # of convolutions
SHAPED = (Shape, Slices, Constant)  # attributes that seldom suit other extents


@dataclass(frozen=True)
class Instance:
    """A match of one direction's left side: a type per tensor and a value per attribute.

    `seed` and `wish` draw it again, unless it was changed after that.
    """

    direction: Direction
    values: tuple[tuple[str, TensorType | Attribute], ...]
    seed: int
    wish: Wish | None = field(default=None, repr=False, compare=False)

    @cached_property
    def bindings(self) -> dict[str, object]:
        return dict(self.values)

    @cached_property
    def types(self) -> dict[str, TensorType]:
        return {name: type_ for name, type_ in self.values if isinstance(type_, TensorType)}

    @cached_property
    def left_side(self) -> Program:
        """The program whose output `left` is the left side."""
        builder = ProgramBuilder()
        return builder.program({"left": self.add_left(builder, self.add_variables(builder, {}))})

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols of all types, and of shapes that are no tensor's."""
        types = (node.type.symbols for node in self.left_side.nodes)
        shapes = (symbols_of(value.dims) for _, value in self.values if isinstance(value, Shape))
        return frozenset[str]().union(*types, *shapes)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.values)

    @property
    def weight(self) -> float:
        """The size of this instance as a counterexample; an extent of 0 counts more than 1, and
        what is padded as much as what is there. Shapes count where there are no tensors."""
        shapes = [type_.shape for type_ in self.types.values()]
        shapes = shapes or [value.dims for _, value in self.values if isinstance(value, Shape)]
        return sum(
            3.0 + len(shape) + sum(representative(dim, 9) or 1.5 for dim in shape)
            for shape in shapes
        ) + sum(
            abs(representative(dim, 9))
            for _, value in self.values
            if isinstance(value, Padding)
            for dim in (*value.lo, *value.hi)
        )

    def add_variables(
        self, builder: ProgramBuilder, constants: dict[str, Constant], prefix: str = ""
    ) -> dict[str, int]:
        """Add a node per tensor variable: the constant of that name, else an input."""
        return {
            name: builder.add("constant", (), constants[name])
            if name in constants
            else builder.add("input", (), Parameter(prefix + name, type_))
            for name, type_ in self.types.items()
        }

    def with_facts(self, builder: ProgramBuilder, tensors: dict[str, int]) -> dict[str, int]:
        """The tensors, where those of rounded numbers are results of exp, as an e-graph knows."""
        variables = self.direction.variables
        return {
            name: builder.add("unary", (node,), UnaryFn("exp"))
            if issubclass(variables[name], Approximate)
            else node
            for name, node in tensors.items()
        }

    def add_left(self, builder: ProgramBuilder, tensors: dict[str, int]) -> int:
        return build_term(self.direction.left, builder, tensors, self.bindings)

    def add_right(self, builder: ProgramBuilder, tensors: dict[str, int]) -> int:
        return build_term(self.direction.right, builder, tensors, self.bindings)


@dataclass(frozen=True)
class Wish:
    """What a draw keeps to: the rank of the whole left side, extents, dtypes to choose from.

    `named` prefers functions that the rule names, `reverses` reshapes to reversed extents and
    slices from the end, `near` are extents of windows to draw, too, and `starts` where slices
    begin. Attributes `given` are not drawn, nor is the type `root`.
    """

    rank: int | None = None
    extents: tuple[Dim, ...] = ()
    dtypes: tuple[DType, ...] = ()
    named: bool = False
    reverses: bool = False
    near: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    given: tuple[tuple[str, Attribute], ...] = ()
    root: TensorType | None = None


NO_WISH = Wish()  # ranks from 0 to 4


def like(instance: Instance, random: Random, extents: tuple[Dim, ...] = ()) -> Wish:
    """A wish that keeps the rank, most attributes and often the dtypes of `instance`.

    The shape of its left side stays now and then, where no `extents` are to be drawn.
    """
    root = type_of(instance.direction.left, instance.bindings)
    dtypes = (root.dtype, *(type_.dtype for type_ in instance.types.values()))
    if random.random() < OTHER_DTYPE:
        root = root.with_dtype(random.choice(COMPUTED))
        dtypes = (root.dtype,)
    stays = not extents and random.random() < ROOT_STAYS
    given = tuple(
        (name, value)
        for name, value in instance.values
        if not isinstance(value, TensorType)
        and random.random() < (ATTRIBUTE_STAYS if stays or not _is_seldom_kept(value) else 0.2)
    )
    return Wish(
        root.rank,
        extents,
        tuple(each for each in dict.fromkeys(dtypes) if not each.is_narrow),
        given=given,
        root=root if stays else None,
    )


def _is_seldom_kept(value: Attribute) -> bool:
    """Whether other extents seldom suit it, or it does nothing."""
    return isinstance(value, SHAPED) or (isinstance(value, Padding) and value.is_zero)


def is_well_typed(instance: Instance) -> bool:
    """Whether the left side has a type."""
    try:
        type_of(instance.direction.left, instance.bindings)
    except Exception as error:
        if is_of_misfit(error):
            return False
        raise
    return True


def is_trivial(instance: Instance) -> bool:
    """Whether it has windows and none of them has axes, or paddings and none of them pads: these
    meet most conditions, and say little."""
    windows = [value.rank for _, value in instance.values if isinstance(value, Window)]
    paddings = [not value.is_zero for _, value in instance.values if isinstance(value, Padding)]
    return any(sizes and not any(sizes) for sizes in (windows, paddings))


def is_of_misfit(error: Exception) -> bool:
    """Whether a left side has no type for what was drawn: an op refuses it, or an attribute
    function, or one of these raises something else, as it may for what would not match."""
    return isinstance(error, DrawError | Refuse) or bool(failed_function(error))


def fires(instance: Instance) -> bool:
    """Whether the conditions hold, and nothing refuses; also where a computation fails."""
    try:
        instance.direction.compute(instance.bindings)
    except Refuse:
        return False
    except (RuleError, TypeError):
        return True
    return True


def draw_instance(direction: Direction, random: Random, wish: Wish = NO_WISH) -> Instance | None:
    """A random well-typed match of the left side; None where the draw gives none."""
    seed = random.getrandbits(48)
    return draw_from(direction, Random(seed), seed, wish)


def draw_from(
    direction: Direction, source: Random, seed: int, wish: Wish = NO_WISH
) -> Instance | None:
    """The match that the numbers of `source` give; None where they give none."""
    symbolic = source.random() >= 0.7
    draw = Draw(source, extents=wish.extents) if wish.extents else Draw(source, symbolic)
    possible = _possible_for(direction)
    draw.named = possible.numbers
    draw.near = wish.near if wish.extents else possible.extents
    draw.dtypes = wish.dtypes or draw.dtypes
    draw.functions = possible.functions if wish.named else frozenset()
    draw.reverses = wish.reverses
    draw.starts = wish.starts
    pattern = _Pattern(draw, possible, dict(wish.given))
    try:
        pattern.bind(direction.left, wish.root or _root_type(possible, draw, wish.rank))
        instance = Instance(
            direction,
            tuple(
                (name, cast(TensorType | Attribute, pattern.values[name]))
                for name in direction.variables
            ),
            seed,
            wish,
        )
        type_of(direction.left, instance.bindings)
    except Exception as error:
        if is_of_misfit(error):
            return None
        raise
    return instance


def ops_of(direction: Direction) -> Set[str]:
    """The names of the ops of the left side."""
    return _possible_for(direction).names


def high_ranks_of(direction: Direction) -> tuple[int, ...]:
    """The ranks that most draws leave out and the rule may be about."""
    return _possible_for(direction).high_ranks


def dtypes_of(direction: Direction, part: Term) -> frozenset[DType]:
    """The dtypes that a part of the left side can have."""
    return _possible_for(direction).dtypes[id(part)]


def can_be_narrow(direction: Direction) -> bool:
    """Whether a part of the left side can have a dtype that nothing computes with."""
    dtypes = _possible_for(direction).dtypes.values()
    return any(dtype.is_narrow for part in dtypes for dtype in part)


class _Possible:
    """The dtypes and ranks that the parts of a left side can have, and the numbers of its rule."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.numbers = named_numbers(direction)
        self.extents = near_extents(self.numbers)
        self.high_ranks = high_ranks(self.numbers)
        self.functions = named_functions(direction)
        self.left = left = direction.left
        terms = list(subterms(left))
        self.names = {term.op.name for term in terms if isinstance(term, Application)}
        self.variables = {id(term): frozenset(term_variables(term)) for term in terms}
        types = PossibleTypes()
        dtypes, self.ranks = types.of(left, ANY_DTYPE, ANY_RANK)
        self.dtypes = {id(term): types.dtype(term, ANY_DTYPE) for term in terms}
        self.dtypes[id(left)] &= dtypes

    def operands(self, term: Application) -> frozenset[DType]:
        """The dtypes that the first operand of `term` can have."""
        return self.dtypes[id(term.operands[0])] if term.operands else ANY_DTYPE


_POSSIBLE: dict[int, _Possible] = {}  # of the sides looked at last: one is drawn many times


def _possible_for(direction: Direction) -> _Possible:
    found = _POSSIBLE.get(id(direction))
    if found is None or found.direction is not direction:
        if len(_POSSIBLE) > 100:
            _POSSIBLE.clear()
        found = _POSSIBLE[id(direction)] = _Possible(direction)
    return found


def _root_type(possible: _Possible, draw: Draw, wanted: int | None) -> TensorType:
    """A type that the left side can have, of rank `wanted` where one is given."""
    names, left = possible.names, possible.left
    dtypes = possible.dtypes[id(left)]
    indices = names & {"arg_reduce", "extent"} and DType.I64 in dtypes
    dtype = DType.I64 if indices else draw.dtype(dtypes)
    scalars = all(isinstance(operand, ScalarTerm) for operand in left.operands)
    rank = draw.one_of((2, 3, 4)) if names & {"matmul", "conv"} else None
    if possible.ranks != ANY_RANK:
        rank = draw.one_of(sorted(possible.ranks))
    elif (scalars and left.operands) or left.op.name == "extent":
        rank = 0
    reject_unless(wanted is None or wanted in possible.ranks)
    shape = draw.shape(rank if wanted is None else wanted)
    if "reduce" in names:  # axes of extent 1 may be reduced ones: often several
        shape = tuple(1 if draw.chance(0.5) else dim for dim in shape)
    if "conv" in names and draw.chance(MANY_GROUPS_DRAWS):
        shape = (*shape[:-1], draw.one_of(MANY_CHANNELS))
    return TensorType(dtype, shape)


class _Pattern:
    """A left side whose variables are bound one after the other, from the root down."""

    def __init__(self, draw: Draw, possible: _Possible, given: Mapping[str, Attribute]) -> None:
        self.draw = draw
        self.possible = possible
        self.values: dict[str, object] = {**given}

    def bind(self, term: Term, wanted: TensorType) -> None:
        """Draw what is still open in `term` so that it has the type `wanted`."""
        if isinstance(term, Tensor):
            reject_unless(not isinstance(term, Known) or is_concrete(wanted.shape))
            reject_unless(self.values.setdefault(term.name, wanted) == wanted)
        elif isinstance(term, ScalarTerm):
            reject_unless(wanted.rank == 0)
            if isinstance(term.value, AttributeVariable):
                name = term.value.name
                if name not in self.values:
                    self.values[name] = self.draw.scalar(wanted.dtype)
                reject_unless(cast(Scalar, self.values[name]).dtype is wanted.dtype)
        elif isinstance(term, Application):
            self._bind_application(term, wanted)

    def _bind_application(self, term: Application, wanted: TensorType) -> None:
        known = tuple(self._decided_type(operand, wanted, term.op) for operand in term.operands)
        self.draw.taken = self._taken(term)
        types, attributes = draw_operands(
            term.op, self.draw, wanted, self._decided_attributes(term), known
        )
        for expression, value in zip(term.attributes, attributes, strict=True):
            if isinstance(expression, AttributeVariable):
                reject_unless(self.values.setdefault(expression.name, value) == value)
        for operand, type_ in zip(term.operands, types, strict=True):
            self.bind(operand, type_)

    def _taken(self, term: Application) -> frozenset[DType]:
        """The dtypes that the first operand can have: one where it is a cast to that."""
        first = term.operands[0] if term.operands else None
        if isinstance(first, Application) and first.op.name == "cast":
            (dtype,) = self._decided_attributes(first)
            if dtype is not None:
                return frozenset({cast(DType, dtype)})
        return self.possible.operands(term)

    def _decided_type(self, operand: Term, wanted: TensorType, op: Op) -> TensorType | None:
        """The operand's type where it is decided already: it is bound, or made of a scalar."""
        if isinstance(operand, Tensor):
            return cast(TensorType | None, self.values.get(operand.name))
        if isinstance(operand, ScalarTerm):  # of another dtype than the result, maybe
            return None if op.kind is Kind.ELEMENTWISE else wanted.with_shape(())
        assert isinstance(operand, Application)
        if self.possible.variables[id(operand)] <= self.values.keys():
            return type_of(operand, self.values)
        of_scalar = operand.op.name == "reshape" and isinstance(operand.operands[0], ScalarTerm)
        return wanted.with_shape((1,) * wanted.rank) if of_scalar else None

    def _decided_attributes(self, term: Application) -> Given:
        given: list[Attribute | None] = []
        for expression in term.attributes:
            if isinstance(expression, AttributeVariable):
                given.append(cast(Attribute | None, self.values.get(expression.name)))
            elif isinstance(expression, Literal):
                given.append(cast(Attribute, expression.value))
            else:
                given.append(None)
        return tuple(given)
