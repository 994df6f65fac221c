"""Where work is done: in turn, in processes beside each other, or on the workers of a cluster."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from ctypes import Array, c_bool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar, cast

from satura.pipeline.rule_file import load_rules
from satura.pipeline.rule_sets import Rules, is_of_the_book, rule_set
from satura.rewrite.errors import CallError, SaturaError
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.system.threads import started

Made = TypeVar("Made")
Work = tuple[str, Callable[[], Made]]
"""What makes something, with its name."""

_work_beside: Sequence[Work[object]] = ()
"""The work of a parallel run: processes inherit it, as a user's functions cannot be sent."""
_is_begun: Array[c_bool] = (c_bool * 0)()
"""For each piece of it whether a process is at work on it, in memory that processes share."""


def in_turn(work: Sequence[Work[Made]]) -> Iterator[Made]:
    """The result of each piece of work, computed in this process."""
    for _, make in work:
        yield make()


def beside(work: Sequence[Work[Made]], jobs: int) -> Iterator[Made]:
    """What each makes, in order, in at most `jobs` processes at a time.

    None of them outlives this process, or runs on when nobody takes what it makes. Raises what the
    work raises, as a SaturaError what cannot be sent here; and SaturaError, with the names of what
    was in work, where a process ends before its work does.
    """
    global _work_beside, _is_begun
    fork = multiprocessing.get_context("fork")
    _work_beside, _is_begun = work, fork.RawArray(c_bool, len(work))
    workers: set[BaseProcess] = set()
    count = max(1, min(jobs, len(work)))
    pool = ProcessPoolExecutor(count, fork, _end_with_parent)
    others = set(multiprocessing.active_children())
    is_started = False
    try:
        try:
            made = pool.map(_done, range(len(work)))
            is_started = True
        except (OSError, RuntimeError) as error:
            raise SaturaError(
                f"trials cannot run beside each other: {error}: take one job"
            ) from None
        finally:
            workers = set(multiprocessing.active_children()) - others
        yield from cast("Iterator[Made]", made)
    except BrokenProcessPool:
        begun = [name for (name, _), at_work in zip(work, _is_begun, strict=True) if at_work]
        raise SaturaError(
            "a process that ran trials ended without a word, perhaps for want of memory:"
            f" take fewer jobs; at work were: {'; '.join(begun) or 'none'}"
        ) from None
    finally:
        _work_beside = ()
        for worker in workers:
            worker.kill()
        pool.shutdown(wait=is_started, cancel_futures=True)


def _end_with_parent() -> None:
    """Let this process end when its parent has, and leave it to the parent what signals do."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    if started(wait, "satura-parent", daemon=True) is None:
        os._exit(1)


def _done(number: int) -> object:
    """What one piece of the work makes. Raises only what can be sent to another process."""
    _is_begun[number] = True
    try:
        return _work_beside[number][1]()
    except Exception as error:
        raised = _to_send(error)
    finally:
        _is_begun[number] = False
    raise raised  # here it has no context, which could be what cannot be sent


def _to_send(error: Exception) -> Exception:
    """The error, or a SaturaError that says the same where it cannot be sent to a process."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        told = SaturaError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        return told


@dataclass(frozen=True)
class RulesOfFiles:
    """Rules by their names and files, from which a process elsewhere makes them again."""

    names: frozenset[str]
    files: tuple[Path, ...]

    @staticmethod
    def of(rules: RuleSet) -> RulesOfFiles:
        """Raise CallError where a rule is not in a file, which every worker has to have."""
        foreign = [rule for rule in rules if not is_of_the_book(rule)]
        for rule in foreign:
            if not rule.file.is_file():
                raise CallError(
                    f"rule '{rule.name}' cannot be sent to a cluster: it is in {rule.file}, which"
                    " is not a file"
                )
        names = {entry.name for entry in (*rules, *rules.laws)}
        return RulesOfFiles(frozenset(names), tuple(dict.fromkeys(rule.file for rule in foreign)))

    def rules(self) -> RuleSet:
        """The rules, those of the book first."""
        found = rule_set("default")
        for file in self.files:
            found += _loaded(file)
        every = dict.fromkeys(entry.name for entry in (*found.laws, *found))
        return found.without(*(name for name in every if name not in self.names))


_loaded = lru_cache(load_rules)  # a file is run once per process: it may declare ops


def pack_rules(rules: Rules) -> str | RulesOfFiles:
    """The rules as they are sent to another process."""
    return rules if isinstance(rules, str) else RulesOfFiles.of(rules)


def unpack_rules(rules: Rules | RulesOfFiles) -> RuleSet:
    """The rules that were sent, or were here."""
    return rules.rules() if isinstance(rules, RulesOfFiles) else rule_set(rules)
