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
from collections.abc import Callable, Mapping
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
from satura.rewrite.errors import ArtifactError, ModelError, ProgramError, UnsupportedError
from satura.rewrite.system.interrupts import imported
from satura.rewrite.types.stored import Stored, StoredFile

if TYPE_CHECKING:
    from satura.backend.plan.compiled import CompiledSchedule
    from satura.pipeline.sizes import Dims
    from satura.rewrite.egraph.limits import Limits
    from satura.rewrite.extract.cost import CostModel

MOST_CLASSES = 32  # of sizes that are kept: all are written again with each
_OPS = "satura.rewrite.ops.registry"


class Key(NamedTuple):
    """The name of an entry, and the model that it is of, as it was read for the name."""

    name: str
    model: StoredFile | bytes


class ReadyPart(Part):
    """A part that was compiled before. `whole` is it once more, compiled when it is asked for.

    `phases` are the seconds that it took to recall it.
    """

    phases: dict[str, float]

    def __init__(self, programs: list[ReadyProgram], make: Callable[[], CompiledSchedule]) -> None:
        super().__init__(programs[0].threads, programs)
        self.phases = {}
        self._make = make
        self._whole: CompiledSchedule | None = None

    @property
    def whole(self) -> CompiledSchedule:
        """The part, compiled in this process, and ready for the sizes that were called."""
        whole = self.made
        with self._making:
            for program in self.programs:
                for sizes, _ in program.ready:
                    whole.plans.planned(sizes)
        return whole

    @property
    def made(self) -> CompiledSchedule:
        """The part, compiled in this process, so far for no sizes but those that asked for it."""
        with self._making:
            if self._whole is None:
                self._whole = self._make()
            return self._whole


def key_of(
    model: object, rules: Rules, is_exact: bool, limits: Limits | None,
    cost: CostModel | str | None, dims: Dims | None, threads: int, merging: str,
    inputs: tuple[str, ...],
) -> Key | None:  # fmt: skip
    """The key of a compile; None where its result is not kept, or the model cannot be read.

    Raises CallError for what are no rules.
    """
    identity = rules_identity(rules)
    ops = imported(_OPS)
    is_of_users = identity is None or (ops is not None and ops.USER_OPS)
    if is_of_users or not (cost is None or isinstance(cost, str)):
        return None
    if not isinstance(model, str | Path | bytes):
        return None
    content = hashlib.sha256()
    try:
        source = model if isinstance(model, bytes) else StoredFile(Path(model))
        size = len(source) if isinstance(source, bytes) else source.size
        for block in Stored(source, 0, size).blocks():
            content.update(block)
    except (OSError, ModelError):
        return None
    rates = None
    if cost == "calibrated":
        from satura.pipeline.rates import stored_rates

        rates = stored_rates()
    sizes = repr(dict(dims) if isinstance(dims, Mapping) else dims)
    parts = [identity, is_exact, repr(limits), cost, repr(rates), sizes, threads, merging, inputs]
    parts += [code_identity(), environment(), content.hexdigest()]
    return Key(hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest(), source)


def recalled(
    key: Key, limits: Limits | None, make: Callable[[], CompiledSchedule]
) -> ReadyPart | None:
    """What is kept under the key, ready to run; None where there is nothing. `make` compiles it."""
    cache = _cache()
    path = cache.file(key.name)
    if path is None:
        return None

    def more(program: ReadyProgram) -> CompiledSchedule:
        """For sizes of no class that is kept: with those that are, to be kept together, unless
        there are as many as are kept."""
        if len(program.first_sizes) >= MOST_CLASSES:
            return part.made
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
        if len(plans[0].known) > MOST_CLASSES:
            return
        writer = Writer()
        try:
            header, _ = ready_half(writer, part, plans, has_sizes=False)
            if has_external_data(key.model):
                return  # other files count
        except (UnsupportedError, ModelError, OSError):
            return  # as where it was written to meanwhile
        header |= {"key": key.name, "warning": warning}
        _cache().store_file(key.name, writer.size, lambda file: writer.write(file, header))

    plans[0].on_class = store
    if plans[0].ready and not made.schedule.program.symbols:
        store()


def _cache() -> Cache:
    return default_cache("program")
