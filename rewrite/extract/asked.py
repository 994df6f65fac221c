"""Functions of users that an extraction calls: what they raise names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from satura.rewrite.errors import CallError
from satura.rewrite.system.stopped import Stopped

T = TypeVar("T")


def asked(who: str, function: Callable[..., T], *arguments: object) -> T:
    """What a function of a user gives. What it raises names `who`: CallError where that is
    SystemExit, else the exception with a note."""
    try:
        return function(*arguments)
    except Stopped:
        raise
    except SystemExit as error:
        raise CallError(f"{who} called sys.exit({error.code!r})") from error
    except Exception as error:
        error.add_note(f"in {who}")
        raise
