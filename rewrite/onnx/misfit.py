"""What a type error of the builder means to the user: a broken model, or sizes that are open."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, product

from satura.rewrite.errors import ModelError, ProgramError, SaturaError, UnsupportedError
from satura.rewrite.onnx.lower.refused import NumbersDifferError, Refused, Refusing
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Parameter, concrete_attribute
from satura.rewrite.types.tensor_type import TensorType, open_sizes

_HINT = "; it may depend on symbolic sizes: give equal axes equal names, or fix them"
_SIZES = (1, 2, 3, 4, 8, 16)
_MOST_TRIED = 300  # combinations of sizes


def misfit(place: str, error: ProgramError, build: Refusing, operands: list[int]) -> SaturaError:
    """The error of the node at `place`, whose `operands` an op does not take."""
    is_open = bool(open_sizes(build.type(each) for each in operands))
    refused = build.refused
    if isinstance(error, NumbersDifferError):
        is_open = False
    elif is_open and refused is not None and refused.error is error:
        is_open = _may_fit(refused, build)
    return (
        UnsupportedError(f"{place}: {error}{_HINT}") if is_open else ModelError(f"{place}: {error}")
    )


def _may_fit(refused: Refused, build: Refusing) -> bool:
    """Whether the op takes its operands at some sizes, as far as few of them tell."""
    types = [build.type(each) for each in refused.operands]
    symbols = sorted(open_sizes(types))
    fixed = {dim for type_ in types for dim in type_.shape if isinstance(dim, int)}
    tried = product(sorted({*_SIZES, *fixed}), repeat=len(symbols))
    return any(
        _fits(refused, types, dict(zip(symbols, sizes, strict=True)))
        for sizes in islice(tried, _MOST_TRIED)
    )


def _fits(refused: Refused, types: list[TensorType], sizes: Mapping[str, int]) -> bool:
    builder = Builder()
    try:
        operands = [
            builder.add("input", (), Parameter(str(at), type_.concrete(sizes)))
            for at, type_ in enumerate(types)
        ]
        attributes = [concrete_attribute(each, sizes) for each in refused.attributes]
        builder.add(refused.op, operands, *attributes)
    except ProgramError:
        return False
    except (ArithmeticError, LookupError, ValueError):
        return True  # sizes that nothing gives here
    return True
