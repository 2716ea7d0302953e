"""Counts of sessions, sensors and markets in secure sums: the sums of plain counts, and refusals."""

import logging
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from client.data.read import partition, read_all
from client.tasks.registry import CLIENT_TASKS
from common.config.parse import parse
from common.errors import ConfigError
from common.options import Scalar
from common.tasks.sessions.counts import KEYS, VALUES
from common.tasks.sessions.vocabulary import Items
from common.tasks.traffic.counts import LAGS, PAIRS
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid, simulate
from deploy.simulation.helpers import open_helpers
from server.record.folder import RunDirectory
from server.run import run
from server.secure import parties as sizes
from tests.support.count_runs import SENSORS, counting
from tests.support.sensors import MEASURES
from tests.support.sum_runs import SumFederation, summed

SUMMED = {"sessions": {KEYS, VALUES}, "traffic": {LAGS, PAIRS}}


def data_of(task: str) -> Any:
    return SENSORS if task == "traffic" else read_all(task, "demo:3-6")


def model_of(task: str, trust: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the arrays of the model of a run, the sums among them."""
    if task == "traffic":
        monkeypatch.setattr("server.run.demo_vocabulary", lambda name: MEASURES)
    assert simulate(parse(counting(task, trust)), data_of(task), folder).status == "completed"
    return RunDirectory(folder, "toy").load_model()[0]


@pytest.mark.parametrize("task", ["sessions", "markets", "traffic"])
def test_opened_counts_are_the_sums_of_plain_ones(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, opened = (model_of(task, trust, tmp_path / trust, monkeypatch) for trust in ("local", "helpers"))
    assert local.keys() == opened.keys()
    if task == "traffic":  # every sensor has equal weight, and these have equal numbers of readings
        assert (opened[PAIRS] == 3).all()
        pairs = local.pop(PAIRS)[:, None, None]
        local[LAGS], opened[LAGS] = local[LAGS] / pairs, opened[LAGS] / opened.pop(PAIRS)[:, None, None]
    for name in local:
        np.testing.assert_allclose(opened[name], local[name], atol=1e-4, err_msg=name)


@pytest.mark.parametrize("task", ["sessions", "markets"])
def test_a_refusal_of_noise_on_counts_says_why_and_what_to_do(task: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(counting(task, "helpers", **{"privacy.unit": "client"}))
    assert str(refused.value) == (
        f"secure sums of the counts of task '{task}' have no noise, which would drown them"
        f" (tasks.{task}.count-offset=false leaves them out); set privacy.trust=local"
    )
    remedied = {"privacy.unit": "client", f"tasks.{task}.count-offset": False}
    assert parse(counting(task, "helpers", **remedied)).privacy.trust == "helpers"


def test_counts_with_noise_of_clients_are_refused() -> None:
    with pytest.raises(ConfigError, match="clients themselves add noise to their counts"):
        parse(counting("markets", "helpers", **{"tasks.markets.count-epsilon": 8.0}))


def resolved(task: str, options: dict[str, Scalar] | None = None, items: int = 10) -> bool | str:
    """Return `count-offset` of a run after `auto` is resolved."""
    config = parse(counting(task, "helpers", **{f"tasks.{task}.count-offset": "auto", **(options or {})}))
    vocabulary = MEASURES if task == "traffic" else Items(items=tuple(f"item-{k}" for k in range(items)))
    return sizes.resolve_counts(vocabulary, config, 5).task_options.count_offset


@pytest.mark.parametrize("task", ["sessions", "traffic"])
def test_auto_sums_counts_without_noise_under_helpers(task: str) -> None:
    assert resolved(task) == "auto"
    assert resolved(task, {"privacy.trust": "local"}) is False
    assert resolved(task, {"privacy.unit": "client"}) is False  # of sessions always, of five sensors too much noise
    assert resolved(task, {"model": "paper"}) is False


def test_auto_leaves_out_counts_that_exceed_a_sum() -> None:
    assert resolved("sessions", items=1000) == "auto"
    assert resolved("sessions", items=1001) is False


def test_auto_leaves_out_autocovariances_where_nothing_is_averaged_with_their_ridge() -> None:
    assert resolved("traffic", {"tasks.traffic.ridge": "none"}) is False
    with pytest.raises(ConfigError, match="set ridge=chosen"):
        parse(counting("traffic", "helpers", **{"tasks.traffic.ridge": "none"}))


@pytest.mark.parametrize(("allowed", "has_counts"), [("summed", True), ("never", False)])
@pytest.mark.parametrize("task", ["sessions", "traffic"])
def test_auto_starts_from_counts_where_owners_allow_them(
    task: str,
    allowed: Literal["summed", "never"],
    has_counts: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if task == "traffic":
        monkeypatch.setattr("server.run.demo_vocabulary", lambda name: MEASURES)
    config = parse(counting(task, "helpers", **{f"tasks.{task}.count-offset": "auto"}))
    sessions, _ = open_sessions(partition(data_of(task), 0, unit=CLIENT_TASKS[task].unit), None)
    for session in sessions.values():
        session.releaser.policy = session.releaser.policy.model_copy(update={"allow_counts": allowed})
    with open_helpers(config) as helpers, InProcessGrid(sessions, 1, helpers=helpers) as grid:
        assert run(grid, config, tmp_path).status == "completed"
    arrays = RunDirectory(tmp_path, "toy").load_model()[0]
    assert (not SUMMED[task].isdisjoint(arrays)) == has_counts
    assert ("the model starts without counts" in caplog.text) != has_counts


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("MOST_COUNTS", r"counts of 186,624 numbers exceed the 1,000 of a secure sum"),
        ("MOST_NUMBERS", r"an update of [\d,]+ numbers exceeds the 1,000 of a secure sum"),
    ],
)
def test_vectors_beyond_a_sum_are_local_or_refused_at_the_start(
    limit: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, limit, 1000)
    with pytest.raises(ConfigError, match=f"{reason}.*; set privacy.trust=local"):
        simulate(parse(counting("sessions", "helpers")), data_of("sessions"), tmp_path)
    assert not (tmp_path / "toy" / "config.toml").exists()


def test_updates_beyond_a_sum_are_local_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sizes, "MOST_NUMBERS", 10)
    caplog.set_level(logging.INFO, "fedloom.server")
    result = SumFederation(tmp_path).run(summed(trust="auto"))
    assert (result.status, result.privacy.trust) == ("completed", "local")
    assert "updates are not masked by helper-0, helper-1: an update of" in caplog.text
    assert "numbers exceeds the 10 of a secure sum" in caplog.text
