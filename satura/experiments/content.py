"""Digests of models and settings: they show whether a stored trial is still up to date."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from onnx import ModelProto

from satura.experiments.own_code import attributes, digest_of_code
from satura.pipeline.models import Model
from satura.pipeline.rule_sets import Rules
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.errors import CallError, ModelError, brief
from satura.rewrite.extract.choice_graph import ChoiceGraph, Extractor
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import EXTRACTORS
from satura.rewrite.onnx.files import ModelApart, weight_files
from satura.rewrite.program.program import Program
from satura.rewrite.types.stored import Stored, StoredFile

_KINDS = (
    str, Path, bytes, bytearray, memoryview, ModelProto, ModelApart, Program, ChoiceGraph,
)  # fmt: skip
_AND = "+"  # between digests of an e-graph and of an extractor
_LENGTH = 16  # hexadecimal digits, as many as a reader compares


def check_kind(name: str, model: object) -> None:
    """Raise CallError for what is neither a model nor a choice graph."""
    if not isinstance(model, _KINDS):
        raise CallError(
            f"model {name!r} is {brief(model)}; it is a path, its bytes, an onnx.ModelProto, a"
            " Program or a ChoiceGraph, which of an e-graph's JSON is read_gym(text).computable()"
        )


def model_digest(model: Model | ChoiceGraph) -> str:
    """A digest of what a model is, wherever it stands; "" for what cannot be read.

    A file has that of its bytes and of the files that hold its weights.
    """
    digest = hashlib.sha256()
    try:
        for part in _parts(model):
            digest.update(part)
    except (OSError, ModelError):  # loading it says what is wrong
        return ""
    return digest.hexdigest()


def content_of(model: str, rules: Rules, cost: CostModel, limits: Limits) -> str:
    """A digest of a model's digest and of what it is tried with; "" where the model has none.

    An own cost model counts with its code.
    """
    if not model:
        return ""
    named = rules if isinstance(rules, str) else rules.digest
    common = attributes(CostModel())
    kind, own = type(cost), {k: v for k, v in attributes(cost).items() if k not in common}
    name = kind.__module__, kind.__qualname__
    parts = model, named, *name, cost.identity, digest_of_code([own, kind]), limits
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:_LENGTH]


def with_extractor(content: str, name: str, extractor: Extractor) -> str:
    """The content of a trial on an e-graph of some content; "" where that is not known.

    Behind it stands a digest of the extractor's code, unless it is satura's own of this name.
    """
    is_own = EXTRACTORS.get(name) is extractor
    return content if is_own or not content else f"{content}{_AND}{digest_of_code(extractor)}"


def of_graph(content: str) -> str:
    """The content of the e-graph of a trial of some content."""
    return content.partition(_AND)[0]


def _parts(model: Model | ChoiceGraph) -> Iterator[bytes | memoryview]:
    match model:
        case ChoiceGraph():
            yield repr(model).encode()
        case Program():
            yield str(model).encode(errors="surrogatepass")
            for node in model.nodes:
                if node.op.name == "constant":
                    yield node.constant.digest
        case ModelProto():
            yield model.SerializeToString(deterministic=True)
        case ModelApart():
            yield from _parts(model.proto)
            for name, stored in sorted(model.weights.items()):
                yield name.encode(errors="surrogatepass")
                yield from stored.blocks()
        case str() | Path():
            path = Path(model)
            for file in (path, *filter(Path.is_file, weight_files(path))):
                source = StoredFile(file)
                yield from Stored(source, 0, source.size).blocks()
        case bytes() | bytearray() | memoryview():
            yield model
