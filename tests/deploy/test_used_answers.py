"""Runs with noise measure what clients use: each the better of model and baseline on its own validation data."""

from pathlib import Path

import pytest

from client.data.read import read_all
from common.config.parse import parse
from common.metrics import USED
from common.tasks.registry import TASKS
from deploy.pages.statement import noise_cost
from deploy.simulation.grid import simulate


@pytest.mark.parametrize(("task", "data"), [("rules", "demo:0-12"), ("sessions", "demo:0-6"), ("traffic", "demo:0-2")])
def test_a_run_with_noise_states_model_floor_and_what_clients_use(tmp_path: Path, task: str, data: str) -> None:
    about = {"method": "fedavg", "task": task, "run-id": "r", "rounds": 1, "federation.min-clients": 1}
    noise = {"privacy.unit": "client", "privacy.epsilon": 1.0, f"tasks.{task}.validation-share": 0.3}
    result = simulate(parse({**about, **noise}), read_all(task, data), tmp_path, noise_seed=0)
    metric = TASKS[task].objective.metric
    used, floor = f"{USED.prefix}{metric}", TASKS[task].simple[metric]
    measured = [own.metrics for own in result.clients.values() if metric in own.metrics]
    assert measured
    assert all(own[used] in (own[metric], own[floor]) for own in measured)
    assert min(own[used] for own in measured) <= result.metrics[used] <= max(own[used] for own in measured)
    assert "as clients use it" in noise_cost(result)
