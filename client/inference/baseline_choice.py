"""Choice between a model with noise and the simple baseline, which sends nothing."""

import numpy as np

from client.tasks.learner import Learner
from client.training.comparison import measure_units
from common.arrays import Arrays
from common.config.run import RunConfig
from common.metrics.known import USED
from common.tasks.registry import TASKS
from common.wire.messages import Metrics


def offers_baseline(config: RunConfig) -> bool:
    """Return True if clients of the run choose between its model and the baseline.

    Models trained without noise, and tasks whose models fall back by themselves, are used as they are.
    """
    comparison = TASKS[config.task].comparison
    return config.privacy.unit != "none" and comparison is not None and comparison.answers


def prefers_baseline(config: RunConfig, learner: Learner, model: Arrays, statics: Arrays) -> bool:
    """Return True if noise left the model no better than the baseline on own held-out data.

    Validation data decide, and the baseline answers a client that has none; test data decide where the run held out no
    validation data. The choice never leaves the client, so it costs no privacy.
    """
    comparison = TASKS[config.task].comparison
    if not offers_baseline(config) or comparison is None:
        return False
    for split in ("validation", "test"):
        own, simple = measure_units(learner, model, statics, split)
        if (measured := np.isfinite(simple)).any():
            if split == "test" and config.task_options.validation_share:
                return True
            difference = float((own - simple)[measured].mean())
            return not (difference if comparison.higher_is_better else -difference) > 0  # NaN: the model diverged
    return False


def measure_used(
    config: RunConfig, learner: Learner, model: Arrays, statics: Arrays, measured: tuple[Metrics, Metrics]
) -> tuple[Metrics, Metrics]:
    """Return the metric of what the client uses, and its weight; empty unless validation data decide.

    Args:
        config: Configuration of the run.
        learner: The client's data.
        model: The client's model.
        statics: Untrained inputs of the model.
        measured: Metrics of model and baseline on test data, and their weights.
    """
    task, (metrics, weights) = TASKS[config.task], measured
    if not offers_baseline(config) or task.comparison is None or not config.task_options.validation_share:
        return {}, {}
    metric = task.comparison.metric
    used = task.simple[metric] if prefers_baseline(config, learner, model, statics) else metric
    if used not in metrics:
        return {}, {}
    return {f"{USED.prefix}{metric}": metrics[used]}, {f"{USED.prefix}{metric}": weights[used]}


def describe_choice(task: str) -> str:
    """Return the remark of a command that answers by the baseline."""
    comparison = TASKS[task].comparison
    assert comparison is not None  # there is a baseline to choose
    name = comparison.baseline
    return f"privacy noise left the model no better than {name} on held-out data; {name} answers, which sends nothing"
