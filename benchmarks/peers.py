"""Peers: the same model in other runtimes, on the same threads, as far as they are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from time import perf_counter

import onnx

import satura
from satura.commands.bench import Runner, onnxruntime_runner, openvino_runner
from satura.rewrite.types.tensor_type import Array

PACKAGES = ("satura", "numpy", "numba", "llvmlite", "onnx", "onnxruntime", "openvino", "torch")
OPENVINO_HINT = "f32"  # its default is bf16 on machines that have it


def runners(
    model: onnx.ModelProto, threads: int, arguments: dict[str, Array], wanted: tuple[str, ...]
) -> Iterator[tuple[str, Runner, float]]:
    """The name of each runtime, one run in it, and the seconds that preparing it took."""
    content = model.SerializeToString()

    def in_satura() -> Runner:
        compiled = satura.compile(model, threads)
        return lambda: compiled.run(arguments)

    makers: dict[str, Callable[[], Runner]] = {
        "satura": in_satura,
        "onnxruntime": lambda: onnxruntime_runner(content, threads, arguments),
        "openvino": lambda: openvino_runner(content, threads, arguments),
        "torch": lambda: _torch_runner(model, threads, arguments),
    }
    for name, make in makers.items():
        if name == "torch" and find_spec("onnx2torch") is None:
            continue  # nothing turns the model into a module of torch's
        if name in wanted and find_spec(name) is not None:
            started = perf_counter()
            run = make()
            run()
            yield name, run, perf_counter() - started


def versions() -> dict[str, str]:
    """The versions of what is compared, of the packages that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _torch_runner(model: onnx.ModelProto, threads: int, arguments: dict[str, Array]) -> Runner:
    """torch.compile of the model that onnx2torch makes."""
    from importlib import import_module

    torch, onnx2torch = import_module("torch"), import_module("onnx2torch")
    torch.set_num_threads(threads)
    module = torch.compile(onnx2torch.convert(model).eval())
    given = [torch.from_numpy(each) for each in arguments.values()]
    names = [output.name for output in model.graph.output]

    def run() -> dict[str, Array]:
        with torch.no_grad():
            results = module(*given)
        tensors = results if isinstance(results, tuple | list) else [results]
        return {name: each.numpy() for name, each in zip(names, tensors, strict=True)}

    return run
