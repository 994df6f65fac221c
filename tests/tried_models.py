"""What experiments are tried on: a small model, an e-graph of one node, a cost model."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.features import Features
from tests.onnx_models import make_model, node, random_input


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.onnx"
    weights = {name: random_input(8, 8, 3, 3) for name in "wv"}
    layers = [node("Conv", "x w", "a"), node("Relu", "a", "b"), node("Conv", "b v")]
    onnx.save(make_model(layers, {"x": [1, 8, 14, 14]}, weights), path)
    return path


class Fixed(CostModel):
    """Says of every dispatch what it was made with; its __init__ does not call the other one."""

    def __init__(self, said: object) -> None:
        self.said = said

    def seconds(self, features: Features) -> float:
        return self.said  # type: ignore[return-value]


def graph_file(folder: Path, name: str = "egraph.json", cost: float = 1.0) -> Path:
    """An e-graph of one node."""
    path = folder / name
    text = {"nodes": {"x": {"eclass": "0", "cost": cost}}, "root_eclasses": ["0"]}
    path.write_text(json.dumps(text))
    return path
