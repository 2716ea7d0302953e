"""A run and its folder: one process at a time, and the time in which a round that lost its clients is asked again."""

import fcntl
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from common.config.run import RunConfig
from common.errors import ConfigError
from deploy.simulation.grid import simulate
from server.record.folder import LOCK_FILE, RunDirectory
from server.record.journal import Journal
from server.run import FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, Patience
from tests.support.toys import CATALOGUE, configured, toy_dataset


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """Two rounds with the toy vocabulary."""
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")
    return configured("fedavg", rounds=2, federation__min_clients=1, federation__wait=0.1, catalogue=str(path))


def test_a_run_of_another_process_is_refused(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run, in a thread, stops after its first round until the second was refused."""
    trained, proceed, record = threading.Event(), threading.Event(), Journal.record_training

    def wait(journal: Journal, *about: Any) -> None:
        record(journal, *about)
        trained.set()
        assert proceed.wait(30)

    monkeypatch.setattr(Journal, "record_training", wait)
    first = threading.Thread(target=simulate, args=(config, toy_dataset(2), tmp_path))
    first.start()
    try:
        assert trained.wait(30)
        before = RunDirectory(tmp_path, "toy").config()
        again = config.model_copy(update={"resume": True, "rounds": 9})
        with pytest.raises(ConfigError, match=rf"^run 'toy' is in use by process {os.getpid()}; end that process"):
            simulate(again, toy_dataset(2), tmp_path)
        assert RunDirectory(tmp_path, "toy").config() == before
    finally:
        proceed.set()
        first.join(30)
    more = config.model_copy(update={"resume": True, "rounds": 3})
    assert simulate(more, toy_dataset(2), tmp_path).rounds_done == 3


def test_a_file_system_without_locks_is_accepted(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unable(file: Any, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unable)
    assert simulate(config, toy_dataset(2), tmp_path).status == "completed"
    assert f"{tmp_path / 'toy'} cannot be locked: Operation not supported" in caplog.messages


def test_resuming_an_unknown_run_creates_no_folder(config: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run 'toy'"):
        simulate(config.model_copy(update={"resume": True}), toy_dataset(2), tmp_path)
    assert not (tmp_path / "toy").exists()
    assert simulate(config, toy_dataset(2), tmp_path).status == "completed"
    assert (tmp_path / "toy" / LOCK_FILE).exists()


def test_patience_begins_with_the_first_failure_of_a_round() -> None:
    now = [0.0]
    patience = Patience(10.0, lambda: now[0])
    assert patience.allows(1)
    now[0] = 9.0
    assert patience.allows(1)
    assert patience.allows(2), "another round, another time"
    now[0] = 18.0
    assert patience.allows(2)
    now[0] = 20.0
    assert not patience.allows(2)


def test_pauses_grow_and_begin_anew_with_another_round() -> None:
    pauses = list[float]()
    patience = Patience(100.0, lambda: 0.0, pauses.append)
    for number in [1] * 20 + [2]:
        assert patience.allows(number)
        patience.wait()
    assert pauses[0] == pauses[-1] == FIRST_PAUSE_SECONDS
    assert pauses[:20] == sorted(pauses[:20])
    assert pauses[19] == MAX_PAUSE_SECONDS
