"""Lies of a client in methods of one task, and under planners."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.tasks.traffic.data.series import Sensors
from common.config.parse import parse
from common.config.run import RunConfig
from common.methods.planners import PLANNERS
from common.options import Scalar
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid
from server.exchange import grid as round_limits
from server.record.folder import RunDirectory
from server.record.result import Result
from server.run import run
from studies.lies.cases import LIES
from studies.lies.liars import LyingGrid, lies
from tests.support.configurations import TASKS_OF, method_options
from tests.support.owners import PLANNERS as PLANNED
from tests.support.sensors import MEASURES, QUICK, rounds_of, sensor

CLIENTS, STEPS, SEEDS = 7, 2, (0, 1)
NAME = f"client-{CLIENTS - 1}"
TASKS = {**TASKS_OF, **dict.fromkeys(PLANNERS, "ratings")}
METRICS = {"traffic": "loss", "markets": "mrr20", "ratings": "rmse"}
NOISE: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 8.0}
SMALL: dict[str, dict[str, Scalar]] = {
    "fedstl": {"clusters": 2, "local_steps": STEPS},
    "pfgnn": {"local_steps": STEPS, "tasks__markets__width": 24, "tasks__markets__embedding": 6},
    **{
        name: {**PLANNED.get(name, {}), **(NOISE if spec.options.needs_noise else {})}
        for name, spec in PLANNERS.items()
    },
}


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_limits, "GRACE_SECONDS", 0.05)


@cache
def parts(task: str) -> Sequence[AnyDataset]:
    if task == "traffic":
        return [Sensors((sensor(k, days=16),), MEASURES) for k in range(CLIENTS)]
    if task == "markets":
        markets = partition(read_all(task, "demo:3-6"), 0)
        return [markets[k % len(markets)] for k in range(CLIENTS)]
    return partition(read_all(task, "demo:0-35"), CLIENTS)


def configuration(method: str, seed: int = 0) -> RunConfig:
    plain: dict[str, Scalar] = {"run-id": "toy", "federation.min-clients": 1, "federation.wait": 0.1}
    base = QUICK if method == "fedstl" else plain
    common: dict[str, Scalar] = {
        "task": TASKS[method],
        "method": method,
        "seed": seed,
        "rounds": 5 if method in PLANNERS else 2,
    }
    return parse({**base, **common, "federation.patience": 0.1, **method_options(method, SMALL[method])})


def quality(method: str, result: Result) -> float:
    """Return the mean of a metric of the honest clients."""
    metric = METRICS[TASKS[method]]
    return float(np.mean([c.metrics[metric] for name, c in result.clients.items() if name != NAME and c.metrics]))


@cache
def honest(method: str) -> tuple[int, float, float]:
    """Return the number of rounds and the quality without the liar, and its spread over seeds."""
    results = []
    for seed in SEEDS:
        sessions, _ = open_sessions(parts(TASKS[method])[:-1], seed)
        with TemporaryDirectory() as folder:
            results.append(run(InProcessGrid(sessions, CLIENTS), configuration(method, seed), Path(folder)))
    found = [quality(method, result) for result in results]
    return results[0].rounds_done, found[0], max(found) - min(found)


@pytest.mark.parametrize("method", TASKS)
@pytest.mark.parametrize("name", LIES)
def test_a_liar_harms_nobody_and_is_named(method: str, name: str, tmp_path: Path) -> None:
    sessions, _ = open_sessions(parts(TASKS[method]), 0)
    kind, lie = lies(METRICS[TASKS[method]], STEPS)[name]
    result = run(LyingGrid(sessions, CLIENTS, kind, lie, CLIENTS), configuration(method), tmp_path)
    rounds, expected, spread = honest(method)
    lines = rounds_of(tmp_path)
    refusals = "\n".join(f"{who}: {why}" for line in lines for who, why in line.refused.items())
    assert (result.status, result.rounds_done) == ("completed", rounds)
    assert abs(quality(method, result) - expected) <= max(spread, 0.02), refusals
    assert NAME in refusals or f"node-{CLIENTS}" in refusals or NAME in lines[0].missing
    assert not any(who in refusals for who in [f"client-{k}: " for k in range(CLIENTS - 1)])
    texts = (RunDirectory(tmp_path, "toy").path / "metrics.jsonl").read_text(), refusals
    assert all(c not in text for text in texts for c in ("\x1b", "\x07", "\\u001b", "owned\\"))
