"""Facts and expressions as Python functions of sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from satura.backend.sizes.size import Call, Fact
from satura.rewrite.types.dims import Atom, Dim, Quotient, SymbolicDim

Sizes = Mapping[str, int]


def facts_function(facts: Sequence[Fact], calls: Mapping[str, Call]) -> Callable[[Sizes], int]:
    """A function that gives the number of the first fact that does not hold, or -1."""
    text = _Text(calls)
    for number, fact in enumerate(facts):
        value = text.of(fact.dim)
        differs = f"{value} {fact.relation.value} 0"
        text.lines.append(f"if {f'not {differs}' if fact.holds else differs}: return {number}")
    return cast(Callable[[Sizes], int], text.function("-1"))


def values_function(
    dims: Iterable[Dim], calls: Mapping[str, Call]
) -> Callable[[Sizes], tuple[int, ...]]:
    """A function that gives the values of `dims`, for sizes for which the facts hold."""
    text = _Text(calls)
    result = f"({''.join(f'{text.of(dim)}, ' for dim in dims)})"
    return cast(Callable[[Sizes], tuple[int, ...]], text.function(result))


class _Text:
    """The body of a function of `sizes`; what occurs twice is computed once.

    A line computes only what the lines after it need: a fact comes before the division that it
    makes possible.
    """

    def __init__(self, calls: Mapping[str, Call]) -> None:
        self.calls = calls
        self.lines: list[str] = []
        self._names: dict[Atom | SymbolicDim, str] = {}
        self._globals: dict[str, object] = {}

    def of(self, dim: Dim) -> str:
        """The text of an expression that has this value."""
        if isinstance(dim, int):
            return f"{dim}"
        if dim not in self._names:
            terms = []
            for monomial, factor in dim.terms:
                factors = [self._atom(atom) for atom in monomial]
                if factor != 1 or not factors:
                    factors.append(f"{factor}" if factor >= 0 else f"({factor})")
                terms.append("*".join(factors))
            plain = len(terms) == 1 and "*" not in terms[0]
            self._names[dim] = terms[0] if plain else self._new(" + ".join(terms))
        return self._names[dim]

    def _atom(self, atom: Atom) -> str:
        if atom not in self._names:
            if isinstance(atom, Quotient):
                text = f"{self.of(atom.numerator)} // {self.of(atom.denominator)}"
            elif atom in self.calls:
                call = self.calls[atom]
                function = f"f{len(self._globals)}"
                self._globals[function] = call.function
                text = f"{function}({', '.join(map(self.of, call.arguments))})"
            else:
                text = f"sizes[{atom!r}]"
            self._names[atom] = self._new(text)
        return self._names[atom]

    def _new(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def function(self, result: str) -> object:
        """The function that ends with `result`."""
        body = "".join(f"    {line}\n" for line in [*self.lines, f"return {result}"])
        namespace = dict(self._globals)
        exec(compile(f"def evaluate(sizes):\n{body}", "<sizes>", "exec"), namespace)
        return namespace["evaluate"]
