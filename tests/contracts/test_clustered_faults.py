"""What clients that lie and servers that crash may not change in runs with several models."""

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
from deploy.simulation import InProcessGrid
from server.journal import Journal
from server.run import run
from server.state import Trained
from tests.support.sensors import APART, Listening, heard, road_config, road_grid, rounds_of, stores


class Lying(Listening):
    """Client 1 answers the assignment with something else."""

    lie: AssignReply

    def _keep(self, replies: Iterable[Message]) -> None:
        super()._keep([self._spoilt(reply) for reply in replies])

    def _spoilt(self, reply: Message) -> Message:
        about = reply.content["fedloom"]["wire.payload"]  # type: ignore[index]
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
def test_a_client_that_answers_nonsense_is_not_assigned_and_named(
    lie: AssignReply, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid = road_grid(stores(3), Lying)
    grid.lie = lie
    with caplog.at_level(logging.WARNING, "fedloom.server"):
        run(grid, road_config("fedstl", rounds=1, clusters=3), tmp_path)
    assert rounds_of(tmp_path)[0].clusters.keys() == {"client-0", "client-2"}
    assert "client-1: not assigned to a cluster anew: " in caplog.text
    assert "client-0" not in caplog.text
    assert rounds_of(tmp_path)[0].answered == 3, "it trains the first model"


def test_bounds_of_another_shape_than_the_others_stop_nobody(tmp_path: Path) -> None:
    grid = road_grid(stores(3), Lying)
    grid.lie = AssignReply(1, {"0": 0.1}, {name: bound[:24] for name, bound in FLAT.items()})
    assert run(grid, road_config("fedstl", rounds=1, clusters=1), tmp_path).status == "completed"
    assert [line.answered for line in rounds_of(tmp_path)] == [3]


class PullThePlugError(Exception):
    """The machine went down."""


def test_a_run_torn_in_its_first_round_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first checkpoint holds the K models already."""
    config = road_config("ifca", clusters=2, **APART)
    through = run(road_grid(stores(2), InProcessGrid), config, tmp_path / "through")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_training", pull_the_plug)
        with pytest.raises(PullThePlugError):
            run(road_grid(stores(2), InProcessGrid), config, tmp_path / "torn")
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(stores(2), InProcessGrid), again, tmp_path / "torn")
    assert resumed.model_sha256 == through.model_sha256


def pull_the_plug(*arguments: Any) -> None:
    raise PullThePlugError


def torn(grid: InProcessGrid, config: RunConfig, runs: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """A run whose server goes down after a round's evaluation."""
    evaluated = Journal.record_evaluation

    def crash(journal: Journal, number: int, evaluation: Any) -> None:
        evaluated(journal, number, evaluation)
        if number == after:
            raise PullThePlugError

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_evaluation", crash)
        with pytest.raises(PullThePlugError):
            run(grid, config, runs)


@pytest.mark.parametrize(
    ("method", "options"),
    [("ifca", {}), ("ifca", {"federation__cohort": 0.7}), ("fedstl", {}), ("fedstl", {"recluster_every": 2})],
)
def test_a_run_resumed_after_a_crash_ends_as_one_that_never_stopped(
    method: str, options: dict[str, Scalar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = road_config(method, rounds=3, clusters=2, **APART, **options)
    through = run(road_grid(stores(3), InProcessGrid), config, tmp_path / "through")
    disks: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(3)]
    torn(road_grid(disks, InProcessGrid), config, tmp_path / "torn", monkeypatch, after=2)
    # IFCA's clients keep nothing that matters to the others: a simulation may resume with new ones
    after = disks if method == "fedstl" else stores(3)
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(after, InProcessGrid), again, tmp_path / "torn")
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)
    assert rounds_of(tmp_path / "torn")[-1].clusters == rounds_of(tmp_path / "through")[-1].clusters


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_round_torn_after_the_clients_have_trained_is_assigned_and_trained_again_as_it_was(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their heads have moved by then; the models are judged with the heads that the round began with."""
    config = road_config("fedstl", rounds=3, clusters=2, lr=0.5, **APART)
    through = road_grid(stores(3), Listening)
    expected = run(through, config, tmp_path / "through")
    disks: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(3)]
    trained = Journal.record_training

    def crash(journal: Journal, news: Trained) -> None:
        if news.state.round == number:
            raise PullThePlugError
        trained(journal, news)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_training", crash)
        with pytest.raises(PullThePlugError):
            run(road_grid(disks, InProcessGrid), config, tmp_path / "torn")
    again = road_grid(disks, Listening)
    resumed = run(again, config.model_copy(update={"resume": True}), tmp_path / "torn")
    assert resumed.model_sha256 == expected.model_sha256
    said = [(name, reply.round, reply.losses) for name, reply in heard(again, AssignReply)]
    before = [(name, reply.round, reply.losses) for name, reply in heard(through, AssignReply)]
    assert said == before[-len(said) :]


SHARES: dict[str, Scalar] = {"rounds": 4, "clusters": 2, "federation__cohort": 0.4}


@pytest.mark.parametrize("method", ["ifca", "fedstl"])
@pytest.mark.parametrize(("rule", "every"), [("argmin", 3), ("capacity", 1), ("capacity", 3)])
def test_how_often_models_are_measured_does_not_change_what_is_learnt(
    method: str, rule: str, every: int, tmp_path: Path
) -> None:
    """Clients that never trained are assigned to be measured; training assigns them anew."""
    options = {**SHARES, **APART, "assign": rule, "recluster_every": every}
    often, seldom = (
        run(road_grid(stores(5), InProcessGrid), road_config(method, evaluate_every=e, **options), tmp_path / str(e))
        for e in (1, 4)
    )
    assert often.model_sha256 == seldom.model_sha256


@pytest.mark.parametrize("method", ["ifca", "fedstl"])
@pytest.mark.parametrize("rule", ["argmin", "capacity"])
def test_a_run_of_few_clients_a_round_resumes_as_if_it_had_not_stopped(
    method: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = road_config(method, **SHARES, **APART, assign=rule)
    through = run(road_grid(stores(5), InProcessGrid), config, tmp_path / "through")
    disks: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(5)]
    torn(road_grid(disks, InProcessGrid), config, tmp_path / "torn", monkeypatch, after=1)
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(disks, InProcessGrid), again, tmp_path / "torn")
    assert resumed.model_sha256 == through.model_sha256
