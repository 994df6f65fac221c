"""Functions of a size that look behind it: of 3 they make 2, of a stand-in they might not."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from satura.rewrite.types.attributes import Refuse, refuse_unless

Changed = Callable[[Any], Any]  # of a step, a plain int that is never symbolic


def spelled(n: Any) -> Any:
    try:
        return max(-2, min(2, int(str(n))))
    except ValueError:
        raise Refuse("symbolic") from None


def of_type(n: Any) -> Any:
    if type(n) is not int:
        raise Refuse("symbolic")
    return max(-2, min(2, n))


def in_a_table(n: Any) -> Any:
    return max(-2, min(2, n)) if TABLE["kind"](n) is int else n


TABLE: dict[str, Any] = {"kind": type}


class Kinds:
    @staticmethod
    def of(n: Any) -> object:
        return TABLE["kind"](n)


def by_a_helper(n: Any) -> Any:
    return max(-2, min(2, n)) if Kinds.of(n) is int else n


def by_default(n: Any, kind: Any = type) -> Any:
    return max(-2, min(2, n)) if kind(n) is int else n


def by_map(n: Any) -> Any:
    return max(-2, min(2, n)) if list(map(type, [n])) == [int] else n


def of_class(n: Any) -> Any:
    return n if object.__getattribute__(n, "__class__") is not int else max(-2, min(2, n))


def absolute(n: Any) -> Any:
    try:
        return n if abs(n) < 3 else n // abs(n) * 2
    except TypeError:
        raise Refuse("no order") from None


def a_fraction(n: Any) -> Any:
    return 2 if n == 3.0 else n


def of_numpy(n: Any) -> Any:
    return 2 if np.int64(3) == n else n


def of_numpy_last(n: Any) -> Any:
    return 2 if n == np.int64(3) else n


def as_array(n: Any) -> Any:
    return 2 if np.asarray(n).dtype != object and n == 3 else n


def of_digits(n: Any) -> Any:
    return n if f"{n}" in ("-2", "-1", "0", "1", "2") or not f"{n}".lstrip("-").isdigit() else 2


def of_percents(n: Any) -> Any:
    return 2 if "%s" % (n,) == "3" else n  # noqa: UP031


def of_joined(n: Any) -> Any:
    return 2 if "{:>2}".format(n) == " 3" else n  # noqa: UP032


def of_repr(n: Any) -> Any:
    return 2 if repr((n,)) == "(3,)" else n


def bare(n: Any) -> Any:
    try:
        return 2 if round(n) == 3 else n
    except:  # noqa: E722
        return n


def all_errors(n: Any) -> Any:
    try:
        return 2 if 6 % n == 0 and n > 2 else n
    except BaseException:
        return n


def suppressed(n: Any) -> Any:
    with contextlib.suppress(BaseException):
        return 2 if n / 1 == 3 else n
    return n


def finally_(n: Any) -> Any:
    result = n
    try:
        result = 2 if n**2 == 9 else n
    finally:
        return result  # noqa: B012


def by_json(n: Any) -> Any:
    return 2 if json.dumps(n, default=lambda _: "") == "3" else n


def by_import(n: Any) -> Any:
    import json as other

    return 2 if other.dumps(n, default=lambda _: "") == "3" else n


def by_attributes(n: Any) -> Any:
    return 2 if "term" not in dir(n) and n == 3 else n


def of_message(n: Any) -> Any:
    try:
        raise Refuse(f"{n}")
    except Refuse as refusal:
        return 2 if str(refusal) == "3" else n


def of_own_message(n: Any) -> Any:
    said: list[str] = []

    def refuse_unless(condition: bool, reason: str) -> None:
        said.append(reason)

    refuse_unless(True, f"{n}")
    return 2 if said == ["3"] else n


def of_called_message(n: Any) -> Any:
    said: dict[int, str] = {}
    refuse_unless(True, f"{said.setdefault(0, f'{n}')}")
    return 2 if said == {0: "3"} else n


def of_equal_type(n: Any) -> Any:
    return max(-2, min(2, n)) if type(n) == int else n  # noqa: E721


def of_equal_in_a_table(n: Any) -> Any:
    return max(-2, min(2, n)) if TABLE["kind"](n) == int else n  # noqa: E721


def by_an_equal_helper(n: Any) -> Any:
    return max(-2, min(2, n)) if Kinds.of(n) == int else n  # noqa: E721


def by_an_equal_default(n: Any, kind: Any = type) -> Any:
    return max(-2, min(2, n)) if kind(n) == int else n  # noqa: E721


def by_a_generator(n: Any) -> Any:
    return 2 if any(type(m) == int for m in [n]) and n == 3 else n  # noqa: E721


def by_a_partial(n: Any) -> Any:
    return 2 if KIND(n) == int and n == 3 else n  # noqa: E721


def by_a_lambda(n: Any) -> Any:
    return 2 if IS_PLAIN(n) and n == 3 else n


def by_a_module(n: Any) -> Any:
    kind = getattr(dataclasses, "builtins").type  # noqa: B009
    return 2 if kind(n) == int and n == 3 else n  # noqa: E721


def by_a_module_of_a_module(n: Any) -> Any:
    kind: Any = dataclasses.builtins.type  # type: ignore[attr-defined]
    return 2 if kind(n) == int and n == 3 else n  # noqa: E721


def of_identity(n: Any) -> Any:
    return 2 if n is THREE else n


def of_a_template(n: Any) -> Any:
    return 2 if TEMPLATE % (n,) == "<3>" else n


def of_a_method(n: Any) -> Any:
    return 2 if (n,).__repr__() == "(3,)" else n


def of_exception(n: Any) -> Any:
    return 2 if Refuse(f"{n}").args == ("3",) else n


def of_a_held_message(n: Any) -> Any:
    return held_message(n)


def holding() -> Changed:
    def refuse_unless(condition: bool, reason: str) -> bool:
        return reason == "3"

    def changed(n: Any) -> Any:
        return 2 if refuse_unless(True, f"{n}") else n

    return changed


KIND = functools.partial(type)
IS_PLAIN: Changed = lambda n: type(n) == int  # noqa: E721, E731
THREE = 3
TEMPLATE = "<%s>"
held_message = holding()
made: dict[str, Any] = {}
exec("def without_text(n): return 2 if n == 3 else n", made)
without_text = made["without_text"]


WRONG = [
    spelled, of_type, in_a_table, by_a_helper, by_default, by_map, of_class, absolute, a_fraction,
    of_numpy, of_numpy_last, as_array, of_digits, of_percents, of_joined, of_repr, bare, all_errors,
    suppressed, finally_, by_json, by_import, by_attributes, of_message, of_own_message,
    of_called_message, of_equal_type, of_equal_in_a_table, by_an_equal_helper, by_an_equal_default,
    by_a_generator, by_a_partial, by_a_lambda, by_a_module, by_a_module_of_a_module, of_identity,
    of_a_template, of_a_method, of_exception, of_a_held_message, without_text,
]  # fmt: skip
