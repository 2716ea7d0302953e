"""Invalid replies and server crashes in runs with several models."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from client.state import DiskStore, Store
from common.config.run import RunConfig
from common.options import Scalar
from common.wire.codec import encode
from common.wire.messages import AssignReply
from deploy.simulation.grid import InProcessGrid
from server.record.journal import Journal
from server.round.state import Trained
from server.run import run
from tests.support.sensors import APART, Listening, heard, payload_name, road_config, road_grid, rounds_of, stores


class InvalidReplies(Listening):
    """Grid whose client 1 sends an invalid assignment reply."""

    lie: AssignReply

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self._spoilt(reply) for reply in super().pull_messages(message_ids)]

    def _spoilt(self, reply: Message) -> Message:
        about = payload_name(reply.content)
        if reply.metadata.src_node_id == 2 and about == "AssignReply":
            reply.content = encode(self.lie)
        return reply


FLAT = {"low": np.zeros((168, 1), np.float32), "high": np.ones((168, 1), np.float32)}
LIES = {
    "NaN": AssignReply(1, {"0": 0.1, "1": float("nan"), "2": 0.3}, FLAT),
    "infinity": AssignReply(1, {"0": 0.1, "1": float("inf"), "2": 0.3}, FLAT),
    "missing": AssignReply(1, {"0": 0.1, "1": 0.2}, FLAT),
    "too many": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.0}, FLAT),
    "none": AssignReply(1, {}, {}),
    "upside down": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {"low": FLAT["high"], "high": FLAT["low"]}),
    "NaN bounds": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {**FLAT, "low": FLAT["low"] * np.float32(np.nan)}),
    "half": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {"low": FLAT["low"]}),
    "another round's": AssignReply(9, {"0": 0.1, "1": 0.2, "2": 0.3}, FLAT),
    "of two shapes": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {**FLAT, "low": FLAT["low"][:3]}),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_client_with_an_invalid_reply_is_logged_and_not_assigned(
    lie: AssignReply, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid = road_grid(stores(3), InvalidReplies)
    grid.lie = lie
    with caplog.at_level(logging.WARNING, "fedloom.server"):
        run(grid, road_config("fedstl", rounds=1, clusters=3), tmp_path)
    assert rounds_of(tmp_path)[0].clusters.keys() == {"client-0", "client-2"}
    assert "client-1: cluster not updated: " in caplog.text
    assert "client-0" not in caplog.text
    assert rounds_of(tmp_path)[0].answered == 3, "it trains the first model"


def test_bounds_of_an_uncommon_shape_are_left_out(tmp_path: Path) -> None:
    grid = road_grid(stores(3), InvalidReplies)
    grid.lie = AssignReply(1, {"0": 0.1}, {name: bound[:24] for name, bound in FLAT.items()})
    assert run(grid, road_config("fedstl", rounds=1, clusters=1), tmp_path).status == "completed"
    assert [line.answered for line in rounds_of(tmp_path)] == [3]


class PowerCutError(Exception):
    """Simulated stop of the machine."""


def test_a_run_stopped_in_its_first_round_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first checkpoint has the K models."""
    config = road_config("ifca", clusters=2, **APART)
    through = run(road_grid(stores(2), InProcessGrid), config, tmp_path / "through")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_training", pull_the_plug)
        with pytest.raises(PowerCutError):
            run(road_grid(stores(2), InProcessGrid), config, tmp_path / "stopped_run")
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(stores(2), InProcessGrid), again, tmp_path / "stopped_run")
    assert resumed.model_sha256 == through.model_sha256


def pull_the_plug(*arguments: Any) -> None:
    raise PowerCutError


def stopped_run(
    grid: InProcessGrid, config: RunConfig, runs: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Run until the server stops after a round's evaluation."""
    evaluated = Journal.record_evaluation

    def crash(journal: Journal, number: int, evaluation: Any) -> None:
        evaluated(journal, number, evaluation)
        if number == after:
            raise PowerCutError

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_evaluation", crash)
        with pytest.raises(PowerCutError):
            run(grid, config, runs)


@pytest.mark.parametrize(
    ("method", "options"),
    [("ifca", {}), ("ifca", {"federation__cohort": 0.7}), ("fedstl", {}), ("fedstl", {"recluster_every": 2})],
)
def test_a_resumed_run_equals_an_uninterrupted_one(
    method: str, options: dict[str, Scalar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = road_config(method, rounds=3, clusters=2, **APART, **options)
    through = run(road_grid(stores(3), InProcessGrid), config, tmp_path / "through")
    disks: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(3)]
    stopped_run(road_grid(disks, InProcessGrid), config, tmp_path / "stopped_run", monkeypatch, after=2)
    # IFCA's client state does not affect other clients: a simulation may resume with new ones
    after = disks if method == "fedstl" else stores(3)
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(after, InProcessGrid), again, tmp_path / "stopped_run")
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)
    assert rounds_of(tmp_path / "stopped_run")[-1].clusters == rounds_of(tmp_path / "through")[-1].clusters


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_round_stopped_after_training_is_repeated_with_equal_results(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Private heads have changed by then; scores use the heads of the round's start."""
    config = road_config("fedstl", rounds=3, clusters=2, lr=0.5, **APART)
    through = road_grid(stores(3), Listening)
    expected = run(through, config, tmp_path / "through")
    disks: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(3)]
    trained = Journal.record_training

    def crash(journal: Journal, news: Trained) -> None:
        if news.state.round == number:
            raise PowerCutError
        trained(journal, news)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_training", crash)
        with pytest.raises(PowerCutError):
            run(road_grid(disks, InProcessGrid), config, tmp_path / "stopped_run")
    again = road_grid(disks, Listening)
    resumed = run(again, config.model_copy(update={"resume": True}), tmp_path / "stopped_run")
    assert resumed.model_sha256 == expected.model_sha256
    said = [(name, reply.round, reply.losses) for name, reply in heard(again, AssignReply)]
    before = [(name, reply.round, reply.losses) for name, reply in heard(through, AssignReply)]
    assert said == before[-len(said) :]


SHARES: dict[str, Scalar] = {"rounds": 4, "clusters": 2, "federation__cohort": 0.4}


@pytest.mark.parametrize("method", ["ifca", "fedstl"])
@pytest.mark.parametrize(("rule", "every"), [("argmin", 3), ("capacity", 1), ("capacity", 3)])
def test_evaluations_do_not_change_the_model(method: str, rule: str, every: int, tmp_path: Path) -> None:
    """Clients that never trained are assigned for the evaluation; training assigns them again."""
    options = {**SHARES, **APART, "assign": rule, "recluster_every": every}
    often, seldom = (
        run(road_grid(stores(5), InProcessGrid), road_config(method, evaluate_every=e, **options), tmp_path / str(e))
        for e in (1, 4)
    )
    assert often.model_sha256 == seldom.model_sha256


@pytest.mark.parametrize("method", ["ifca", "fedstl"])
@pytest.mark.parametrize("rule", ["argmin", "capacity"])
def test_a_resumed_run_with_small_cohorts_equals_an_uninterrupted_one(
    method: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = road_config(method, **SHARES, **APART, assign=rule)
    through = run(road_grid(stores(5), InProcessGrid), config, tmp_path / "through")
    disks: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(5)]
    stopped_run(road_grid(disks, InProcessGrid), config, tmp_path / "stopped_run", monkeypatch, after=1)
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(disks, InProcessGrid), again, tmp_path / "stopped_run")
    assert resumed.model_sha256 == through.model_sha256
