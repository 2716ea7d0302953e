"""A hub that trains in several processes: the same bits, also of states, of runs with noise, and after a process has ended."""

import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from client.hub.state import StateBlocks
from common.config.run import RunConfig
from common.errors import StateError
from common.options import Scalar
from deploy.simulation import workers
from server.record.result import Result
from server.run import run
from tests.support.hubs import NodeGrid, on_disk, settings
from tests.support.owners import noisy
from tests.support.sensors import rounds_of

CLIENTS = 7


def train(folder: Path, config: RunConfig, together: int, count: int) -> Result:
    return run(NodeGrid({8: on_disk(folder, together, CLIENTS, count).respond}), config, folder / "runs")


@pytest.mark.parametrize(
    ("method", "together", "processes", "options"),
    [
        ("fedrule", 2, 2, {}),
        ("fedrule", 1, 3, {}),
        ("fedrule", 3, 2, {"federation__cohort": 0.6, "federation__min_replies": 2}),
        ("fedrule", 2, 3, {"federation__answer": "replies"}),
        ("ditto", 2, 3, {}),
        ("ifca", 2, 2, {"clusters": 2}),
    ],
)
def test_the_number_of_processes_changes_no_bit(
    method: str, together: int, processes: int, options: dict[str, Scalar], tmp_path: Path
) -> None:
    config = settings(tmp_path, method, **options)
    single, shared = (train(tmp_path / str(count), config, together, count) for count in (1, processes))
    assert (shared.model_sha256, shared.status, shared.rounds_done) == (single.model_sha256, "completed", 3)
    assert shared.metrics == single.metrics
    pairs = zip(rounds_of(tmp_path / str(processes) / "runs"), rounds_of(tmp_path / "1" / "runs"), strict=True)
    assert all((a.answered, a.loss, a.bytes_up) == (b.answered, b.loss, b.bytes_up) for a, b in pairs)


def test_a_hub_that_is_started_again_goes_on_with_its_states(tmp_path: Path) -> None:
    config = settings(tmp_path)
    through = train(tmp_path / "through", config, 2, 1)
    train(tmp_path / "torn", config.model_copy(update={"rounds": 2}), 2, 2)
    resumed = train(tmp_path / "torn", config.model_copy(update={"resume": True}), 2, 3)
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)


@pytest.mark.parametrize(("unit", "entries"), [("client", 2), ("record", 3)])  # DP-SGD charges its plan first
def test_clients_pay_for_their_noise_in_the_process_of_the_hub(unit: str, entries: int, tmp_path: Path) -> None:
    config = noisy(tmp_path, "fedavg", rounds=2, federation__min_clients=5, privacy__unit=unit)
    hub = on_disk(tmp_path, 2, CLIENTS, 2)
    result = run(NodeGrid({8: hub.respond}), config, tmp_path / "runs")
    assert result.status == "completed"
    for session in hub.sessions.values():
        assert len(session.releaser.budget.ledger(config.privacy).entries()) == entries


def test_after_the_end_of_a_process_the_hub_trains_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config, share, hub = settings(tmp_path), workers._train_share, os.getpid()
    through = train(tmp_path / "through", config, 2, 1)

    def dying(numbers: Any, *arguments: Any) -> Any:
        yield from share(numbers, *arguments)  # its states lie in the shared memory already
        if 0 not in numbers and os.getpid() != hub:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(workers, "_train_share", dying)
    with caplog.at_level(logging.WARNING):
        result = train(tmp_path / "torn", config, 2, 2)
    assert result.model_sha256 == through.model_sha256
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 3
    assert "was ended by signal 9; this process trains its clients" in warnings[0]


def test_a_state_that_cannot_be_written_is_the_failure_of_its_cohort_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, calls = StateBlocks.flush, iter(range(100))

    def full(blocks: StateBlocks) -> None:
        if blocks._waiting and next(calls) == 1:
            blocks._waiting = {}
            raise StateError("no space")
        flush(blocks)

    monkeypatch.setattr(StateBlocks, "flush", full)
    config = settings(tmp_path, rounds=1, federation__min_clients=4)
    train(tmp_path, config, 2, 2)
    [first] = rounds_of(tmp_path / "runs")
    assert (first.asked, first.answered) == (CLIENTS, CLIENTS - 2)
