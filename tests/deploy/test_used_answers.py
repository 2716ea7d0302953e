"""Runs measure what clients use: each its model, or a baseline that is better on its own validation data."""

from pathlib import Path

import pytest

from client.data.read import read_all
from common.config.parse import parse
from common.metrics import USED
from common.options import Scalar
from common.tasks.registry import TASKS
from deploy.pages.statement import noise_cost
from deploy.simulation.grid import simulate


@pytest.mark.parametrize(("task", "data"), [("rules", "demo:0-12"), ("sessions", "demo:0-6"), ("traffic", "demo:0-2")])
def test_a_run_with_noise_states_model_floor_and_what_clients_use(tmp_path: Path, task: str, data: str) -> None:
    about = {"method": "fedavg", "task": task, "run-id": "r", "rounds": 1, "federation.min-clients": 1}
    noise = {"privacy.unit": "client", "privacy.epsilon": 1.0, f"tasks.{task}.validation-share": 0.3}
    result = simulate(parse({**about, **noise}), read_all(task, data), tmp_path, noise_seed=0)
    metric = TASKS[task].objective.metric
    used, baselines = f"{USED.prefix}{metric}", [baseline[metric] for baseline in TASKS[task].baselines.values()]
    measured = [own.metrics for own in result.clients.values() if metric in own.metrics]
    assert measured
    assert all(
        own[used] in (own[metric], *(own[baseline] for baseline in baselines if baseline in own)) for own in measured
    )
    assert min(own[used] for own in measured) <= result.metrics[used] <= max(own[used] for own in measured)
    assert "as clients use it" in noise_cost(result)
    assert result.verdict is not None
    assert not result.verdict.uses  # exact numbers are not sent beside noise


@pytest.mark.parametrize(
    ("task", "data", "options"),
    [
        ("rules", "demo:0-12", {"method": "ridge"}),
        ("sessions", "demo:0-12", {"method": "ridge"}),
        ("sessions", "demo:0-6", {"method": "local"}),
        ("markets", "demo:0-2", {"method": "ridge", "tasks.markets.protocol": "pairs"}),
        ("ratings", "demo:0-12", {"method": "ridge"}),
        ("traffic", "demo:0-2", {"method": "fedavg", "rounds": 1}),
    ],
)
def test_a_run_without_noise_counts_what_clients_use(
    tmp_path: Path, task: str, data: str, options: dict[str, Scalar]
) -> None:
    about = {"task": task, "run-id": "r", "rounds": 3, "federation.min-clients": 1, **options}
    config = parse({**about, f"tasks.{task}.validation-share": 0.3})
    result = simulate(config, read_all(task, data), tmp_path)
    metric, verdict = TASKS[task].objective.metric, result.verdict
    assert verdict is not None
    assert sum(verdict.uses.values()) == verdict.units
    model = "personalized model" if options["method"] == "local" else "shared model"
    assert next(iter(verdict.uses)) == model
    assert verdict.final == result.metrics[f"{USED.prefix}{metric}"]
    assert f"of {verdict.units} {verdict.unit_name} use" in verdict.text
