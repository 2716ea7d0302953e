"""Losses and lies during secure sums: clients are left out, and no second sum is opened."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message

from common.config.run import RunConfig
from common.errors import QuorumError, RefusedError
from common.secure.terms import SumTerms
from common.wire.codec import decode, encode
from common.wire.messages import (
    HELPER,
    OPEN,
    PREPARE,
    TRAIN,
    HelperReply,
    HelperRequest,
    OpenRequest,
    TrainReply,
    TrainRequest,
)
from server.record.folder import RunDirectory
from server.record.journal import Journal
from server.secure import sums as helper_sums
from server.secure.store import SumStore
from tests.support.sum_runs import MIN_SUM, SumFederation, SumGrid, losing, noised, summed

FIRST, FIRST_HELPER = 1, 5
"""Nodes of the first client and of the first helper."""

GONE = (
    "round 1: helper 'helper-{}' refuses: round 1 of run 'toy' is of a key that this helper does not have: it started again,"
    " or the run is over"
)
"""Reason of a lost sum."""


def test_a_client_lost_before_its_upload_is_not_in_the_sum(tmp_path: Path) -> None:
    config, federation = noised(), SumFederation(tmp_path)
    federation.grid.after = losing(TRAIN, [FIRST])
    federation.run(config)
    assert [one.clients for one in federation.sums()] == [3, 4, 4]
    assert len(set(federation.spent(config))) == 1  # a paid upload stays paid


def test_a_box_that_does_not_open_is_named_and_left_out(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)

    def garble(message: Message) -> Message:
        if message.metadata.message_type == TRAIN and message.metadata.src_node_id == FIRST:
            reply = decode(TrainReply, message.content)
            spoilt = replace(reply, sealed=[reply.sealed[0], "A" * len(reply.sealed[1])])
            message.content = encode(spoilt)
        return message

    federation.grid.after = garble
    asked: list[int] = []
    federation.grid.before = lambda m: (
        asked.append(m.metadata.dst_node_id) if m.metadata.message_type == TRAIN else None
    )
    federation.run(summed(rounds=5))
    assert [one.clients for one in federation.sums()] == [3] * 5
    assert asked.count(FIRST) == 3
    assert len(asked) == 5 * 4 - 2
    assert federation.sums()[0].rejected == {"client-0": "helper 'helper-1' cannot open its box"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda reply: replace(reply, masked={}),
        lambda reply: replace(reply, masked={"sum": reply.masked["sum"][1:]}),
        lambda reply: replace(reply, masked={"sum": reply.masked["sum"].astype("<f8")}),
        lambda reply: replace(reply, sealed=reply.sealed[:1]),
        lambda reply: replace(reply, steps=10_000),
        lambda reply: replace(reply, round=7),
        lambda reply: replace(reply, update={"w": reply.masked["sum"].astype("<f4")}),
    ],
)
def test_a_malformed_upload_is_left_out(spoil: Callable[[TrainReply], TrainReply], tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)

    def change(message: Message) -> Message:
        if message.metadata.message_type == TRAIN and message.metadata.src_node_id == FIRST:
            message.content = encode(spoil(decode(TrainReply, message.content)))
        return message

    federation.grid.after = change
    federation.run(summed(rounds=1))
    assert [one.clients for one in federation.sums()] == [3]


def test_a_sum_of_too_few_clients_is_not_opened(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, MIN_SUM)
    federation.grid.after = losing(TRAIN, [FIRST], times=99)
    opened: list[str] = []
    federation.grid.before = lambda message: opened.append(message.metadata.message_type)
    with pytest.raises(QuorumError, match="usable uploads of 2 owners, 3 needed"):
        federation.run(summed(federation__wait=0.01, federation__deadline=0.2))
    assert not {PREPARE, OPEN} & set(opened)


@pytest.mark.parametrize("config", [noised(), summed()], ids=["noise", "exact"])
@pytest.mark.parametrize(("kind", "lost"), [(HELPER, 0), (TRAIN, 1), (PREPARE, 1), (OPEN, 1)])
def test_a_helper_that_starts_again_costs_the_open_round(
    config: RunConfig, kind: str, lost: int, tmp_path: Path
) -> None:
    """The helper replies with a new key to messages of each kind, and the run continues with it."""
    federation = SumFederation(tmp_path)
    left = [1, 2]  # the second message of the kind, so that the run has begun

    def restart(message: Message) -> None:
        if message.metadata.message_type == kind and left and left.pop() == 1:
            federation.restart_helper(0)

    federation.grid.before = restart
    result = federation.run(config)
    assert (result.rounds_done, [one.clients for one in federation.sums()]) == (3, [0, 4, 4] if lost else [4, 4, 4])
    assert [one.lost for one in federation.sums() if one.lost] == [GONE.format(0)] * lost


def restarting(federation: SumFederation, kind: str, when: int, helper: int) -> Callable[[Message], None]:
    """Return a hook that starts a helper again before the n-th message of a kind."""
    number = count(1)

    def restart(message: Message) -> None:
        if message.metadata.message_type == kind and next(number) == when:
            federation.restart_helper(helper)

    return restart


def test_a_closed_form_whose_helper_starts_again_has_the_bits_of_an_undisturbed_one(tmp_path: Path) -> None:
    """The lost sum is asked again with fresh masks, and so are those of all groups."""
    starts = ((TRAIN, 1, 0), (PREPARE, 3, 1), (OPEN, 1, 0), (OPEN, 1, 1), (OPEN, 4, 0))
    for groups, clients, of_groups in ((1, 4, starts), (3, 6, starts[4:])):
        config = summed("ridge", **{"secure-sums__groups": groups, "secure-sums__min-sum": 2})
        through = SumFederation(tmp_path / str(groups), clients).run(config)
        for kind, when, helper in of_groups:
            federation = SumFederation(tmp_path / f"{groups}-{kind}-{when}-{helper}", clients)
            federation.grid.before = restarting(federation, kind, when, helper)
            result = federation.run(config)
            assert (result.model_sha256, result.rounds_done) == (through.model_sha256, through.rounds_done)
            again = result.privacy.sums["opened"] - through.privacy.sums["opened"]
            assert (result.privacy.sums["lost"], again in range(groups)) == (1, True)


def test_a_closed_form_whose_helpers_all_start_again_in_a_sum_ends(tmp_path: Path) -> None:
    """Nobody remembers then if the sum was opened, and clients give no second one."""
    federation, seen = SumFederation(tmp_path), list[str]()

    def restart(message: Message) -> None:
        if message.metadata.message_type == OPEN and OPEN not in seen:
            federation.restart_helper(0)
            federation.restart_helper(1)
        seen.append(message.metadata.message_type)

    federation.grid.before = restart
    with pytest.raises(QuorumError, match="no helper remembers all sums of round 1; nothing was sent"):
        federation.run(summed("ridge"))
    assert seen.count(OPEN) == len(federation.desks)


def test_noise_repeats_no_sum_of_a_closed_form(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)
    federation.grid.before = lambda m: federation.restart_helper(0) if m.metadata.message_type == OPEN else None
    with pytest.raises(RefusedError, match="started again, or the run is over; a closed form needs each of its sums"):
        federation.run(noised(method="ridge"))
    assert federation.sums("repeat/1") == []


@pytest.mark.parametrize("config", [noised(), summed()], ids=["noise", "exact"])
def test_a_helper_that_starts_again_while_the_server_is_away_costs_the_round_that_clients_paid_for(
    config: RunConfig, tmp_path: Path
) -> None:
    federation = SumFederation(tmp_path)
    federation.grid.after = losing(PREPARE, [FIRST_HELPER], times=99)
    with pytest.raises(QuorumError, match="helper 'helper-0' does not answer"):
        federation.run(config)
    federation.connect()
    federation.restart_helper(0)
    asked: list[str] = []
    federation.grid.before = lambda message: asked.append(message.metadata.message_type)
    result = federation.run(config, resume=True)
    assert (result.rounds_done, [one.clients for one in federation.sums()]) == (3, [0, 4, 4])
    assert federation.sums()[0].lost == "round 1: a helper was replaced or started again"
    assert asked.count(TRAIN) == 2 * len(federation.sessions)  # nobody is asked for the lost round


def test_a_helper_that_is_a_copy_on_another_disk_gets_no_second_sum_of_a_round(tmp_path: Path) -> None:
    """Without noise, a client answers a round under the first keys alone, since a copy knows no opened sums."""
    config, federation = summed(rounds=1), SumFederation(tmp_path)
    requests: list[Message] = []
    federation.grid.before = lambda m: requests.append(m) if m.metadata.message_type == TRAIN else None
    federation.run(config)
    federation.restart_helper(0)
    copy = federation.desks[0].card(HelperRequest("toy", "{}")).card
    request = decode(TrainRequest, requests[0].content)
    about = SumTerms.from_json(request.terms)
    other = replace(about, keys=(copy, about.keys[1]))
    first = federation.sessions[FIRST]
    first.train(request)  # the same keys may ask again
    with pytest.raises(RefusedError, match="a helper has another key than in this client's sum of round 1"):
        first.train(replace(request, terms=other.to_json()))


def test_helpers_open_no_second_set_of_a_round(tmp_path: Path) -> None:
    config, federation = noised(rounds=1), SumFederation(tmp_path)
    opened: list[Message] = []
    federation.grid.before = lambda m: opened.append(m) if m.metadata.message_type == OPEN else None
    federation.grid.after = lambda message: None if message.metadata.message_type == OPEN else message
    with pytest.raises(QuorumError):
        federation.run(config)
    request = decode(OpenRequest, opened[0].content)
    with pytest.raises(RefusedError, match="opened for another set"):
        federation.desks[0].open(replace(request, clients=request.clients[1:]))


@pytest.mark.parametrize("card", ["{}", "no card", ""])
def test_a_node_whose_card_is_not_valid_does_not_help(card: str, tmp_path: Path) -> None:
    federation = SumFederation(tmp_path)

    def forge(message: Message) -> Message:
        if message.metadata.message_type == HELPER and message.metadata.src_node_id == FIRST_HELPER:
            message.content = encode(HelperReply(card))
        return message

    federation.grid.after = forge
    with pytest.raises(QuorumError, match="1 helper online, 2 required"):
        federation.run(summed(**{"secure-sums__wait": 0.05}))


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
    federation.grid.after = losing(OPEN, [FIRST_HELPER], times=99)
    with pytest.raises(QuorumError, match="helper 'helper-0' does not answer"):
        federation.run(config)
    requests = asked(federation.connect())
    assert federation.run(config, resume=True).model_sha256 == through.model_sha256
    assert (TRAIN, 1) not in requests


@pytest.mark.parametrize("config", [noised(), summed()])
def test_helpers_that_are_gone_are_replaced(config: RunConfig, tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, helpers=3)
    federation.grid.after = losing(OPEN, [FIRST_HELPER], times=99)
    with pytest.raises(QuorumError, match="helper 'helper-0' does not answer"):
        federation.run(config)
    federation.connect().forget(FIRST_HELPER)
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
