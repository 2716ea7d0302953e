"""Error of the average of own and federated ridge where helpers add noise to the sums over lags."""

from dataclasses import replace
from functools import reduce
from math import sqrt
from statistics import fmean

import numpy as np

from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.metrics import ridge_error
from client.tasks.traffic.sensor import with_federated_ridge
from common.arrays import Arrays, add
from common.config.run import RunConfig
from common.privacy.accounts import gdp_of
from common.secure.quantisation import integer_clip, noise_scale
from common.tasks.traffic.counts import (
    COVARIANCES,
    LAGS,
    covariance_template,
    to_covariances,
    to_sums,
    to_unit,
    visible_share,
)
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from studies.harness.bench import Bench
from studies.harness.row import Metrics
from studies.traffic.noised_section import EPSILONS
from studies.traffic.sets import Setting

DELTA, HELPERS, DRAWS = 1e-5, 2, 5


def noised_sums(bench: Bench, setting: Setting) -> dict[str, Metrics]:
    """Return row -> MSE of own ridge and of the average under noise, and the visible share of the sums."""
    dataset = bench.dataset
    options = TrafficOptions.model_validate({**setting.task})
    run = RunConfig(method="fedavg", task="traffic").task_run(TASK, dataset.vocabulary)
    learners = [TrafficLearner(run, replace(dataset, units=(series,))) for series in dataset.units]
    template = covariance_template(len(dataset.vocabulary.variables), options.history + options.horizon)
    parts = [to_unit(to_covariances(learner.counts(), template)) for learner in learners]
    total, size = reduce(add, parts), sum(a.size for a in template.values())
    own = fmean(ridge_error(sensor, "test", options.horizon) for learner in learners for sensor in learner.sensors)
    found = {}
    for epsilon in EPSILONS:
        bound = integer_clip(size)
        noise = noise_scale(gdp_of(epsilon, DELTA), bound, "signed") * sqrt(HELPERS) / bound
        errors, shares = [], []
        for draw in range(DRAWS):
            drawn = noise * np.random.default_rng(draw).standard_normal(total[COVARIANCES].shape)
            statics = to_sums({**total, COVARIANCES: total[COVARIANCES] + drawn}, noise)
            shares.append(visible_share(statics, dataset.vocabulary))
            pairs = zip(learners, parts, strict=True)
            errors.append(fmean(_error(learner, statics, part, options) for learner, part in pairs))
        found[f"epsilon-{epsilon}"] = {
            "ridge_mse": own,
            "mse": fmean(errors),
            "worst_mse": max(errors),
            "visible": fmean(shares),
        }
    return found


def _error(learner: TrafficLearner, statics: Arrays, part: Arrays, options: TrafficOptions) -> float:
    others = {**statics, f"{LAGS}_own": part[COVARIANCES]}
    averaged = [with_federated_ridge(sensor, others, options) for sensor in learner.sensors]
    return fmean(ridge_error(sensor, "test", options.horizon) for sensor in averaged)
