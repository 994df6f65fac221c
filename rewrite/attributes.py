"""The former place of `types/attributes.py`; rule files import from `satura.language`."""

from satura.rewrite import moved
from satura.rewrite.types.attributes import *  # noqa: F403  # the whole module, under its former name

moved.warn(__name__)
