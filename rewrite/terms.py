"""The former place of `satura.rewrite.language.terms`; rule files import from `satura.language`."""

from satura.rewrite import moved
from satura.rewrite.language.terms import *  # noqa: F403  # the whole module, under its former name

moved.warn(__name__)
