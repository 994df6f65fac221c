"""The order of imports: each folder imports from those before it, and no files in a circle.

Every import statement counts, also one inside a function or only for types.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("rewrite", "rules", "backend", "satura")
ORDER = (  # a line imports from the lines above it; folders of one line do not import each other
    ("rewrite.errors", "rewrite.system"),
    ("rewrite.types",),
    ("rewrite.ops",),
    ("rewrite.program",),
    ("rewrite.language",),
    ("rewrite.user_ops", "rewrite.egraph", "rewrite.prove"),
    ("rewrite.extract", "rewrite.isolation", "rewrite.check", "rewrite.explain", "rewrite.onnx"),
    ("rules",),
    ("backend.cache_lines", "backend.cores", "backend.matrices", "backend.sizes"),
    ("backend.lower", "backend.target", "backend.constants"),
    ("backend.emit", "backend.helpers"),
    ("backend.jit",),
    ("backend.contraction", "backend.run"),
    ("backend.plan",),
    ("errors", "language", "light", "ops", "testing"),
    ("artifact",),
    ("pipeline",),
    ("satura", "experiments"),
    ("commands",),
    ("__main__",),
    # Former places of what rule files import: nothing imports these.
    ("rewrite.attributes", "rewrite.dims", "rewrite.dsl", "rewrite.terms"),
)

Sources = Mapping[str, str]
"""The text of every module, by its name."""


def read_sources() -> dict[str, str]:
    found = {}
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):  # does not follow the links in satura/
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            found[name if folder == "satura" else f"satura.{name}"] = file.read_text()
    return found


def statements(outer: ast.AST) -> Iterator[ast.AST]:
    """All statements inside, however deep; no expression has one."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(outer, block, ()):
            yield node
            yield from statements(node)


@cache
def named_in(source: str) -> frozenset[tuple[str, str]]:
    """What the import statements name: a module, and a name in it or nothing."""
    found: set[tuple[str, str]] = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None and not node.level, "imports are absolute"
            found |= {(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
    return frozenset(found)


def imports(sources: Sources) -> dict[str, set[str]]:
    """The modules of `sources` that each of them imports."""
    assert sources.keys() == SOURCES.keys()
    return {module: imported_by(source) for module, source in sources.items()}


@cache
def imported_by(source: str) -> set[str]:
    named = ((outer, f"{outer}.{name}") for outer, name in named_in(source))
    return {inner if inner in SOURCES else outer for outer, inner in named} & SOURCES.keys()


@cache
def place(module: str) -> tuple[int, str] | None:
    """The line of `module` in ORDER and its folder there; None where it has none."""
    inside = module.removeprefix("satura.")
    for line, folders in enumerate(ORDER):
        for folder in folders:
            if f"{inside}.".startswith(f"{folder}."):
                return line, folder
    return None


def wrong_imports(sources: Sources) -> list[str]:
    """Imports that ORDER does not allow."""
    found = []
    for module, targets in imports(sources).items():
        for target in sorted(targets):
            here, there = place(module), place(target)
            if here is None or there is None or (here != there and here[0] <= there[0]):
                found.append(f"{module} imports {target}")
    return found


def circle(sources: Sources) -> list[str]:
    """Modules each of which imports the next one, the last being the first again; or none."""
    try:
        TopologicalSorter(imports(sources)).prepare()
    except CycleError as error:
        return [str(module) for module in reversed(error.args[1])]
    return []


SOURCES = read_sources()


def with_line(module: str, line: str) -> Sources:
    return {**SOURCES, module: f"{SOURCES[module]}\n{line}\n"}


def test_folders_import_from_those_before_them() -> None:
    assert wrong_imports(SOURCES) == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circle(SOURCES) == []


def test_every_folder_of_the_order_is_there() -> None:
    places = [place(module) for module in SOURCES]
    assert {at[1] for at in places if at is not None} == {name for line in ORDER for name in line}
    assert [m for m, at in zip(SOURCES, places, strict=True) if at is None] == [
        "satura.rewrite",
        "satura.backend",
    ]


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("satura.rewrite.types.dims", "satura.rewrite.ops.registry"),  # from below
        ("satura.rewrite.egraph.saturate", "satura.rewrite.prove.search"),  # beside it
        ("satura.backend.emit.body", "satura.backend.helpers.scalars"),
        ("satura.rewrite.onnx.load", "satura.rules"),
        ("satura.rules.algebra", "satura.backend.target"),
        ("satura.backend.plan.plan", "satura.pipeline.stages"),
        ("satura.artifact.container", "satura.pipeline.inputs"),
        ("satura.experiments.sweep", "satura.commands.check"),
        ("satura.pipeline.stages", "satura.rewrite.dsl"),  # a former place
        ("satura.rewrite", "satura.rewrite.errors"),  # a package that has no place in the order
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "import {0}",
        "from {1} import {2}",
        "def f():\n    import {0}",
        "if TYPE_CHECKING:\n    import {0}",
    ],
    ids=["plain", "from", "lazy", "typing"],
)
def test_a_wrong_import_is_found(module: str, target: str, form: str) -> None:
    package, _, name = target.rpartition(".")
    found = wrong_imports(with_line(module, form.format(target, package, name)))
    assert found == [f"{module} imports {target}"]


def test_a_name_in_a_module_counts_as_the_module() -> None:
    line = "from satura.rewrite.ops.registry import Kind, Op"
    found = wrong_imports(with_line("satura.rewrite.types.dims", line))
    assert found == ["satura.rewrite.types.dims imports satura.rewrite.ops.registry"]


@pytest.mark.parametrize("form", ["import {0}", "def f():\n    import {0}"], ids=["plain", "lazy"])
@pytest.mark.parametrize(
    "modules",
    [
        ("satura.rewrite.types.dims", "satura.rewrite.types.attributes"),
        ("satura.pipeline.models", "satura.pipeline.stages"),
        ("satura.rewrite.egraph.classes", "satura.rewrite.egraph.decode",
         "satura.rewrite.egraph.saturate"),
    ],
    ids=len,
)  # fmt: skip
def test_a_circle_is_found(modules: tuple[str, ...], form: str) -> None:
    """The modules import one another from the last to the first; the first closes the circle."""
    assert all(b in imports(SOURCES)[a] for a, b in zip(modules[1:], modules, strict=False))
    planted = with_line(modules[0], form.format(modules[-1]))
    assert wrong_imports(planted) == []
    found = circle(planted)
    assert found[0] == found[-1]
    assert {modules[0], modules[-1]} <= set(found)
