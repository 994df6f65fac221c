"""Fragments: the fused dispatches that could compute an e-class.

A *fragment* is a tree of e-nodes that run in one dispatch; its leaves are e-classes that are read
from memory. `combine.py` grows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import partial

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.cost import CostModel, asked_seconds, checked_seconds, copy_seconds
from satura.rewrite.extract.features import NEAR_BYTES, UNIT_BYTES, Amount, Features
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.shares import NOTHING, CutAmount
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.index_map import Index

# By a name of its own: to read a member of an enum takes Python 3.11 a call.
_VIEW = Fused.VIEW


@dataclass(frozen=True, eq=False)
class Anchor:
    """Stands for one contraction, window or first reduction: fragments that share it are one.

    `work` is what it does, and `units` how many parts of it threads can share. Elements that are
    neighbours along the axis `inner` of its result, counted from the last, are stored side by side.
    """

    cls: int
    work: tuple[Amount, ...] = ()
    units: float = 1.0
    inner: int = -1


@dataclass(frozen=True, eq=False)
class Fragment:
    """E-node `node` of class `cls`, computed together with its parts; None is a leaf.

    A class is either read or computed in a fragment, never both. `reads` are bytes read per leaf,
    `work` what is computed per class, the anchor's apart; `copied` are the sizes of what a
    PLACEMENT has to copy. `axes` and `full` describe a ROW's reductions; `reduced` says on which
    side of them the result is. `stored` is the index of the result in the anchor's variables, or in
    those of the tensor that a LOOP moves, once a layout op was passed (identity before). A `closed`
    fragment takes no further work.
    """

    cls: int
    node: ENode
    parts: tuple[Fragment | None, ...]
    form: Fused
    reads: dict[int, float]
    work: Mapping[int, Amount]
    copied: tuple[float, ...] = ()
    anchor: Anchor | None = None
    axes: tuple[int, ...] = ()
    full: tuple[Dim, ...] = ()
    reduced: bool = False
    stored: Index | None = None
    closed: bool = False

    def seconds(self, classes: EClasses, model: CostModel) -> float:
        """Cost of running this fragment as a dispatch that stores its class."""
        if self.form is Fused.PLACEMENT:
            return model.constant + sum(copy_seconds(model, "", each) for each in self.copied)
        seconds = asked_seconds(model, model.seconds, self.features(classes), what=self._described)
        return self._settled(seconds, model)

    def _settled(self, seconds: float, model: CostModel) -> float:
        """What a dispatch costs beside equal ones, which takes so many seconds."""
        # Of two equal dispatches the one that stores an earlier tensor can serve more readers; and
        # one that computes is better than one that copies.
        return seconds + model.constant * (len(self.work) + 10 * (self.form is _VIEW))

    def prices(self, classes: EClasses, model: CostModel) -> tuple[float, float, float]:
        """Its cost as a dispatch; that of its reads and its work, one after the other, in a
        fragment that goes on; and that of its work alone."""
        done, near, far, constants, units = self._inside(classes)
        if type(model) is CostModel and self.form is not Fused.HOST:
            work, read = model.working(done), model.moving(near, far, constants)
            # What `seconds` says, without adding up the work again.
            size = classes.bytes[self.cls]
            first = size if size < NEAR_BYTES else NEAR_BYTES
            both = work + model.rates["scattered"] * size if self._is_scattered else work
            memory = model.moving(near + first, far + (size - first), constants)
            memory += size * model.rates["stored"]
            streamed = constants * model.rates["constant"]
            seconds = model.together(both, memory, streamed, units)
            seconds = checked_seconds(model, seconds, self._described)
        else:  # each of them may be a user's
            ask = partial(asked_seconds, model, what=self._described)
            seconds = ask(model.seconds, self.features(classes))
            work = ask(model.working, done)
            read = ask(model.moving, near, far, constants)
        inlined = read + work + len(self.work) * model.constant
        return self._settled(seconds, model), inlined, work

    def longer_in_rows(self, model: CostModel) -> float:
        """Seconds that a loop takes longer inside a row, or beside an anchor, than on its own."""
        if self.anchor is not None:
            return 0.0
        work = self.work.values()
        if not any(_one_by_one(amount) is not amount for amount in work):
            return 0.0
        ask = partial(asked_seconds, model, model.working, what=self._described)
        return max(0.0, ask([_one_by_one(amount) for amount in work]) - ask(list(work)))

    def features(self, classes: EClasses) -> Features:
        """What this fragment does as a dispatch, which stores its class."""
        work, near, far, constants, units = self._inside(classes)
        size, dtype = classes.bytes[self.cls], classes.types[self.cls].dtype.value
        if self._is_scattered:
            work.append(("scattered", size))
        first = min(size, NEAR_BYTES)
        near, far = near + first, far + (size - first)
        return Features(self.form.value, dtype, work, near, far, constants, units, size)

    @property
    def _is_scattered(self) -> bool:
        """Whether its anchor stores neighbours apart, in the layout that it makes."""
        return self.anchor is not None and self.stored is None and self.anchor.inner != -1

    def _inside(self, classes: EClasses) -> tuple[list[Amount], float, float, float, float]:
        """What it does in a larger fragment, which does not store its class: its work, the bytes
        that it reads, near, far and of constants, and into how many parts it falls."""
        near = far = constants = 0.0
        known = classes.known
        for leaf, amount in self.reads.items():
            if known[leaf]:
                constants += amount
            elif amount > NEAR_BYTES:
                near += NEAR_BYTES
                far += amount - NEAR_BYTES
            else:
                near += amount
        work = [amount for amount in self.work.values() if amount[1]]
        units = classes.bytes[self.cls] / UNIT_BYTES
        if self.anchor is not None:
            work += self.anchor.work
            units = self.anchor.units
            work = [_one_by_one(amount) for amount in work]
        return work, near, far, constants, max(1.0, units)

    def _described(self) -> str:
        """What it computes, as messages name it."""
        found, stack = {}, [self]
        while stack:
            each = stack.pop()
            found[each.cls] = each.node.op
            stack += [part for part in each.parts if part is not None and part.cls not in found]
        return f"{self.form.value} of {', '.join(reversed(found.values()))}"

    @property
    def computed(self) -> Set[int]:
        """The classes that are computed here: its own and those of its parts."""
        return self.work.keys()

    @property
    def size(self) -> int:
        """How many classes are computed here."""
        return len(self.work)

    def but(self, **changes: object) -> Fragment:
        """This fragment with some fields changed, not its parts: `dataclasses.replace` at a tenth
        of its time, which was a quarter of extraction."""
        changed = object.__new__(Fragment)
        changed.__dict__.update(self.__dict__, **changes)
        return changed


def _one_by_one(amount: Amount) -> Amount:
    """What plain loops do as a whole, where it is done element by element."""
    if isinstance(amount, CutAmount) and amount.elements:
        return "masked", amount.elements
    return ("scattered", amount[1]) if amount[0] == "turned" else amount


def placement(classes: EClasses, cls: int, node: ENode) -> Fragment:
    """The concat `node` as a buffer that its operands' producers write into."""
    homes = {*classes.inputs, *(output for _, output in classes.outputs)}
    copied = []
    for operand in node.operands:
        if classes.known[operand] or operand in homes:
            copied.append(classes.bytes[operand])
        homes.add(operand)  # a tensor that is both parts lies in one of them
    reads = dict.fromkeys(node.operands, 0.0)
    return Fragment(
        cls, node, (None, None), Fused.PLACEMENT, reads, {cls: NOTHING}, tuple(copied), closed=True
    )
