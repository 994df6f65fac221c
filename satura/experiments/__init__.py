"""The laboratory: what extractors choose and at what cost, and how true a cost model is.

from satura.experiments import trials

for trial in trials({"mine": "model.onnx"}, extractors={"mine": my_extractor}):
    print(trial.extractor, trial.cost, trial.gap)

`write_trials` and `read_trials` keep them as CSV, `plot_trials` draws them.
"""

from satura.experiments.plot import plot_trials
from satura.experiments.sweep import Trial, trials
from satura.experiments.table import read_trials, write_trials

__all__ = ["Trial", "plot_trials", "read_trials", "trials", "write_trials"]
