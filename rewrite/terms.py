"""The former place of `satura.rewrite.language.terms`; rule files import from `satura.language`."""

from satura.rewrite.errors import warn_of_former_place
from satura.rewrite.language.terms import *  # noqa: F403  # the whole module, under its former name

warn_of_former_place(__name__)
