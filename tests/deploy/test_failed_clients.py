"""Runs in one process with clients that fail, refuse or are slow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.node.flower import failure_reply
from client.owner.policy import Policy
from client.state import MemoryStore
from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import FedloomError, QuorumError
from deploy.simulation.grid import InProcessGrid
from server.record.folder import RunDirectory
from server.run import run
from tests.support.sensors import rounds_of, stores
from tests.support.toy_sessions import toy_session, toy_sessions
from tests.support.toys import toy_homes

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
