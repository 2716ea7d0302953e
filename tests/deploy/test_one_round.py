"""One simulated round of each task, for `make quick`."""

from pathlib import Path

import pytest

from client.data.read import partition, read_all
from common.config.parse import parse
from common.tasks.registry import TASKS
from deploy.simulation.grid import simulate_clients


@pytest.mark.parametrize("task", [name for name in TASKS if TASKS.origin(name) == "fedloom"])
def test_a_round_of_fedavg_trains_and_measures(task: str, tmp_path: Path) -> None:
    data = "demo:0-40" if task == "rules" else "demo:0-6"  # a small home has no rule to test on
    clients = partition(read_all(task, data), 3)
    config = parse({"task": task, "method": "fedavg", "rounds": 1, "training.local-steps": 1})
    result = simulate_clients(config, clients, tmp_path)
    assert (result.status, result.rounds_done, len(result.clients)) == ("completed", 1, 3)
    assert result.metrics
