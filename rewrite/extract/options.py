"""Options: the fragments of a class that others grow from.

The cheapest of each kind is kept, and of each anchor; a wide search keeps several that read
different classes. Beside the cheapest one there may be one that leaves room to grow, and a loop
that is cheaper where it runs inside rows.
"""

from __future__ import annotations

from satura.rewrite.extract.choice_graph import NOISE
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.templates import Instance

_SMALL = 12  # nodes: of smaller fragments several fit in one
_ROOMY = "leaves room"  # marks an option beside a cheaper one
_IN_ROWS = "in rows"  # as well
_EQUAL = 1 + 1e-4  # times as long: two ways to read the same
_LOOPS = (Fused.VIEW, Fused.LOOP)


class Options(dict[object, tuple[float, Instance]]):
    """Prices and fragments, by kind."""

    def keep(self, kind: object, found: Instance, price: float, width: int) -> bool:
        """Keep a fragment where it is among the best `width` of its kind, or best in one respect;
        whether that is a change."""
        key = kind if width == 1 else (kind, found.leaves)
        before = self.get(key)
        if width == 1:
            is_new = self._keep_best(kind, found, price)
        else:
            is_new = self._keep_wide(kind, found, price, width)
        if found.template.form in _LOOPS:
            for each in ((price, found), before):
                if each is not None and self._keep_for_rows(key, each[1], each[0]):
                    is_new = True
        return is_new

    def _keep_best(self, kind: object, found: Instance, price: float) -> bool:
        """Keep a fragment where it is the cheapest of its kind, or leaves room beside that; whether
        that is a change."""
        held = self.get(kind)
        if held is not None and price >= held[0] * (1 - NOISE):
            return self._keep_small(kind, found, price)
        is_rival = kind is found.anchor and found.template.inner is not None
        if is_rival and self._is_outdone(found, price):
            return False
        self[kind] = (price, found)
        small = self.pop((kind, _ROOMY), None)
        for other in (small, held):
            if other is not None and other[1] is not found:
                self._keep_small(kind, other[1], other[0])
        return held is None or held[1] is not found

    def _keep_small(self, kind: object, found: Instance, price: float) -> bool:
        """Keep a fragment beside a cheaper one that leaves far less room to grow; whether that is a
        change."""
        size = len(self[kind][1].template.computed)
        if size <= _SMALL or len(found.template.computed) > size // 2:
            return False
        key = kind, _ROOMY
        held = self.get(key)
        if held is not None and price >= held[0] * (1 - NOISE):
            return False
        self[key] = (price, found)
        return held is None or held[1] is not found

    def _keep_for_rows(self, key: object, found: Instance, price: float) -> bool:
        """Keep a loop beside a cheaper one where it is cheaper inside rows, or beside an anchor;
        whether that is a change."""
        cheapest = self.get(key)
        if cheapest is None:
            return False
        inside = _IN_ROWS, key
        held = self.get(inside)
        for other, rival in filter(None, (cheapest, held)):
            longer = rival.template.longer_in_rows
            if price + found.template.longer_in_rows >= (other + longer) * (1 - NOISE):
                return False
        self[inside] = (price, found)
        return True

    def _is_outdone(self, found: Instance, price: float) -> bool:
        """Whether another contraction or window of a class costs no more, alone and with all below
        it; those that this one outdoes so are dropped. Of equal ones the one that sees more stays.
        """
        template = found.template
        for key, (other, rival) in list(self.items()):
            if rival.template.inner != template.inner or key is not rival.anchor:
                continue
            outdoes = price <= other * _EQUAL and found.seconds <= rival.seconds * _EQUAL
            outdone = other <= price * _EQUAL and rival.seconds <= found.seconds * _EQUAL
            if outdoes and outdone:
                outdone = len(template.computed) <= len(rival.template.computed)
            if outdone and rival is not found:
                return True
            if outdoes:
                del self[key]
        return False

    def _keep_wide(self, kind: object, found: Instance, price: float, width: int) -> bool:
        """Keep a fragment among the `width` best of its kind that read different classes, unless
        one does as well with fewer; whether that is a change."""
        key = kind, found.leaves
        held = self.get(key)
        if held is not None and price >= held[0] * (1 - NOISE):
            return False
        rivals = [each for each in self if isinstance(each, tuple) and each[0] == kind]
        others = [each for each in rivals if each != key]
        if any(_does_as_well(self[each][1], found) for each in others):
            return False
        for each in others:
            if _does_as_well(found, self[each][1]):
                del self[each]
                rivals.remove(each)
        if held is None and len(rivals) >= width:
            dearest = max(rivals, key=lambda each: self[each][0])
            if price >= self[dearest][0] * (1 - NOISE):
                return False
            del self[dearest]
        self[key] = (price, found)
        return held is None or held[1] is not found


def _does_as_well(first: Instance, second: Instance) -> bool:
    """Whether one fragment reads no class that another one does not, and takes no longer, in a loop
    or inside rows."""
    if first.leaves & ~second.leaves:
        return False
    alone, other = (each.template.prices.inlined + each.given for each in (first, second))
    longer = first.template.longer_in_rows - second.template.longer_in_rows
    return alone <= other and alone + longer <= other
