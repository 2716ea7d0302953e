"""Operator's view on a hub: a journal entry for each client, and lines for all."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict

from client.hub.hub import Hub
from client.hub.view import HubView
from client.node.failures import ServerAwayError
from client.owner.control import OwnerControl, RunningClient, leave, pause
from client.owner.journal import RequestJournal, read_journal
from client.owner.policy import Policy
from common.errors import RefusedError
from common.text import size
from common.wire.codec import encode
from common.wire.hubs import address, sum_of
from common.wire.messages import ENROL, TRAIN
from tests.client.hub.test_hub import INVITATION, training
from tests.support.hubs import with_names
from tests.support.owners import owners
from tests.support.toys import instruction

CONTEXT = Context(1, 8, {}, RecordDict(), {})


class _Watched:
    """A hub of five clients with its operator's view."""

    def __init__(self, folder: Path, together: int = 1) -> None:
        self.folder, self.lines = folder, list[str]()
        self.sessions = with_names(owners(5))
        self.hub = Hub({session.client: session for session in self.sessions.values()}, together)
        self.control = OwnerControl(folder, RunningClient(1, "ward", "localhost:9092", ""))
        journal = RequestJournal(folder)
        self.view = HubView("localhost:9092", "ward", self.hub, journal, self.control, self.lines.append)

    def ask(self, request: Any, kind: str, *names: str, sums: bool = False) -> Message:
        content = address(encode(request), names, sums=sums) if names else encode(request)
        message = instruction(8, content, kind)
        self.view.begin(message, CONTEXT)
        reply = self.hub.respond(message)
        self.view.finish(reply, 0.5)
        self.view.acknowledge()
        return reply

    def entries(self, asked: str) -> dict[str, dict[str, Any]]:
        return {entry["client"]: entry for entry in read_journal(self.folder) if entry.get("asked") == asked}


def test_each_client_has_its_own_entries(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    request = training(watched.hub)
    watched.ask(request, TRAIN, "a/client-0", "b/client-1")
    found = watched.entries("train")
    assert sorted(found) == ["a/client-0", "b/client-1"]
    assert all(one["acknowledged"] and one["sent_bytes"] > 100 and one["round"] == 1 for one in found.values())
    assert watched.lines == [f"run toy round 1/30: 2 of 2 clients trained, 0.5 s, sent {_sent(found)}"]


def _sent(found: dict[str, dict[str, Any]]) -> str:
    return f"{sum(one['sent_bytes'] for one in found.values()) / 1000:.1f} kB"


def test_an_entry_names_the_arrays_of_the_sum_that_the_client_is_in(tmp_path: Path) -> None:
    watched = _Watched(tmp_path, together=2)
    request = training(watched.hub)
    total = sum_of(watched.ask(request, TRAIN, "a/client-0", "b/client-1", sums=True).content)
    assert total is not None
    found = watched.entries("train")
    for entry in found.values():
        assert {f"sums/update/{name}" for name in request.model} <= entry["tensors"].keys()
        assert entry["clear"].keys() == {"loss", "examples"}
    sent = len(total.content) + sum(one["sent_bytes"] for one in found.values())
    assert f"sent {size(sent)}" in watched.lines[0]


def test_a_reason_of_several_clients_is_one_line(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    for _ in range(2):
        watched.ask(replace(INVITATION, refusal="too many clients"), ENROL)
    assert [line for line in watched.lines if "left out" in line] == [
        "5 clients left out: the server does not admit this client: too many clients"
    ]


def test_a_client_that_refuses_is_named_until_it_takes_part(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    policy = watched.sessions[1].runs._policy
    watched.sessions[1].runs._policy = Policy(methods=("fedrule",))
    watched.ask(INVITATION, ENROL)
    watched.ask(INVITATION, ENROL)
    assert [line for line in watched.lines if "left out" in line] == [
        "a/client-0 left out: the policy does not allow method 'fedavg'"
    ]
    assert "4 of 5 clients take part" in watched.lines[0]
    watched.sessions[1].runs._policy = policy
    watched.ask(INVITATION, ENROL)
    assert "5 of 5 clients take part" in watched.lines[-1]


def test_a_request_that_nobody_can_read_is_in_every_journal(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    message = instruction(8, RecordDict(), TRAIN)
    watched.view.begin(message, CONTEXT)
    watched.view.finish(watched.hub.respond(message), 0.1)
    found = watched.entries("train")
    assert found.keys() == watched.hub.sessions.keys()
    assert all("holds no record" in one["refused"] for one in found.values())


def test_the_connection_is_in_every_journal_and_in_one_line(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    watched.view.connected(8)
    watched.view.away(ServerAwayError("no server"))
    watched.view.left()
    states = [(entry["client"], entry["connection"]) for entry in read_journal(tmp_path)]
    assert sorted(states) == sorted((n, c) for n in watched.hub.sessions for c in ("connected", "away", "left"))
    assert [line.split(" ")[0] for line in watched.lines] == ["connected", "localhost:9092", "left"]


def test_an_operator_pauses_and_ends_the_whole_hub(tmp_path: Path) -> None:
    watched = _Watched(tmp_path)
    request = instruction(8, encode(training(watched.hub)), TRAIN)
    pause(tmp_path)
    with pytest.raises(RefusedError, match="paused"):
        watched.view.check(request)
    watched.view.check(instruction(8, encode(INVITATION), ENROL))
    with watched.control:
        leave(tmp_path, forgets=True)
        for kind in (TRAIN, ENROL):
            with pytest.raises(RefusedError, match="asks to be forgotten"):
                watched.view.check(instruction(8, encode(INVITATION), kind))
        assert not watched.view.leaves
        leave(tmp_path)
        assert watched.view.leaves
