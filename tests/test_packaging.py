"""What is installed, under which names, and what importing it drags in."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import satura

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = {"satura": "satura", "backend": "satura.backend"} | {
    "rewrite": "satura.rewrite",
    "rules": "satura.rules",
}


def python(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own in `folder`; this checkout comes last on its path."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def packages_in_folders() -> set[str]:
    """Every folder of Python files below the four package folders, by its installed name."""
    found = set()
    for folder, package in FOLDERS.items():
        for file in (ROOT / folder).rglob("*.py"):  # does not follow the links in satura/
            parts = file.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *parts)))
    return found


def test_listed_packages_equal_the_folders() -> None:
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert listed == sorted(listed)
    assert set(listed) == packages_in_folders()


def test_listed_data_are_all_other_files_in_the_folders() -> None:
    listed = {
        f"{package}/{file}"
        for package, names in PROJECT["tool"]["setuptools"]["package-data"].items()
        for file in names
    }
    found = {
        f"{package}/{file.name}"
        for folder, package in FOLDERS.items()
        for file in (ROOT / folder).iterdir()
        if file.is_file() and file.suffix != ".py"
    }
    assert listed == found


def test_every_package_folder_has_an_init_file() -> None:
    mapped = {package: folder for folder, package in FOLDERS.items()}
    for package in PROJECT["tool"]["setuptools"]["packages"]:
        top = ".".join(package.split(".")[:2])
        top = top if top in mapped else "satura"
        parts = package.removeprefix(top).strip(".").split(".")
        assert (ROOT.joinpath(mapped[top], *filter(None, parts)) / "__init__.py").is_file(), package


def test_links_in_the_import_package_are_relative() -> None:
    for name in ("rewrite", "rules", "backend"):
        link = ROOT / "satura" / name
        assert link.is_symlink()
        assert link.readlink() == Path("..") / name


def test_version_is_that_of_the_package() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "satura.__version__"}
    assert satura.__version__.count(".") == 2


def test_public_names_exist() -> None:
    for name in satura.__all__:
        assert getattr(satura, name) is not None


def test_import_is_light(tmp_path: Path) -> None:
    heavy = "{'numba', 'egglog', 'onnx', 'llvmlite', 'rich'}"
    result = python(f"import satura, sys; print({heavy} & set(sys.modules))", tmp_path)
    assert result.stdout.strip() == "set()", result.stderr


WHOLE_WAY = """
import sys
import numpy as np
from onnx import TensorProto, helper

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2])
nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Transpose", ["r"], ["y"])]
model = helper.make_model(
    helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)]
)

import pytest

import satura
import satura.commands.cli

value = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
assert np.array_equal(satura.compile(model, threads=1)(value), np.maximum(value, 0).T)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"rewrite", "rules", "backend"}))
"""


@pytest.mark.deep
def test_generic_names_are_never_imported(tmp_path: Path) -> None:
    """A second copy of the rules under the bare name `rules` would be a second registry."""
    result = python(WHOLE_WAY, tmp_path)
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.deep
def test_a_foreign_backend_folder_does_no_harm(tmp_path: Path) -> None:
    for name in ("backend", "rules", "rewrite"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not ours')\n")
    result = python(WHOLE_WAY, tmp_path)
    assert result.stdout.strip() == "[]", result.stderr
