"""The documents: what they show runs, what they link to exists, what is generated is current."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import warnings
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto

from satura import language as satura_language
from satura.commands.coverage import PARTLY
from satura.commands.language_page import language_page
from satura.commands.pages import ops_page, rules_page
from satura.commands.verdicts import recorded_verdicts
from satura.errors import HostFallbackWarning
from satura.experiments import calibration
from satura.experiments.training import programs
from satura.pipeline.api import compile as compile_model
from satura.pipeline.rule_file import load_rules
from satura.rewrite.program import host_call
from satura.rules import DEFAULT
from tests.documents import ENVIRONMENT, ROOT, satura
from tests.onnx_models import Inputs, Typed, make_model, node, random_input
from tests.tiers import deep_but

BOOL = TensorProto.BOOL
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# These are followed step by step in tests/test_tutorial.py and tests/test_how_it_works.py.
FOLLOWED = ("tutorial.md", "how-it-works.md")
SCRIPTS = [document for document in DOCUMENTS if document.name not in FOLLOWED]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
QUICK_EXAMPLES = [path for path in EXAMPLES if path.name == "user_rule.py"]
# What takes long as written is run on less, and calibration on three of its programs.
CHECK = "satura check examples/ten_rules.py"
DEAR = (
    "python -m benchmarks", "satura bench", "satura calibrate", "satura experiment",
    "satura rules --worth",
)  # fmt: skip
"""What takes seconds even then; tests of each are elsewhere."""
QUICKER = {
    "satura why model.onnx --choice 9": "satura why model.onnx --choice 3",
    "satura bench model.onnx": "satura bench model.onnx --rounds 1",
    "python -m benchmarks compare --threads 2 --csv all.csv": (
        "python -m benchmarks compare --threads 1 --rounds 1 --csv all.csv tiny_rope"
    ),
    "python -m benchmarks layers --dtype f32": (
        "python -m benchmarks layers --dtype f32 --only softmax --rounds 1"
    ),
    "python -m benchmarks memory": "python -m benchmarks memory tiny_rope",
    "python -m benchmarks opening": "python -m benchmarks opening tiny_rope --rounds 1",
    "python -m benchmarks rules": ("python -m benchmarks rules --threads 1 --rounds 1 tiny_rope"),
    "python -m benchmarks saved": "python -m benchmarks saved tiny_rope --rounds 1",
    "python -m benchmarks scaling": "python -m benchmarks scaling tiny_rope",
    "python -m benchmarks search": "python -m benchmarks search tiny_rope",
    "python -m benchmarks executables": (
        "python -m benchmarks executables --threads 1 --rounds 1 tiny_rope"
    ),
    "python -m benchmarks sizes": (
        "python -m benchmarks sizes --threads 1 --rounds 1 --lengths 4 tiny_rope_attention"
    ),
    CHECK: f"{CHECK} --rule relu_of_never_negative",
}


def blocks(document: Path, language: str) -> list[str]:
    """Contents of the fenced code blocks of `language` in a document."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.M | re.S)


def commands(document: Path) -> list[str]:
    """Every line of the document's shell blocks, without comments."""
    lines = "\n".join(blocks(document, "sh")).splitlines()
    stripped = [line.partition("#")[0].strip() for line in lines]
    return [line for line in stripped if line]


def named(path: Path) -> str:
    return path.name


