"""Interrupts at random moments of a process: `python -m tests.interrupted FOLDER SEED MOMENTS`.

Each must end the call under way in a KeyboardInterrupt, whatever it was doing, and the next call
must be right. The first call of the process also imports satura's stages.
"""

from __future__ import annotations

import _weakrefset
import random
import signal
import sys
from pathlib import Path
from types import FrameType

import satura

EXTENTS = (33, 40, 47)
LONGEST = 1 << 20  # calls until an interrupt that is sure to come


class Moment:
    """An interrupt some seconds after it is awaited."""

    def __init__(self) -> None:
        self.was_raised = False
        signal.signal(signal.SIGALRM, self._interrupt)

    def come_after(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or a little later: Python drops all that its own callbacks of
        weak references raise."""
        if frame is not None and frame.f_code.co_filename == _weakrefset.__file__:
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
            return
        self.was_raised = True
        raise KeyboardInterrupt


def write_models(folder: Path) -> list[Path]:
    """Models whose kernels differ; their input is all ones, their output is their extent."""
    from satura.rewrite.program.builder import Builder
    from satura.rewrite.types.tensor_type import DType

    paths = []
    for extent in EXTENTS:
        for function in ("abs", "relu", "floor", "ceil"):
            build = Builder()
            x = build.input("x", DType.F32, (extent, extent))
            y = build.unary(function, build.matmul(x, x))
            paths.append(folder / f"{function}{extent}.onnx")
            satura.save(build.program({"y": y}), paths[-1])
    return paths


def outputs(path: Path, calls: int) -> set[float]:
    """The values of the output's elements after some calls on ones."""
    compiled = satura.compile(path, threads=2)
    import numpy as np

    from satura.rewrite.types.dims import static

    x = np.ones([static(extent) for extent in compiled.inputs["x"].shape], np.float32)
    for _ in range(calls):
        result = compiled.run({"x": x})["y"]
    return set(result.ravel().tolist())


def main(folder: Path, seed: int, moments: int) -> None:
    draw = random.Random(seed)
    paths = sorted(folder.glob("*.onnx"))
    for number in range(moments):
        path = draw.choice(paths)
        longest = 2.0 if number == 0 else draw.choice([0.01, 0.1, 0.5])
        moment = Moment()
        try:
            moment.come_after(draw.random() * longest + 1e-6)
            outputs(path, LONGEST)
        except KeyboardInterrupt:
            assert moment.was_raised
        extent = float(path.stem.lstrip("abcdefghijklmnopqrstuvwxyz"))
        assert outputs(path, 1) == {extent}, (number, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
