"""What of the code results depend on, as one line."""

from __future__ import annotations

import os
import platform
from functools import lru_cache

from satura.rewrite.system.sources import digest_of, sources_in
from satura.rewrite.system.versions import installed_version

_FOLDERS = ("artifact", "pipeline", "rewrite", "rules")


def code_files() -> dict[str, str]:
    """The files of the stages before the kernels, by their path in the package."""
    package = os.path.dirname(os.path.dirname(__file__))
    roots = {name: os.path.realpath(os.path.join(package, name)) for name in _FOLDERS}
    return {
        name + path.removeprefix(root): path
        for name, root in roots.items()
        for path in sources_in(root)
    }


@lru_cache(maxsize=1)
def code_identity() -> str:
    """The code that loads and searches, and the versions of what it builds on."""
    versions = [f"{name} {installed_version(name)}" for name in ("egglog", "numpy", "onnx")]
    return " ".join([platform.python_version(), *versions, digest_of(code_files().items())])
