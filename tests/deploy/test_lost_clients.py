"""Rounds that lose their clients: asked again once they are back, and an error after a while."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Error, Message

from client.node.flower import failure_reply
from client.owner.policy import Policy
from client.state import MemoryStore
from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import FedloomError, QuorumError
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid
from server.record.folder import RunDirectory
from server.record.result import Result
from server.run import run
from tests.support.sensors import rounds_of, stores
from tests.support.toy_sessions import toy_session, toy_sessions
from tests.support.toys import toy_homes


class LossyGrid(InProcessGrid):
    """Grid whose clients do not answer some training requests.

    Args:
        lost: Numbers of the training requests, counted over all clients, that no client answers.
    """

    def __init__(self, *arguments: Any, lost: Callable[[int], bool]) -> None:
        super().__init__(*arguments)
        self._lost, self.asked = lost, 0

    def push_messages(self, messages: Any) -> list[str]:
        accepted = super().push_messages(messages := list(messages))
        dropped: set[str] = set()
        for message in messages:
            if message.metadata.message_type == TRAIN:
                if self._lost(self.asked):
                    dropped.add(message.metadata.message_id)
                self.asked += 1
        return ["" if identity in dropped else identity for identity in accepted]


@pytest.fixture
def config(settings: Callable[..., RunConfig]) -> RunConfig:
    return settings("fedavg", federation__min_replies=3, federation__wait=30)


def trained(config: RunConfig, runs: Path, lost: Callable[[int], bool]) -> tuple[Result, LossyGrid]:
    grid = LossyGrid(toy_sessions(stores(3)), 1, lost=lost)
    return run(grid, config, runs), grid


def test_a_round_that_lost_clients_is_asked_again(config: RunConfig, tmp_path: Path) -> None:
    through, _ = trained(config, tmp_path / "through", lambda number: False)
    result, grid = trained(config, tmp_path, lambda number: number in (3, 4, 7))  # two attempts at round 2 fail
    assert grid.asked == 9 + 6
    assert (result.status, result.rounds_done) == ("completed", 3)
    assert result.model_sha256 == through.model_sha256
    rounds = rounds_of(tmp_path)
    assert [event.answered for event in rounds] == [3, 3, 3]
    assert result.bytes_down == sum(event.bytes_down for event in rounds), "of failed attempts, too"
    assert rounds[1].bytes_down > rounds[2].bytes_down


def test_a_round_that_never_has_enough_clients_is_an_error(config: RunConfig, tmp_path: Path) -> None:
    short = config.model_copy(update={"federation": config.federation.model_copy(update={"wait": 0.2})})
    with pytest.raises(QuorumError, match="round 2: 0 usable replies, 3 needed"):
        trained(short, tmp_path, lambda number: number >= 3)


def test_clients_that_fail_are_not_asked_again(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = LossyGrid(toy_sessions(stores(3)), 1, lost=lambda number: False)
    monkeypatch.setattr(grid, "_train", lambda messages: [Message(Error(1000, "no"), reply_to=m) for m in messages])
    with pytest.raises(QuorumError, match="0 usable replies"):
        run(grid, config, tmp_path)
    assert grid.asked == 3


Settings = Callable[..., RunConfig]


class FailingGrid(InProcessGrid):
    """Three clients; those in `nodes` fail in every round of training after the first `rounds`."""

    def __init__(self, nodes: set[int], rounds: int) -> None:
        super().__init__(toy_sessions(stores(3)), 1)
        self.nodes, self.rounds, self.trained = nodes, rounds, 0

    def _train(self, messages: list[Any]) -> list[Any]:
        self.trained += 1
        failing = self.nodes if self.trained > self.rounds else set()
        replies = super()._train([m for m in messages if m.metadata.dst_node_id not in failing])
        lost = [m for m in messages if m.metadata.dst_node_id in failing]
        return [*replies, *(failure_reply(m, FedloomError("out of memory")) for m in lost)]


def test_a_run_below_its_quorum_fails_and_keeps_its_last_good_model(settings: Settings, tmp_path: Path) -> None:
    options = {"federation__min_replies": 2, "lr": 0.01}
    good = run(FailingGrid(set(), 0), settings(rounds=2, **options), tmp_path / "good")
    with pytest.raises(QuorumError) as caught:
        run(FailingGrid({1, 2}, 2), settings(rounds=4, **options), tmp_path / "bad")
    text = "round 3: 1 usable replies, 2 needed; client-0, client-1: out of memory"
    assert str(caught.value) == text

    folder = RunDirectory(tmp_path / "bad", "toy")
    result = folder.result()
    assert result is not None
    assert (result.status, result.reason, result.rounds_done) == ("failed", text, 2)
    assert result.model_sha256 == good.model_sha256 == sha256(folder.load_model()[0])
    assert [event.event for event in folder.events()] == ["start", "round", "round", "finish"]


def test_a_failing_client_is_named_in_its_rounds_and_the_others_continue(settings: Settings, tmp_path: Path) -> None:
    run(FailingGrid({2}, 1), settings(), tmp_path)
    rounds = rounds_of(tmp_path)
    assert [(event.asked, event.answered) for event in rounds] == [(3, 3), (3, 2), (3, 2)]
    assert [event.refused for event in rounds] == [{}, *[{"client-1": "out of memory"}] * 2]


def test_a_client_that_refuses_a_run_is_named_with_its_reason(settings: Settings, tmp_path: Path) -> None:
    homes = toy_homes(2)
    nodes = {
        1: toy_session("willing", homes[:1], MemoryStore()),
        2: toy_session("strict", homes[1:], MemoryStore(), Policy(methods=("fedavg",))),
    }
    with pytest.raises(QuorumError, match="refused: the policy does not allow method 'fedrule'"):
        run(InProcessGrid(nodes, 1), settings(federation__min_clients=2), tmp_path / "two")
    result = RunDirectory(tmp_path / "two", "toy").result()
    assert result is not None
    assert (result.status, result.rounds_done) == ("failed", 0)
    assert run(InProcessGrid(nodes, 1), settings(), tmp_path / "one").status == "completed"


def test_a_slow_client_makes_fewer_steps(settings: Settings, tmp_path: Path) -> None:
    homes = toy_homes(2)
    nodes = {
        1: toy_session("quick", homes[:1], MemoryStore()),
        2: toy_session("slow", homes[1:], MemoryStore(), Policy(max_local_steps=1)),
    }
    assert run(InProcessGrid(nodes, 1), settings(), tmp_path).status == "completed"
