"""Servers killed during secure sums: a resumed run has the bits of an uninterrupted one."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message

from common.config.run import RunConfig
from common.errors import QuorumError
from common.wire.messages import OPEN, TRAIN
from server.record.folder import RunDirectory
from server.record.journal import Journal
from server.secure import sums as helper_sums
from server.secure.store import SumStore
from tests.support.sum_runs import SumFederation, SumGrid, losing, noised, summed

FIRST, HELPER = 1, 5
"""Nodes of the first client and of the first helper."""


RECORDS = summed(privacy__unit="record", privacy__epsilon=50.0)
"""Noise in local steps, and masks without noise."""

KILLED_AND_LAST = RECORDS.model_copy(update={"rounds": 2})  # a later round draws other noise, whose seeds are counted


class KilledError(Exception):
    """End of a server process."""


def kill(monkeypatch: pytest.MonkeyPatch, owner: type, method: str, *, after: bool) -> None:
    """End the server in round 2, before or after a method has worked; only once."""
    work, killed = getattr(owner, method), list[bool]()

    def fail(self: Any, *arguments: Any) -> Any:
        about = getattr(arguments[0], "terms", getattr(arguments[0], "state", arguments[0]))
        second = getattr(about, "round", 0) == 2 and not killed
        result = work(self, *arguments) if after or not second else None
        if second:
            killed.append(True)
            raise KilledError
        return result

    monkeypatch.setattr(owner, method, fail)


def asked(grid: SumGrid) -> list[tuple[str, int]]:
    """Return the list to which the grid adds the kind and the round of each request to train."""
    found: list[tuple[str, int]] = []

    def note(message: Message) -> None:
        if message.metadata.message_type == TRAIN:
            found.append((message.metadata.message_type, int(message.metadata.group_id)))

    grid.before = note
    return found


@pytest.mark.parametrize("config", [noised(), KILLED_AND_LAST], ids=["client", "record"])
@pytest.mark.parametrize(
    ("method", "after", "asks_again"), [("fix", False, True), ("fix", True, False), ("write_answers", True, False)]
)
def test_a_killed_server_goes_on_with_the_bits_of_an_uninterrupted_run(
    method: str, after: bool, asks_again: bool, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SumFederation(tmp_path / "whole")
    through = whole.run(config)
    federation = SumFederation(tmp_path / "killed")
    kill(monkeypatch, SumStore, method, after=after)
    with pytest.raises(KilledError):
        federation.run(config)
    requests = asked(federation.connect())
    resumed = federation.run(config, resume=True)
    assert resumed.model_sha256 == through.model_sha256
    assert ((TRAIN, 2) in requests) is asks_again
    assert federation.spent(config) == whole.spent(config)
    assert resumed.privacy.sums == {"opened": config.rounds, "lost": 0}


def test_a_server_killed_after_the_step_does_not_open_the_sum_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = noised()
    through = SumFederation(tmp_path / "whole").run(config)
    federation = SumFederation(tmp_path / "killed")
    kill(monkeypatch, Journal, "record_training", after=True)
    with pytest.raises(KilledError):
        federation.run(config)
    requests = asked(federation.connect())
    assert federation.run(config, resume=True).model_sha256 == through.model_sha256
    assert (TRAIN, 2) not in requests


def test_a_server_that_lost_its_files_takes_the_next_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, federation = noised(), SumFederation(tmp_path)
    kill(monkeypatch, Journal, "record_training", after=False)
    with pytest.raises(KilledError):
        federation.run(config)
    shutil.rmtree(tmp_path / "toy" / "secure")
    federation.connect().after = losing(TRAIN, [FIRST])
    result = federation.run(config, resume=True)
    assert result.rounds_done == 3
    assert [(one.round, bool(one.lost)) for one in federation.sums()] == [(1, False), (2, False), (2, True), (3, False)]
    assert "opened for another set" in federation.sums()[2].lost


def test_a_helper_that_is_silent_ends_the_run_which_goes_on_with_it(tmp_path: Path) -> None:
    config = noised()
    through = SumFederation(tmp_path / "whole").run(config)
    federation = SumFederation(tmp_path / "silent")
    federation.grid.after = losing(OPEN, [HELPER], times=99)
    with pytest.raises(QuorumError, match="helper 'helper-0' does not answer"):
        federation.run(config)
    requests = asked(federation.connect())
    assert federation.run(config, resume=True).model_sha256 == through.model_sha256
    assert (TRAIN, 1) not in requests


@pytest.mark.parametrize("config", [noised(), summed()])
def test_helpers_that_are_gone_are_replaced(config: RunConfig, tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, helpers=3)
    federation.grid.after = losing(OPEN, [HELPER], times=99)
    with pytest.raises(QuorumError, match="helper 'helper-0' does not answer"):
        federation.run(config)
    federation.connect().forget(HELPER)
    renewed = config.model_copy(update={"secure_sums": config.secure_sums.model_copy(update={"renew": True})})
    result = federation.run(renewed, resume=True)
    assert list(result.privacy.helpers) == ["helper-1", "helper-2"]
    assert [(one.round, one.clients) for one in federation.sums()] == [(1, 0), (2, 4), (3, 4)]
    assert federation.sums()[0].lost == "round 1: a helper was replaced or started again"
    assert not RunDirectory(tmp_path, "toy").config()["secure-sums.renew"]


@pytest.mark.parametrize("config", [noised(), RECORDS], ids=["client", "record"])
def test_terms_that_clients_paid_for_stand_after_more_clients_have_enrolled(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helper_sums, "MOST_BY_DEFAULT", 4)
    federation = SumFederation(tmp_path, clients=5)
    late = federation.sessions.pop(FIRST)
    federation.connect()
    kill(monkeypatch, SumStore, "fix", after=False)
    with pytest.raises(KilledError):
        federation.run(config)
    federation.sessions = {FIRST: late, **federation.sessions}
    federation.connect()
    resumed = federation.run(config, resume=True)
    assert [one.clients for one in federation.sums()] == [4, 4, 5]
    assert not any(one.rejected for one in federation.sums())
    spent = [s.releaser.budget.ledger(config.privacy).entries() for s in federation.sessions.values()]
    assert [sum(entry.slot.round > 0 for entry in entries) for entries in spent] == [1, 3, 3, 3, 3]
    assert resumed.rounds_done == 3
