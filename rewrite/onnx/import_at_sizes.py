"""Imports at sizes for which a model has a program: open ones, equal ones, or the usual numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

from onnx import ModelProto

from satura.rewrite.errors import ModelError, SaturaError, UnsupportedError, advice
from satura.rewrite.onnx.asked import Asked
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.defaults import without_defaults
from satura.rewrite.onnx.files import ModelApart, read_apart
from satura.rewrite.onnx.importer import Importer
from satura.rewrite.onnx.inlined import inlined
from satura.rewrite.onnx.inner_graphs import check_bodies
from satura.rewrite.onnx.inputs import declared_inputs, stated_extents
from satura.rewrite.onnx.lower.tensors import SameSize, Tensors
from satura.rewrite.onnx.upgrade import upgrade
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import substitute
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import Array, open_sizes

_USUAL_SIZE = 16
_OTHER_SIZES = (64, 256, 1, 2, 3, 4, 6, 8, 12, 32)
_MOST_BROADCASTS = 8  # that are tried, the last ones first, where no program has equal sizes
_IN_PARTS = "satura.compile and `satura run` run such a model in parts"
_FOR_VALUES = "satura.compile and `satura run` compile such a model for the values of each call"
_HOW_CHOSEN = (
    "sizes decide what has to be a number here, and none of the usual ones fits: name yours, as in"
)

Source = str | Path | bytes | ModelProto | ModelApart


@dataclass(frozen=True)
class Import:
    """How a model is imported; `load`, `load_at` and `load_with_calls` say what that means."""

    values: Mapping[str, Array] = field(default_factory=dict)
    likely: Mapping[str, int] = field(default_factory=dict)
    asks: bool = False
    sizes: Mapping[str, Dim] = field(default_factory=dict)
    for_all_sizes: bool = False
    clamps: bool = False
    takes_turns: bool = False
    leaves_out: bool = False

    def of(self, model: Source) -> tuple[Program, Importer]:
        """The program of a model, whose functions are inlined where extents in them are open."""
        try:
            return self._of(model)
        except OpenExtents as error:
            if not self.asks and not error.is_long:
                error.args = (f"{error}; {self._advice(model)}",)
            raise

    def _advice(self, model: Source) -> str:
        """How a model runs that has no single program."""
        try:
            replace(self, asks=True).of(model)
        except Asked:
            return _FOR_VALUES
        except SaturaError:
            pass
        return _IN_PARTS

    def _of(self, model: Source) -> tuple[Program, Importer]:
        try:
            found = model if isinstance(model, ModelApart) else read_apart(model)
            check_bodies(found.proto)
            apart = upgrade(without_defaults(found, self.values))
            try:
                return self._at_some_sizes(apart)
            except OpenExtents as error:
                if error.outputs:
                    raise
                flat = _inlined(apart, error)
            try:
                return self._at_some_sizes(flat)
            except OpenExtents as error:
                if not error.outputs:
                    raise UnsupportedError(str(error)) from None
                raise OpenExtents(str(error), error.outputs, True, error.is_long) from None
        except RecursionError:
            raise ModelError("the model's graphs are nested too deep") from None

    def _at_some_sizes(self, apart: ModelApart) -> tuple[Program, Importer]:
        """The program, at other sizes where the usual ones decide what a number is, and fail."""
        refused: ModelError | UnsupportedError | None = None
        reasons: set[str] = set()
        for usual in dict.fromkeys(
            (_USUAL_SIZE, *_OTHER_SIZES, *stated_extents(apart.proto.graph))
        ):
            try:
                return self._with_equal_sizes(apart, usual, {} if refused else self.likely)
            except OpenExtents:
                raise
            except _ChosenSizes as chosen:
                refused = refused or chosen.refused
                reasons.add(str(chosen))
            except (ModelError, UnsupportedError):
                if refused is None:
                    raise
        assert refused is not None
        if not self.leaves_out:  # at no size does all of it run here
            try:
                return replace(self, leaves_out=True)._at_some_sizes(apart)
            except OpenExtents:
                raise
            except (ModelError, UnsupportedError):
                pass
        if len(reasons) == 1:  # sizes do not matter
            raise refused from None
        name = min(open_sizes(declared_inputs(apart.proto.graph).values()), default="n")
        given = quote(f"{name}=6"), f"satura.compile(model, dims={{{name!r}: 6}})"
        refused.args = (f"{refused}; {_HOW_CHOSEN} {advice(given[1], f'--dim {given[0]}')}",)
        raise refused from None

    def _with_equal_sizes(
        self, apart: ModelApart, usual: int, likely: Mapping[str, int]
    ) -> tuple[Program, Importer]:
        """The program, in which sizes are equal that must be, and others that may broadcast, unless
        one of these is 1."""
        known = dict(self.sizes)
        taken: dict[SizeCondition, None] = {}
        takes_turns = self.takes_turns and bool(likely)  # of so many steps as the call has
        has_chosen, all_count = False, True
        choices: list[_Choice] = []
        refused: Exception | None = None
        fixed: dict[str, str] = {}
        while True:
            build = Tensors(self.for_all_sizes, usual, likely, self.clamps)
            importer = Importer(
                apart, self.values, self.asks, known, build, takes_turns, not self.sizes,
                self.leaves_out,
            )  # fmt: skip
            try:
                program = importer.program()
                build.has_chosen |= has_chosen
                return replace(program, taken=(*(taken | build.taken),)), importer
            except SameSize as same:
                has_chosen |= build.has_chosen
                all_count &= same.it_counts
                if same.may_broadcast and refused is None:
                    choices += _broadcasts(same, known, taken)
                taken = taken if same.taken is None else {**taken, same.taken: None}
                known = _with_size(known, same.name, same.dim)
                if isinstance(same.dim, int) and not build.has_chosen:
                    fixed[same.name] = f"{same.name} is {same.dim} here, as {same.place} needs"
            except OpenExtents as found:
                if found.outputs and not all_count:
                    raise of_any_size(found) from None
                if found.outputs and (has_chosen or build.has_chosen):
                    raise self._for_other_sizes(apart, found) from None
                if found.outputs and (taken or build.taken):
                    raise _where_none_is_equal(found, [*taken, *build.taken]) from None
                raise
            except (ModelError, UnsupportedError) as error:
                if refused is None:
                    error.args = ("; ".join((str(error), *fixed.values())),)
                    is_chosen = has_chosen or build.has_chosen
                    refused = _ChosenSizes(error) if is_chosen else error
                    del choices[:-_MOST_BROADCASTS]
                if not choices:
                    raise refused from None
                known, taken = choices.pop()

    def _for_other_sizes(self, apart: ModelApart, found: OpenExtents) -> OpenExtents:
        """What was found where numbers were taken for sizes, with types that hold at all sizes."""
        outputs = of_any_size(found).outputs
        try:
            replace(self, for_all_sizes=True)._with_equal_sizes(apart, _USUAL_SIZE, {})
        except OpenExtents as other:
            if other.is_typed and other.outputs.keys() == outputs.keys():
                outputs = other.outputs
        except (ModelError, UnsupportedError):
            pass  # before it there is a node that needs numbers
        return found.with_outputs(outputs)


_Choice = tuple[dict[str, Dim], dict[SizeCondition, None]]
"""What sizes are, and which sizes were assumed equal although they may broadcast."""


def _broadcasts(
    same: SameSize, known: dict[str, Dim], taken: dict[SizeCondition, None]
) -> list[_Choice]:
    """What there is beside two equal sizes: one of them is 1."""
    names = [same.name, same.dim.name if isinstance(same.dim, SymbolicDim) else None]
    return [(_with_size(known, name, 1), taken) for name in names if name is not None]


def _with_size(known: Mapping[str, Dim], name: str, dim: Dim) -> dict[str, Dim]:
    """The sizes that are `known`, and that of `name`."""
    return {each: substitute(size, {name: dim}) for each, size in known.items()} | {name: dim}


def _where_none_is_equal(found: OpenExtents, taken: Iterable[SizeCondition]) -> OpenExtents:
    """What was found where sizes were assumed equal, with types that hold where they differ."""
    numbers = {dim for each in taken for dim in (each.left, each.right) if isinstance(dim, int)}
    return found.opened(lambda number: number not in numbers)


def of_any_size(found: OpenExtents) -> OpenExtents:
    """What was found, with a size of its own for each extent."""
    return found.opened(lambda _: False)


class _ChosenSizes(Exception):
    """A model was refused after numbers were taken for sizes."""

    def __init__(self, refused: ModelError | UnsupportedError) -> None:
        super().__init__(str(refused))
        self.refused = refused


def _inlined(apart: ModelApart, error: OpenExtents) -> ModelApart:
    try:
        return inlined(apart)
    except UnsupportedError as why:
        raise UnsupportedError(f"{error}; it cannot be inlined: {why}") from None
