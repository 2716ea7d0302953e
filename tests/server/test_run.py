"""A run and its folder: one process at a time."""

import fcntl
import threading
from pathlib import Path
from typing import Any

import pytest

from common.config.run import RunConfig
from common.errors import ConfigError
from deploy.simulation import simulate
from server.artifacts import LOCK, RunDirectory
from server.journal import Journal
from tests.support.toys import CATALOGUE, configured, toy_dataset


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """Two rounds that speak the toy vocabulary."""
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")
    return configured("fedavg", rounds=2, federation__min_clients=1, federation__wait=0.1, catalogue=str(path))


def test_a_run_that_still_goes_on_is_left_alone(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first, in a thread of its own, stops after its first round until the second was refused."""
    trained, go_on, noted = threading.Event(), threading.Event(), Journal.trained

    def wait(journal: Journal, *about: Any) -> None:
        noted(journal, *about)
        trained.set()
        assert go_on.wait(30)

    monkeypatch.setattr(Journal, "trained", wait)
    first = threading.Thread(target=simulate, args=(config, toy_dataset(2), tmp_path))
    first.start()
    try:
        assert trained.wait(30)
        before = RunDirectory(tmp_path, "toy").config()
        again = config.model_copy(update={"resume": True, "rounds": 9})
        with pytest.raises(
            ConfigError, match=r"^run 'toy' is still going on in another process; wait for its end, or stop it"
        ):
            simulate(again, toy_dataset(2), tmp_path)
        assert RunDirectory(tmp_path, "toy").config() == before
    finally:
        go_on.set()
        first.join(30)
    more = config.model_copy(update={"resume": True, "rounds": 3})
    assert simulate(more, toy_dataset(2), tmp_path).rounds_done == 3


def test_a_file_system_without_locks_is_no_obstacle(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unable(file: Any, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unable)
    assert simulate(config, toy_dataset(2), tmp_path).status == "completed"
    assert f"{tmp_path / 'toy'} cannot be locked: Operation not supported" in caplog.messages


def test_a_run_that_is_not_there_leaves_no_folder(config: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run 'toy'"):
        simulate(config.model_copy(update={"resume": True}), toy_dataset(2), tmp_path)
    assert not (tmp_path / "toy").exists()
    assert simulate(config, toy_dataset(2), tmp_path).status == "completed"
    assert (tmp_path / "toy" / LOCK).exists()
