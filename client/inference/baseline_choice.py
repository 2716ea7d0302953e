"""Choice between a model with noise and the simple baseline, which sends nothing."""

import numpy as np

from client.tasks.learner import Learner
from client.training.comparison import measure_units
from common.arrays import Arrays
from common.config.run import RunConfig
from common.tasks.registry import TASKS


def prefers_baseline(config: RunConfig, learner: Learner, model: Arrays, statics: Arrays) -> bool:
    """Return True if noise left the model no better than the baseline on own held-out data.

    Validation data decide; test data where the run held out none. The choice never leaves the client, so it costs no
    privacy. Models trained without noise, and tasks whose models fall back by themselves, are used as they are.
    """
    comparison = TASKS[config.task].comparison
    if config.privacy.unit == "none" or comparison is None or not comparison.answers:
        return False
    for split in ("validation", "test"):
        own, simple = measure_units(learner, model, statics, split)
        if (measured := np.isfinite(simple)).any():
            difference = float((own - simple)[measured].mean())
            return not (difference if comparison.higher_is_better else -difference) > 0  # NaN: the model diverged
    return False


def describe_choice(task: str) -> str:
    """Return the remark of a command that answers by the baseline."""
    comparison = TASKS[task].comparison
    assert comparison is not None  # there is a baseline to choose
    name = comparison.baseline
    return f"privacy noise left the model no better than {name} on held-out data; {name} answers, which sends nothing"
