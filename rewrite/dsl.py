"""The former place of `satura.rewrite.language.dsl`; rule files import from `satura.language`."""

from satura.rewrite.errors import warn_of_former_place
from satura.rewrite.language.dsl import *  # noqa: F403  # the whole module, under its former name

warn_of_former_place(__name__)
