"""NonMaxSuppression by its kernel, against NumPy and onnxruntime, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from onnx import TensorProto

import satura
from satura.backend.helpers.namespace import meaning
from satura.backend.jit.kernel import KernelError
from satura.backend.jit.lowering import translate_kernel
from satura.backend.run import kept_boxes as by_kernel
from satura.backend.run.kept_boxes import SUPPRESSION, boxes_keeper
from satura.rewrite.errors import CallError
from satura.rewrite.program.suppression import kept_boxes
from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import make_model, node
from tests.onnxruntime_reference import run
from tests.tiers import deep_but, seeds

Case = tuple[Array, Array, int, float, float | None, bool]
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 3e38], np.float32)

pytestmark = pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")


def drawn(seed: int, is_special: bool) -> Case:
    """Boxes on a grid, with corners in any order, many of no area, and scores of which many are
    equal; some of `SPECIAL` among both, where `is_special`."""
    random = np.random.default_rng(seed)
    batches, classes = map(int, random.integers(1, (4, 5)))
    count = int(random.choice([0, 1, 2, 15, 40, 200]))
    boxes = random.integers(0, random.integers(2, 40), (batches, count, 4)).astype(np.float32)
    scores = random.integers(-3, random.integers(1, 50), (batches, classes, count)) / np.float32(8)
    scores = scores.astype(np.float32)
    if is_special:
        for array in (boxes, scores):
            array[random.random(array.shape) < 0.1] = random.choice(SPECIAL)
            array[random.random(array.shape) < 0.1] = random.choice(SPECIAL)
    most = int(random.choice([-1, 0, 1, 2, 20, 10**9]))
    overlap = float(np.float32(random.choice([0, 1, 1 / 2, 1 / 3, random.random()])))
    score = None if random.random() < 0.3 else float(random.choice([0, *scores.flat]))
    return boxes, scores, most, overlap, score, bool(random.integers(2))


def large(seed: int) -> Case:
    """More boxes than one thread does alone, of which some hundred are kept of each class."""
    random = np.random.default_rng(seed)
    at, size = 100 * random.random((2, 500, 2)), 1 + 20 * random.random((2, 500, 2))
    boxes = np.concatenate([at, at + size], axis=-1).astype(np.float32)
    return boxes, random.random((2, 20, 500)).astype(np.float32) ** 4, 300, 0.5, 0.1, False


def assert_same(found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (np.dtype(np.int64), wanted.shape)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("is_special", [False, True])
@pytest.mark.parametrize("seed", deep_but(range(40), seeds(3000), seeds(3000)))
def test_the_kernel_keeps_what_numpy_keeps(seed: int, is_special: bool) -> None:
    case = drawn(seed, is_special)
    assert_same(boxes_keeper(1)(*case), kept_boxes(*case))


@pytest.mark.parametrize("seed", deep_but(range(4), seeds(300), seeds(300)))
def test_a_model_keeps_what_onnxruntime_keeps(seed: int) -> None:
    boxes, scores, most, overlap, score, is_by_center = drawn(seed, is_special=False)
    limits: dict[str, object] = {"most": np.int64(most), "overlap": np.float32(overlap)}
    if score is not None:
        limits["least"] = np.float32(score)
    arguments = {"boxes": boxes, "scores": scores}
    shapes = {name: array.shape for name, array in arguments.items()}
    nms = node("NonMaxSuppression", " ".join([*shapes, *limits]), center_point_box=is_by_center)
    model = make_model([nms], shapes, limits, 18)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    assert_same(satura.compile(model, 1).run(arguments)["y"], run(model, arguments)[0])


@pytest.mark.parametrize("inputs", ["", " - - least", " most - least", " most"])
def test_limits_may_be_left_out(inputs: str) -> None:
    boxes, scores, *_ = drawn(8, is_special=False)
    arguments = {"boxes": boxes, "scores": scores}
    shapes = {name: array.shape for name, array in arguments.items()}
    given = {"most": np.int64(5), "least": np.float32(1)}
    limits: dict[str, object] = {name: given[name] for name in inputs.split() if name in given}
    model = make_model([node("NonMaxSuppression", f"boxes scores{inputs}")], shapes, limits, 18)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    assert_same(satura.compile(model, 1).run(arguments)["y"], run(model, arguments)[0])


def test_results_do_not_depend_on_threads() -> None:
    cases = [large(seed) for seed in range(2)]
    wanted = [kept_boxes(*case) for case in cases]
    for threads in (1, 2, 7):
        keep = boxes_keeper(threads)
        with ThreadPoolExecutor(3) as callers:
            found = [callers.submit(keep, *case) for case in cases * 3]
        for each, result in zip(found, wanted * 3, strict=True):
            assert_same(each.result(), result)


def test_arrays_may_lie_in_any_way() -> None:
    boxes, scores, most, overlap, score, is_by_center = large(2)
    turned = np.asfortranarray(boxes), scores[..., ::-1], most, overlap, score, is_by_center
    assert_same(boxes_keeper(2)(*turned), kept_boxes(*turned))


def test_shapes_that_do_not_fit_are_refused() -> None:
    nms = node("NonMaxSuppression", "boxes scores most")
    shapes: dict[str, tuple[int | str, ...]] = {
        "boxes": ("b", "n", 4), "scores": ("b", 2, "m"),
    }  # fmt: skip
    compiled = satura.compile(make_model([nms], shapes, {"most": np.int64(3)}, 18), 1)
    boxes, scores = np.ones((1, 2, 4), np.float32), np.ones((1, 2, 9), np.float32)
    with pytest.raises(CallError, match="NonMaxSuppression"):
        compiled.run({"boxes": boxes, "scores": scores})


def test_numpy_takes_the_place_of_a_kernel_that_does_not_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(source: object) -> int:
        raise KernelError("no code for this CPU")

    monkeypatch.setattr(by_kernel, "kernel_address", fail)
    assert boxes_keeper(1) is kept_boxes


def test_its_text_needs_no_numba() -> None:
    translate_kernel(SUPPRESSION.text, "suppression", meaning)


@pytest.mark.deep
def test_a_second_process_compiles_nothing() -> None:
    boxes_keeper(1)
    script = (
        "import sys; from satura.backend.run.kept_boxes import boxes_keeper, kept_boxes;"
        "assert boxes_keeper(1) is not kept_boxes;"
        "print([name for name in sys.modules if name.startswith(('llvmlite', 'numba'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
