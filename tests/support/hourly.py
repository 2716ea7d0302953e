"""Table of hourly readings at two sites, and a client that has trained with it."""

from pathlib import Path

import numpy as np
import pytest

from client.checks import write_about
from client.data.dataset import fingerprint, resolve_source
from client.data.read import read_partition
from client.hub.state import FOLDER, HostedStore, StateBlocks, flush_all
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import DiskStore
from client.tasks.registry import build_learner
from common.arrays import Arrays
from common.config.parse import parse, to_json
from common.config.run import RunConfig
from common.models import parameters
from common.tasks.traffic.vocabulary import SensorVariables
from common.wire.messages import EnrolRequest, EvaluateRequest, TrainRequest
from tests.support.build import task_model

HOURLY = SensorVariables(variables=("volume",))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write three weeks of hourly volumes at two sites, a daily wave with some jitter."""
    rng, hours = np.random.default_rng(0), np.arange(21 * 24)
    lines = ["timestamp,site,volume"]
    for site, level in (("north", 100), ("south", 900)):
        wave = level * (1 + 0.5 * np.sin(2 * np.pi * hours / 24)) + rng.normal(0, level / 50, len(hours))
        times = np.datetime64("2024-01-01T00:00") + hours * np.timedelta64(1, "h")
        lines += [f"{time},{site},{value:.1f}" for time, value in zip(times, wave, strict=True)]
    path = tmp_path / "sensors.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def configured(method: str, run: str) -> RunConfig:
    return parse({"method": method, "task": "traffic", "run-id": run, "model": "paper", "tasks.traffic.hidden": 3})


def take_part(
    root: Path, table: Path, method: str, run: str, name: str = "node", statics: Arrays | None = None, hub: str = ""
) -> Arrays:
    """Train one round and end the run on a client with that table; return the client's own model."""
    config, own = configured(method, run), root / name / fingerprint(str(table), (0, 1), 0)[:16]
    store = HostedStore(own, StateBlocks(root / FOLDER / hub)) if hub else DiskStore(own)
    write_about(own, {"data": resolve_source(str(table)), "part": [0, 1], "seed": 0})
    session = Session(
        name,
        lambda of, names: build_learner(of, read_partition(of.task, str(table), (0, 1), 0, names)),
        store,
        in_memory(Policy()),
    )
    enrolment = session.enrol(EnrolRequest(run, to_json(config), HOURLY.to_json())).enrolment
    model = parameters(task_model(config, HOURLY))
    session.train(TrainRequest(1, enrolment, model))
    flush_all({name: store})
    session.evaluate(EvaluateRequest(1, enrolment, model, "test", statics or {}, final=True))
    head = {n: t.numpy() for n, t in store.load(run).groups.get("head.after", {}).items()}
    return {**model, **head}
