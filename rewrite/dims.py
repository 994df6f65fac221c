"""The former place of `satura.rewrite.types.dims`; rule files import from `satura.language`."""

from satura.rewrite.errors import warn_of_former_place
from satura.rewrite.types.at_sizes import *  # noqa: F403  # the whole modules, under a former name
from satura.rewrite.types.dims import *  # noqa: F403
from satura.rewrite.types.typical import representative as representative

warn_of_former_place(__name__)
