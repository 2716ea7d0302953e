"""Rounds that lose their clients: asked again once they are back, and an error after a while."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Error, Message

from common.config.run import RunConfig
from common.errors import QuorumError
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid
from server.record.result import Result
from server.run import run
from tests.support.sensors import rounds_of, stores
from tests.support.toy_sessions import toy_sessions


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
