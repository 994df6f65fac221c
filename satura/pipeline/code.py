"""What of the code results depend on, as one line."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache

from satura.rewrite.system.sources import content, sources_in
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
    digest = hashlib.sha256()
    for name, path in code_files().items():
        digest.update(f"{name}\0".encode() + content(path))
    versions = [f"{name} {installed_version(name)}" for name in ("egglog", "numpy", "onnx")]
    return " ".join([platform.python_version(), *versions, digest.hexdigest()])
