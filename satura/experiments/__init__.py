"""The laboratory: what extractors choose and at what cost, and how true a cost model is.

from satura.experiments import trials

for trial in trials({"mine": "model.onnx"}, extractors={"mine": my_extractor}):
    print(trial.extractor, trial.cost, trial.gap)
"""

from satura.experiments.sweep import Trial, trials

__all__ = ["Trial", "trials"]