def identifier(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the documents' commands name; the model is a small one."""
    layers = [
        node("Transpose", "x", "rows"),
        node("Relu", "rows", "positive"),
        node("Transpose", "positive", "columns"),
        node("MatMul", "columns weights", "y"),
    ]
    model = make_model(layers, {"x": [8, 4]}, {"weights": random_input(4, 3)})
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    np.savez(tmp_path / "in.npz", allow_pickle=False, x=random_input(8, 4))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document", deep_but(SCRIPTS[2:], SCRIPTS), ids=identifier)
def test_python_blocks_run(document: Path, workplace: Path) -> None:
    """The blocks of one document are one script, as a reader would paste them."""
    script = workplace / f"{document.stem}.py"
    script.write_text("\n".join(blocks(document, "python")))
    # A process of its own: what a document declares must not stay in the registries.
    subprocess.run([sys.executable, script], check=True, cwd=workplace, env=ENVIRONMENT)


@pytest.mark.parametrize("document", SCRIPTS, ids=identifier)
def test_a_block_that_imports_anything_imports_all_it_uses(document: Path) -> None:
    """A reader may paste it into a file of its own."""
    before: set[str] = set()
    for block in blocks(document, "python"):
        nodes = [*ast.walk(ast.parse(block))]
        imports = [each for each in nodes if isinstance(each, ast.Import | ast.ImportFrom)]
        imported = {alias.asname or alias.name for each in imports for alias in each.names}
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not imports or not used & before - imported, block
        before |= imported


@pytest.mark.parametrize("document", deep_but(SCRIPTS[2:], SCRIPTS), ids=identifier)
def test_commands_run(document: Path, workplace: Path) -> None:
    run([line for line in commands(document) if not line.startswith(DEAR)], workplace)


@pytest.mark.deep
def test_dear_commands_run(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "programs", lambda seed: list(islice(programs(seed), 3)))
    dear = [line for each in SCRIPTS for line in commands(each) if line.startswith(DEAR)]
    assert len(dear) >= len(DEAR)
    run(dear, workplace)


def run(lines: list[str], workplace: Path) -> None:
    """Run commands of a document, in order."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    for command in lines:
        words = shlex.split(QUICKER.get(command, command))
        if words[0] == "make":
            assert set(words[1:]) <= set(targets), command
        elif words[0] == "python":
            environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}
            subprocess.run([sys.executable, *words[1:]], check=True, cwd=workplace, env=environment)
        elif words[0] == "satura":
            code, printed = satura(words[1:], workplace)
            assert code == 0, (command, printed)
        else:
            assert words[0] in ("git", "cd", "pip"), f"{command} is not tested"


@pytest.mark.parametrize("document", DOCUMENTS, ids=identifier)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("example", deep_but(QUICK_EXAMPLES, EXAMPLES), ids=named)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, example], check=True, cwd=tmp_path, env=ENVIRONMENT)


@pytest.mark.deep
def test_ten_rules_are_sound(workplace: Path) -> None:
    assert satura(shlex.split(CHECK)[1:], workplace)[0] == 0


def test_ten_rules_are_not_of_the_book() -> None:
    ten = load_rules(ROOT / "examples" / "ten_rules.py")
    assert len(ten) == 10
    assert not {rule.name for rule in ten} & {rule.name for rule in DEFAULT}


IN_PART: dict[str, tuple[list[NodeProto], Inputs]] = {
    "RoiAlign": (
        [node("RoiAlign", "x r b", output_height=2, output_width=2)],
        {"x": [1, 3, 8, 8], "r": [2, 4], "b": Typed([2])},
    ),
    "ScatterElements": (
        [node("ScatterElements", "x i u", reduction="max")],
        {"x": Typed([3], BOOL), "i": Typed([2]), "u": Typed([2], BOOL)},
    ),
    "Compress": ([node("Compress", "x m")], {"x": [3], "m": Typed(["m"], BOOL)}),
    "Range": (
        [node("ReduceSum", "x", "s", keepdims=0), node("Range", "zero s one")], {"x": [3, 4]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("op", IN_PART)
def test_ops_that_the_page_has_on_the_host_in_part_warn_so(op: str) -> None:
    """Also as an error, as the page says."""
    nodes, inputs = IN_PART[op]
    model = make_model(nodes, inputs, {"zero": np.float32(0), "one": np.float32(1)}, 18)
    assert op in " ".join(PARTLY)
    with pytest.warns(HostFallbackWarning, match=op):
        compile_model(model, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HostFallbackWarning)
        with pytest.raises(HostFallbackWarning):
            compile_model(model, threads=1)
    assert HostFallbackWarning is host_call.HostFallbackWarning  # its former place


def test_ops_page_is_current() -> None:
    assert (ROOT / "docs" / "ops.md").read_text() == ops_page(), "run `make docs`"


def test_language_page_is_current() -> None:
    assert (ROOT / "docs" / "language.md").read_text() == language_page(), "run `make docs`"


def test_the_language_page_has_every_name() -> None:
    entries = re.findall(r"^- `(\w+)", language_page(), re.M)
    assert set(entries) == set(satura_language.__all__)


def test_rules_page_is_current() -> None:
    assert (ROOT / "docs" / "rules.md").read_text() == rules_page(), "run `make docs`"


def test_a_verdict_is_recorded_for_every_rule_of_the_book() -> None:
    assert list(recorded_verdicts()) == [rule.name for rule in DEFAULT], "run `make docs`"
