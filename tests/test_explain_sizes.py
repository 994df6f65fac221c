"""`satura explain --sizes`: which classes sizes are of, and what kept them apart."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import satura
from satura.backend.target import host_target
from satura.commands.cli import main
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import make_model, node


def test_explain_names_the_fact_that_kept_sizes_from_a_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = Builder()
    x, other = (build.input(name, DType.F32, (8, symbol(name))) for name in "nm")
    sums = {name: build.reduce("sum", each, (1,)) for name, each in (("y", x), ("z", other))}
    satura.save(build.program(sums), tmp_path / "model.onnx")  # a size that is not named is typical
    edge = 32 * host_target().lanes  # rows from here on are summed in blocks
    sizes = f"n={edge - 1}:{edge + 1}"
    command = ["explain", str(tmp_path / "model.onnx"), "--sizes", sizes, "--json"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert not ended.value.code
    several, one = sorted(json.loads(capsys.readouterr().out), key=lambda each: -each["plans"])
    assert (several["plans"], one["plans"], one["sizes"]["n"]) == (2, 1, edge - 1)
    assert one["missed"] is None and several["missed"] in one["facts"]
    with pytest.raises(SystemExit):
        main(command[:-1])
    text = capsys.readouterr().out
    assert text.startswith("3 sizes, 2 classes\nall classes\n") and text.count("n != 0") == 1
    assert (
        f"\n  {several['missed']}\n" in text
        and f"\n  asked: n={edge}:{edge + 1}, m=64:64\n" in text
    )
    with pytest.raises(SystemExit):
        main([*command[:3], "n=0:2", "--json"])  # without the classes that were met before
    found = json.loads(capsys.readouterr().out)
    assert sum(each["plans"] for each in found) == 3
    assert sorted(each["asked"]["n"] for each in found)[0][0] == 0


def test_explain_counts_sizes_that_a_program_is_for_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    nodes = [node("Shape", "x", "k"), node("TopK", "x k", "y places")]
    onnx.save(make_model(nodes, {"x": ("n",)}, opset=17), path)
    for sizes, classes in (("n=16", 0), ("n=15:16", 1)):
        with pytest.raises(SystemExit) as ended:
            main(["explain", str(path), "--sizes", sizes])
        assert not ended.value.code
        first, second, *_ = capsys.readouterr().out.splitlines()
        assert first.endswith(f", {classes} class{'' if classes == 1 else 'es'}")
        assert second.startswith("1 size of no class: the program is for these alone")


@pytest.mark.parametrize(
    ("option", "sizes", "asked", "notes"),
    [
        ("--sizes", "n=0:1,m=0:4", 10, ["4 sizes do not run, first n=0 m=0: the program does not"]),
        ("--size", "m=1:2,n=4:5", 4, ["2 sizes do not run, first m=1 n=4: "]),
        ("--size", "m=2:3", 2, []),
        ("--sizes", "n=0:300,m=2:301", 1000, ["a sample: 1,000 of 90,300 sizes"]),
        ("--sizes", "n=0:300,m=1:300", 1000, ["a sample: 1,000 of 90,300 sizes", " do not run, "]),
    ],
)
def test_explain_samples_what_is_too_much_and_counts_sizes_that_do_not_run(
    option: str, sizes: str, asked: int, notes: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "model.onnx"
    pool = [node("MaxPool", "x", "z", kernel_shape=[3])]
    onnx.save(make_model(pool, {"x": ("n", 2, "m")}, {}, outputs=("z",)), path)
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(path), option, sizes, "--json"])
    out, err = capsys.readouterr()
    assert not ended.value.code, err
    assert all(note in line for note, line in zip(notes, err.splitlines(), strict=True)), err
    refused = sum(int(line.split()[1]) for line in err.splitlines() if "not run" in line)
    found = json.loads(out)
    assert sum(each["plans"] for each in found) + refused == asked
    if asked == 1000:
        of_n = [each["asked"]["n"] for each in found]
        assert (min(of_n)[0], max(high for _, high in of_n)) == (0, 300), "both ends are asked"
