"""Compiles made before: a process that compiles a file once more opens what there is, as a saved
program is opened, and imports no compiler.

What is kept of a model is the half of a saved program that is ready to run, under a key of the
file's bytes and all else that a compile depends on. What is asked for beyond calls (the program,
the report, other sizes) is compiled when it is asked for. As it is machine code, only files count
that nobody but the user can have written. Programs that run Python are not kept, nor what rules,
ops and cost models of others made, or models with data in further files.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from satura.artifact.container import Container, of
from satura.artifact.ready import ReadyProgram, load, programs_in
from satura.backend.jit.cache import Cache, default_cache
from satura.backend.jit.kernel import KernelError, environment
from satura.backend.run.part import Part
from satura.pipeline.code import code_identity
from satura.pipeline.rewritten import Rewritten, cut_short, warn_if_cut_short
from satura.pipeline.rule_sets import Rules, rules_identity
from satura.rewrite.errors import ArtifactError, ProgramError, UnsupportedError
from satura.rewrite.system.files import open_regular

if TYPE_CHECKING:
    from satura.backend.plan.compiled import CompiledSchedule
    from satura.pipeline.sizes import Dims
    from satura.rewrite.egraph.saturate import Limits
    from satura.rewrite.extract.cost import CostModel

_BLOCK = 1 << 20
_MOST_CLASSES = 8  # of sizes: all are written again with each
_OPS = "satura.rewrite.ops.registry"


class Key(NamedTuple):
    """The name of an entry, and the model that it is of: its bytes, or its file with the state that
    this had."""

    name: str
    model: Path | bytes
    state: tuple[int, ...] = ()


class ReadyPart(Part):
    """A part that was compiled before. `whole` is it once more, compiled when it is asked for."""

    def __init__(self, programs: list[ReadyProgram], make: Callable[[], CompiledSchedule]) -> None:
        super().__init__(programs[0].threads, programs)
        self._make = make

    @cached_property
    def whole(self) -> CompiledSchedule:
        """The part, compiled in this process, and ready for the sizes that were called."""
        made = self._make()
        for program in self.programs:
            for sizes, _ in program.ready:
                made.plans.planned(sizes)
        return made


def key_of(
    model: object, rules: Rules, limits: Limits | None, cost: CostModel | str | None,
    dims: Dims | None, threads: int, merging: str,
) -> Key | None:  # fmt: skip
    """The key of a compile; None where its result is not kept, or the model cannot be read.

    Raises CallError for what are no rules.
    """
    identity = rules_identity(rules)
    ops = sys.modules.get(_OPS)
    is_of_users = identity is None or (ops is not None and ops.USER_OPS)
    if is_of_users or not (cost is None or isinstance(cost, str)):
        return None
    state = tuple[int, ...]()
    if isinstance(model, bytes):
        content = hashlib.sha256(model)
    elif isinstance(model, str | Path):
        model = Path(model)
        try:
            with open_regular(model) as file:
                state, content = _state(os.fstat(file.fileno())), hashlib.sha256()
                while block := file.read(_BLOCK):
                    content.update(block)
        except OSError:
            return None
    else:
        return None
    rates = None
    if cost == "calibrated":
        from satura.pipeline.rates import stored_rates

        rates = stored_rates()
    sizes = repr(dict(dims) if isinstance(dims, Mapping) else dims)
    parts = [identity, repr(limits), cost, repr(rates), sizes, threads, merging]
    parts += [code_identity(), environment(), content.hexdigest()]
    return Key(hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest(), model, state)


def recalled(
    key: Key, limits: Limits | None, make: Callable[[], CompiledSchedule]
) -> ReadyPart | None:
    """What is kept under the key, ready to run; None where there is nothing. `make` compiles it."""
    cache = _cache()
    path = cache.file(key.name)
    if path is None:
        return None

    def more(program: ReadyProgram) -> CompiledSchedule:
        """For sizes of no class that is kept: with those that are, to be kept together."""
        for sizes in program.first_sizes:
            part.whole.plans.planned(sizes)
        keep(key, part.whole, limits)
        return part.whole

    try:
        file = Container(path)
        if not file.is_private or of(str, file.header.get("key")) != key.name:
            raise ArtifactError("it is of another model")
        programs = programs_in(file, more)
        part = ReadyPart(programs, make)
        load(file, programs)
        _ = [program.first_sizes for program in programs]  # so all of it is checked
        warning = of(str, file.header["warning"])
    except OSError:
        return None
    except (ArtifactError, KernelError, ProgramError, ValueError, KeyError, TypeError, IndexError):
        cache.refuse(key.name)
        return None
    warn_if_cut_short(warning)
    return part


def keep(key: Key, part: CompiledSchedule, limits: Limits | None) -> None:
    """Keep what was compiled under the key, as far as it can be run by another process: now, or
    with each class of sizes that calls meet."""
    from satura.artifact.container import Writer
    from satura.artifact.save import ready_half
    from satura.backend.plan.plans import Plans
    from satura.rewrite.onnx.files import has_external_data

    programs = [] if part.deciding else part.programs
    plans = [program for program in programs if isinstance(program, Plans)]
    made = plans[0].made if plans else None
    if not isinstance(made, Rewritten) or any(n.op.name == "host" for n in made.source.nodes):
        return
    warning = cut_short(made.report, limits)

    def store() -> None:
        if len(plans[0].known) > _MOST_CLASSES:
            return
        writer = Writer()
        try:
            header, _ = ready_half(writer, part, plans, has_sizes=False)
        except UnsupportedError:
            return
        if has_external_data(key.model) or (
            isinstance(key.model, Path) and _state(key.model.stat()) != key.state
        ):
            return  # other files count, or it was written to meanwhile
        header |= {"key": key.name, "warning": warning}
        _cache().store_file(key.name, writer.size, lambda file: writer.write(file, header))

    plans[0].on_class = store
    if plans[0].ready and not made.schedule.program.symbols:
        store()


def _cache() -> Cache:
    return default_cache("program")


def _state(status: os.stat_result) -> tuple[int, ...]:
    """What changes with the content of a file."""
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
