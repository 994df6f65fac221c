"""The former place of `satura.rewrite.types.dims`; rule files import from `satura.language`."""

from satura.rewrite import moved
from satura.rewrite.types.dims import *  # noqa: F403  # the whole module, under its former name

moved.warn(__name__)
