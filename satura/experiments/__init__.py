"""The laboratory: what extractors choose and at what cost, and how true a cost model is.

from satura.experiments import trials

for trial in trials({"mine": "model.onnx"}, extractors={"mine": my_extractor}):
    print(trial.extractor, trial.cost, trial.gap)

`write_trials` and `read_trials` keep them as CSV, `plot_trials` draws them. An extractor is a
function of a `ChoiceGraph` that gives a `Result`, whose cost trials compute again from what the
goals need; `EXTRACTORS` has satura's by name, `dag_greedy` is the simplest that is of use. A cost
model is a subclass of `CostModel` whose method `seconds` says how long a dispatch of some
`Features` takes. `read_gym` and `gym_text` read and write choice graphs as the collection
extraction-gym has them.
"""

from satura.experiments.plot import plot_trials
from satura.experiments.sweep import Trial, trials
from satura.experiments.table import read_trials, write_trials
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import EXTRACTORS
from satura.rewrite.extract.features import Features
from satura.rewrite.extract.greedy import dag_greedy
from satura.rewrite.extract.gym import gym_text, read_gym

__all__ = [
    "EXTRACTORS",
    "ChoiceGraph",
    "CostModel",
    "Features",
    "Result",
    "Trial",
    "dag_greedy",
    "gym_text",
    "plot_trials",
    "read_gym",
    "read_trials",
    "trials",
    "write_trials",
]
