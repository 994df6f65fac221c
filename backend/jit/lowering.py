"""From the text of a kernel straight to LLVM: one walk over its syntax tree.

A kernel is one function of loops, branches and assignments over scalars and helpers; every value's
kind follows from those before it, so that nothing has to be inferred. Names live in stack slots,
which LLVM turns into registers. A name that gets values of another kind has another slot from there
on; where the kind would depend on the way taken, the text is refused.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from llvmlite import ir

from satura.backend.helpers.kinds import Helper, Kind, boolean, int64
from satura.backend.helpers.vector import prefer_wide
from satura.backend.jit.operators import (
    Typed,
    Untranslatable,
    binary,
    compare,
    constant,
    convert,
    keep_for_vectors,
    truth,
    unary,
)

Lookup = Callable[[str], object]
"""What a name of kernel text stands for: a helper, a kind, or None."""


def translate_kernel(text: str, symbol: str, lookup: Lookup) -> ir.Module:
    """A module that exports `void symbol(i64…)` for a kernel of int64 arguments.

    Raises Untranslatable for text outside the language of kernels, also where that is no Python.
    """
    try:
        statements = ast.parse(text).body
    except SyntaxError as error:
        raise Untranslatable(str(error)) from error
    kernel = statements[0] if len(statements) == 1 else None
    if not isinstance(kernel, ast.FunctionDef):
        raise Untranslatable("a kernel is one function")
    names = [argument.arg for argument in kernel.args.args]
    module = ir.Module(symbol)
    kind = ir.FunctionType(ir.VoidType(), [int64.llvm] * len(names))
    function = ir.Function(module, kind, symbol)
    prefer_wide(function)
    _Writer(function, lookup).write(names, kernel.body)
    return module


@dataclass(frozen=True, eq=False)
class _Slot:
    """Where a name lives; the value itself of a name that is set once, before all loops."""

    kind: Kind
    place: ir.Value
    is_value: bool = False


@dataclass
class _Loop:
    """Where `continue` and `break` go, and what the body has read and set so far.

    `meant` are all slots that a name has had since the loop began. `carried` names were read before
    the body surely set them (`known`): they may come from the iteration before.
    """

    following: ir.Block
    after: ir.Block
    meant: dict[str, set[_Slot]] = field(default_factory=lambda: defaultdict(set))
    known: set[str] = field(default_factory=set)
    carried: set[str] = field(default_factory=set)


class _Writer:
    """Writes one function."""

    def __init__(self, function: ir.Function, lookup: Lookup) -> None:
        self._function = function
        self._lookup = lookup
        self._slots = ir.IRBuilder(function.append_basic_block())
        self._builder = ir.IRBuilder(function.append_basic_block())
        self._constant: set[str] = set()  # names that are set once, whatever the way
        self._bound: dict[str, _Slot] = {}
        self._known: dict[tuple[str, Kind], _Slot] = {}
        self._held: dict[_Slot, ir.Value] = {}  # what slots have, as far as this block knows
        self._block = self._builder.block
        self._loops: list[_Loop] = []

    def write(self, names: Sequence[str], body: Sequence[ast.stmt]) -> None:
        """The whole function, whose arguments have these names."""
        start = self._builder.block
        counts = Counter([*names, *_set_in(body)])
        always = (*names, *_set_in(body, is_deep=False))
        self._constant = {name for name in always if counts[name] == 1}
        for name, value in zip(names, self._function.args, strict=True):
            self._set(name, Typed(int64, value))
        self._statements(body)
        if not self._builder.block.is_terminated:
            self._builder.ret_void()
        self._slots.branch(start)

    # Names

    def _set(self, name: str, value: Typed) -> None:
        if name in self._constant:
            self._bound[name] = _Slot(value.kind, value.value, True)
            return
        slot = self._known.get((name, value.kind))
        if slot is None:
            slot = _Slot(value.kind, self._slots.alloca(value.kind.llvm, name=name))
            self._known[name, value.kind] = slot
        self._bound[name] = slot
        for loop in self._loops:
            loop.known.add(name)
            loop.meant[name].add(slot)
        self._builder.store(value.value, slot.place)
        self._values_here()[slot] = value.value

    def _get(self, name: str) -> Typed:
        slot = self._bound.get(name)
        if slot is None:
            raise Untranslatable(f"'{name}' has no value here, or values of several types")
        if slot.is_value:
            return Typed(slot.kind, slot.place)
        for loop in self._loops:
            if name not in loop.known:
                loop.carried.add(name)
        held = self._values_here()
        if slot not in held:
            held[slot] = self._builder.load(slot.place)
        return Typed(slot.kind, held[slot])

    def _values_here(self) -> dict[_Slot, ir.Value]:
        """What slots hold, of those that were read or set in the block that is written."""
        if self._block is not self._builder.block:
            self._block, self._held = self._builder.block, {}
        return self._held

    @contextmanager
    def _perhaps(self) -> Iterator[None]:
        """What is set inside may not be set afterwards."""
        known = [set(loop.known) for loop in self._loops]
        yield
        for loop, before in zip(self._loops, known, strict=True):
            loop.known = before

    def _merged(self, one: dict[str, _Slot], other: dict[str, _Slot]) -> dict[str, _Slot]:
        """Names after two ways: those of several kinds are not to be read."""
        kept = {**one, **other}
        return {n: slot for n, slot in kept.items() if one.get(n, slot) is other.get(n, slot)}

    # Statements

    def _statements(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._builder.block.is_terminated:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._set(name, self._value(value))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                held = self._get(name)
                self._set(name, binary(self._builder, op, held, self._value(value)))
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.If():
                self._if(node)
            case ast.For(target=ast.Name(id=name), orelse=[]):
                self._for(name, node)
            case ast.While(orelse=[]):
                self._while(node)
            case ast.Continue() if self._loops:
                self._builder.branch(self._loops[-1].following)
            case ast.Break() if self._loops:
                self._builder.branch(self._loops[-1].after)
            case ast.Pass():
                pass
            case _:
                raise Untranslatable(f"line {node.lineno}: {ast.unparse(node)}")

    def _if(self, node: ast.If) -> None:
        test = truth(self._builder, self._value(node.test))
        yes, no, after = (self._function.append_basic_block() for _ in range(3))
        self._builder.cbranch(test, yes, no)
        before = dict(self._bound)
        ends = [self._branch(yes, node.body, after)]
        self._bound = before
        ends.append(self._branch(no, node.orelse, after))
        self._builder.position_at_end(after)
        open_ends = [bound for bound in ends if bound is not None]
        if not open_ends:
            self._builder.unreachable()
            return
        self._bound = self._merged(open_ends[0], open_ends[-1])

    def _branch(
        self, block: ir.Block, statements: Sequence[ast.stmt], after: ir.Block
    ) -> dict[str, _Slot] | None:
        """What names mean at the end of a branch; None where it does not get to `after`."""
        self._builder.position_at_end(block)
        with self._perhaps():
            self._statements(statements)
        if self._builder.block.is_terminated:
            return None
        self._builder.branch(after)
        return dict(self._bound)

    def _for(self, name: str, node: ast.For) -> None:
        first, last, step = self._range(node.iter)
        builder = self._builder
        before = builder.block
        head, body, following, after = (self._function.append_basic_block() for _ in range(4))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(int64.llvm)
        counter.add_incoming(first, before)
        builder.cbranch(builder.icmp_signed("<", counter, last), body, after)
        builder.position_at_end(body)
        with self._loop(_Loop(following, after)):
            self._set(name, Typed(int64, counter))
            self._statements(node.body)
            if not builder.block.is_terminated:
                builder.branch(following)
        builder.position_at_end(following)
        counter.add_incoming(builder.add(counter, step, flags=("nsw",)), following)
        again = builder.branch(head)
        if isinstance(last, ir.Constant) and step.constant == 1:
            keep_for_vectors(again)
        builder.position_at_end(after)

    def _while(self, node: ast.While) -> None:
        builder = self._builder
        head, body, after = (self._function.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        with self._loop(_Loop(head, after)):
            test = truth(builder, self._value(node.test))
            builder.cbranch(test, body, after)
            builder.position_at_end(body)
            self._statements(node.body)
            if not builder.block.is_terminated:
                builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def _loop(self, loop: _Loop) -> Iterator[None]:
        """Names mean after the loop what they mean wherever it ends."""
        before = dict(self._bound)
        with self._perhaps():
            self._loops.append(loop)
            yield
            self._loops.pop()
        for name, slots in loop.meant.items():
            if name in before:
                slots.add(before[name])
            if len(slots) > 1:
                if name in loop.carried:
                    raise Untranslatable(f"'{name}' changes its type in a loop")
                self._bound.pop(name, None)

    def _range(self, node: ast.expr) -> tuple[ir.Value, ir.Value, ir.Value]:
        """First value, end and step of a `range`; the step is a positive literal."""
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[end], keywords=[]):
                bounds = [ast.Constant(0), end]
            case ast.Call(func=ast.Name(id="range"), args=[first, end], keywords=[]):
                bounds = [first, end]
            case ast.Call(
                func=ast.Name(id="range"), args=[first, end, ast.Constant(int(step))], keywords=[]
            ) if step > 0:
                bounds = [first, end, ast.Constant(step)]
            case _:
                raise Untranslatable(f"a loop over {ast.unparse(node)}")
        values = [self._as(bound, int64) for bound in bounds]
        first_value, end_value = values[:2]
        return first_value, end_value, values[2] if values[2:] else int64.llvm(1)

    # Expressions

    def _value(self, node: ast.expr) -> Typed:
        match node:
            case ast.Name(id=name):
                return self._get(name)
            case ast.Constant(value=value):
                return constant(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return constant(-value)
            case ast.BinOp(left=left, op=op, right=right):
                return binary(self._builder, op, self._value(left), self._value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return compare(self._builder, op, self._value(left), self._value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return unary(self._builder, op, self._value(operand))
            case ast.BoolOp(op=op, values=values):
                return self._chain(isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._chosen(test, body, orelse)
            case ast.Call():
                result = self._call(node)
                if result is not None:
                    return result
        raise Untranslatable(ast.unparse(node))

    def _as(self, node: ast.expr, kind: Kind) -> ir.Value:
        """The value of an integer expression, in its 64 bits."""
        given = self._value(node)
        if given.kind.is_float:
            raise Untranslatable(f"{ast.unparse(node)} is {given.kind}, not {kind}")
        return convert(self._builder, given, kind).value

    def _chain(self, is_and: bool, nodes: Sequence[ast.expr]) -> Typed:
        """`and` or `or` of bools, computed as far as needed."""
        builder = self._builder
        after = self._function.append_basic_block()
        ends: list[tuple[ir.Value, ir.Block]] = []
        with self._perhaps():
            for node in nodes:
                if ends:
                    following = self._function.append_basic_block()
                    targets = (following, after) if is_and else (after, following)
                    builder.cbranch(ends[-1][0], *targets)
                    builder.position_at_end(following)
                given = self._value(node)
                if given.kind != boolean:
                    raise Untranslatable(f"{ast.unparse(node)} is not a bool")
                ends.append((given.value, builder.block))
        builder.branch(after)
        return self._joined(boolean, after, ends)

    def _chosen(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Typed:
        """One of two values; the other is not computed."""
        builder = self._builder
        condition = truth(builder, self._value(test))
        blocks = [self._function.append_basic_block() for _ in range(2)]
        after = self._function.append_basic_block()
        builder.cbranch(condition, *blocks)
        ends = []
        kinds = set()
        for block, node in zip(blocks, (yes, no), strict=True):
            builder.position_at_end(block)
            given = self._value(node)
            kinds.add(given.kind)
            ends.append((given.value, builder.block))
            builder.branch(after)
        if len(kinds) > 1:
            raise Untranslatable(f"{ast.unparse(yes)} and {ast.unparse(no)} differ in type")
        return self._joined(kinds.pop(), after, ends)

    def _joined(
        self, kind: Kind, after: ir.Block, ends: Sequence[tuple[ir.Value, ir.Block]]
    ) -> Typed:
        self._builder.position_at_end(after)
        joined = self._builder.phi(kind.llvm)
        for value, block in ends:
            joined.add_incoming(value, block)
        return Typed(kind, joined)

    def _call(self, node: ast.Call) -> Typed | None:
        """What a helper or a kind makes of its operands; None for helpers without a result."""
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        called = self._lookup(name)
        given = [self._value(operand) for operand in node.args]
        if isinstance(called, Kind) and len(given) == 1:
            return convert(self._builder, given[0], called)
        if not isinstance(called, Helper) or called.arity != len(given) or node.keywords:
            raise Untranslatable(f"no helper {name} of {len(given)} operands")
        if called.operands is not None:
            for place, kind in enumerate(called.operands):
                if given[place].kind.is_float != kind.is_float:
                    raise Untranslatable(f"operand {place} of {name} is {given[place].kind}")
                given[place] = convert(self._builder, given[place], kind)
        kinds = tuple(kind for kind, _ in given)
        value = called.emit(self._builder, kinds, [value for _, value in given])
        return None if value is None else Typed(called.result(*kinds), value)


def _set_in(statements: Sequence[ast.stmt], is_deep: bool = True) -> Iterator[str]:
    """The names that statements set, as often as they do; with `is_deep` inside of them, too."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
                yield name
            case ast.For(target=ast.Name(id=name), body=body) if is_deep:
                yield from (name, *_set_in(body))
            case ast.If(body=body, orelse=orelse) if is_deep:
                yield from (*_set_in(body), *_set_in(orelse))
            case ast.While(body=body) if is_deep:
                yield from _set_in(body)
