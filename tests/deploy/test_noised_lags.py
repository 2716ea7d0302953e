"""Autocovariances of sensors in secure sums with noise."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.tasks.registry import CLIENT_TASKS
from common.config.parse import parse
from common.tasks.traffic.counts import (
    COVARIANCES,
    LAGS,
    NOISE,
    PAIRS,
    covariance_template,
    linear_forecast,
    to_covariances,
    to_unit,
)
from common.tasks.traffic.task import TASK
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory
from server.secure import parties as sizes
from tests.support.count_runs import SENSORS, counting
from tests.support.sensors import MEASURES


def test_noised_autocovariances_are_one_unit_vector_a_sensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of helpers at a huge ε changes a sum of unit vectors by less than .01; every client leaves out its own."""
    monkeypatch.setattr("server.run.demo_vocabulary", lambda name: MEASURES)
    noise = {"privacy.unit": "client", "privacy.epsilon": 1e5, "privacy.metric-share": 0.0}
    seen: list[dict[str, Any]] = []

    def forecast(sums: dict[str, Any], history: int, horizon: int, noise: float) -> Any:
        seen.append({**sums, NOISE: noise})
        return linear_forecast(sums, history, horizon, noise)

    monkeypatch.setattr("client.tasks.traffic.sensor.linear_forecast", forecast)
    config = parse(counting("traffic", "helpers", **noise))
    assert simulate(config, SENSORS, tmp_path, noise_seed=1).status == "completed"
    model = RunDirectory(tmp_path, "toy").load_model()[0]
    learners = [
        CLIENT_TASKS["traffic"].learner(config.task_run(TASK, MEASURES), replace(SENSORS, units=(one,)))
        for one in SENSORS.units
    ]
    template = covariance_template(len(MEASURES.variables), len(model[LAGS]))
    parts = [to_unit(to_covariances(learner.counts(), template))[COVARIANCES] for learner in learners]
    assert [np.linalg.norm(part) for part in parts] == pytest.approx([1.0] * 3)
    np.testing.assert_allclose(model[LAGS], sum(parts), atol=0.05)
    assert (model[PAIRS] == 1).all()
    assert 0 < model[NOISE].item() < 0.02
    others = {tuple(np.round(model[LAGS] - part, 1).ravel()) for part in parts}
    assert {tuple(np.round(sums[LAGS], 1).ravel()) for sums in seen} == others


@pytest.mark.parametrize(
    ("sensors", "epsilon", "is_on"), [(60, 8.0, False), (61, 8.0, True), (373, 1.0, False), (374, 1.0, True)]
)
def test_auto_sums_autocovariances_where_noise_leaves_enough(sensors: int, epsilon: float, is_on: bool) -> None:
    noise = {"privacy.unit": "client", "privacy.epsilon": epsilon, "tasks.traffic.count-offset": "auto"}
    config = sizes.resolve_counts(MEASURES, parse(counting("traffic", "helpers", **noise)), sensors)
    assert config.task_options.count_offset == ("auto" if is_on else False)
