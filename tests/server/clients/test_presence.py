"""Clients of a run round by round."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from common.errors import PAUSED_BY_OWNER
from server.clients.presence import MAX_CLIENTS, REVOKED, Attendance, Presence, select_clients
from server.clients.roster import EnrolledClient, Roster
from server.exchange.grid import Exchange
from server.record.events import ClientRound, ClientState, RoundEvent

NOW = 1_800_000_000.0


def exchange(asked: Iterable[int], missing: Iterable[int] = (), kind: str = "train") -> Exchange:
    asked, missing = tuple(asked), tuple(missing)
    answered = [node for node in asked if node not in missing]
    return Exchange(
        kind=kind,
        asked=asked,
        replies=(),
        missing=missing,
        failed={},
        seconds=2.0,
        bytes_down=0,
        bytes_up=0,
        durations=dict.fromkeys(answered, 0.25),
        down_by_node=dict.fromkeys(asked, 100),
        up_by_node=dict.fromkeys(answered, 40),
    )


class Federation:
    """Roster of clients ann, bob, ... on nodes 11, 12, ... that may go offline."""

    def __init__(self, *names: str, total: float | None = None) -> None:
        self.roster, self.online = Roster(), set(range(11, 11 + len(names)))
        for node, name in enumerate(names, 11):
            self.roster.enrol(EnrolledClient(name, node, "toy:0", 3))
        self.presence = Presence(self.roster, lambda: self.online, total, clock=lambda: NOW)
        self.number = 0

    def round(self, missing: Iterable[int] = (), rejected: dict[str, str] | None = None) -> Attendance:
        """Ask all clients that are online at the start; `missing` go offline before they answer."""
        self.number += 1
        self.roster.select_uninvited(self.online)
        training = exchange(sorted(c.node for c in self.roster.select_trainable(self.online).values()), missing)
        self.presence.record(training)
        self.online -= set(missing)
        return self.presence.attend(self.number, training, rejected or {})


def test_a_client_that_answers_is_online_with_its_time_and_traffic() -> None:
    federation = Federation("ann")
    attendance = federation.round()
    assert attendance.clients == {
        "ann": ClientRound(state="online", seconds=0.25, bytes_up=40, bytes_down=100, last_seen=NOW)
    }
    assert (attendance.states, attendance.gone, attendance.lost) == ({"online": 1}, {}, {})


def test_a_client_that_is_gone_stays_named_until_it_returns() -> None:
    federation = Federation("ann", "bob")
    federation.round()
    assert federation.round(missing=[12]).gone == {"bob": 2}
    later = federation.round()
    assert (later.gone, later.lost, later.clients["bob"].state) == ({"bob": 2}, {"bob": ""}, "missing")
    assert later.clients["bob"] == ClientRound(state="missing", last_seen=NOW)
    federation.online.add(12)
    back = federation.round()
    assert (back.gone, back.lost, back.states) == ({}, {}, {"online": 2})


def test_a_client_that_is_connected_but_silent_is_late() -> None:
    federation = Federation("ann", "bob")
    federation.roster.select_uninvited(federation.online)
    training = exchange([11, 12], missing=[12])
    federation.presence.record(training)
    attendance = federation.presence.attend(1, training, {})
    assert (attendance.clients["bob"].state, attendance.gone, attendance.lost) == ("late", {}, {})


@pytest.mark.parametrize(
    ("reason", "state"), [("disk full", "refused"), (PAUSED_BY_OWNER, "paused"), (REVOKED, "revoked")]
)
def test_a_member_that_refuses_later_stays_named_with_its_reason(reason: str, state: str) -> None:
    federation = Federation("ann", "bob")
    federation.round()
    federation.roster.leave(12)
    federation.roster.refuse(12, reason)
    attendance = federation.round()
    assert (attendance.clients["bob"].state, attendance.lost) == (state, {"bob": reason})


def test_a_client_that_is_revoked_before_it_answers_is_named_with_that_reason() -> None:
    federation = Federation("ann", "bob")
    federation.roster.select_uninvited(federation.online)
    training = exchange([11, 12], missing=[12])
    federation.presence.record(training)
    federation.roster.registered[12] = federation.roster.leave(12)
    federation.roster.refuse(12, REVOKED)
    attendance = federation.presence.attend(1, training, {})
    assert (attendance.states, attendance.gone, attendance.lost) == ({"online": 1, "revoked": 1}, {}, {"bob": REVOKED})
    federation.online.remove(12)  # the SuperLink has removed it
    later = federation.round()
    assert (later.states, later.gone, later.lost) == ({"online": 1, "revoked": 1}, {}, {"bob": REVOKED})


def test_a_reply_that_does_not_count_is_no_further_loss() -> None:
    federation = Federation("ann", "bob")
    attendance = federation.round(rejected={"bob": "update: non-finite numbers"})
    assert (attendance.clients["bob"].state, attendance.lost) == ("refused", {})


def test_a_node_that_never_took_part_is_listed_but_not_lost() -> None:
    federation = Federation("ann")
    federation.online.add(99)
    federation.roster.refuse(99, "no")
    attendance = federation.round()
    assert (attendance.clients["node-99"].state, attendance.lost) == ("refused", {})


def test_cost_and_remaining_budget_are_those_that_the_server_counted() -> None:
    federation = Federation("ann", total=10.0)
    for spent in (1.0, 2.5):
        federation.roster.charge(11, spent)
        client = federation.round().clients["ann"]
    assert (client.cost, client.left) == (2.5, 6.5)


def test_a_client_gone_before_a_resume_is_still_gone_after_it() -> None:
    before, after = Federation("ann", "bob"), Federation("ann")
    before.round()
    lost = before.round(missing=[12])
    line = RoundEvent(round=2, rounds=9, loss=0, seconds=0, answered=1, asked=2, bytes_down=0, bytes_up=0)
    after.presence.restore(replace(line, gone=lost.gone, clients=lost.clients))
    resumed = after.round()
    assert (resumed.gone, resumed.lost) == ({"bob": 2}, {"bob": ""})
    assert resumed.clients["bob"].last_seen == NOW


def test_a_line_of_many_clients_has_the_slowest_and_those_that_are_not_online() -> None:
    seconds = {f"c{k:04}": float(k) for k in range(MAX_CLIENTS)}
    online: dict[str, ClientState] = dict.fromkeys(seconds, "online")
    assert select_clients(online, seconds) == [*online]
    chosen = select_clients({**online, "late": "late", "gone": "missing"}, seconds)
    assert len(chosen) == 102
    assert {"late", "gone", "c0999", "c0900"} <= {*chosen}
    assert "c0899" not in chosen
    away: dict[str, ClientState] = {f"a{k:04}": "missing" for k in range(2000)}
    assert len(select_clients(online | away, seconds)) == MAX_CLIENTS
