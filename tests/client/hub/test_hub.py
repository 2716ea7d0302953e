"""A hub answers for each of its clients, whatever becomes of another one."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Error, Message, RecordDict

from client.hub import hub as hub_module
from client.hub.hub import Hub
from client.hub.view import HubView
from client.node.failures import ServerAwayError
from client.owner.control import OwnerControl, RunningClient, leave, pause
from client.owner.journal import RequestJournal, read_journal
from client.owner.policy import Policy
from client.privacy.budget import Reservation
from common.config.parse import to_json
from common.errors import LedgerError, RefusedError
from common.models import parameters
from common.text import size
from common.wire.codec import decode, encode
from common.wire.hubs import address, is_from_hub, split_answers, sum_of
from common.wire.messages import (
    ENROL,
    HELPER,
    TRAIN,
    EnrolReply,
    EnrolRequest,
    HelperReply,
    HelperRequest,
    Payload,
    TrainReply,
    TrainRequest,
)
from tests.support.build import task_model
from tests.support.hubs import with_names
from tests.support.owners import noisy, owners
from tests.support.toys import CATALOGUE, configured, instruction

CONFIG = configured("fedavg")

INVITATION = EnrolRequest("toy", to_json(CONFIG), CATALOGUE.to_json())


def hub_of(together: int = 1) -> Hub:
    return Hub({session.client: session for session in with_names(owners(5)).values()}, together)


def ask(hub: Hub, request: Payload, kind: str, *names: str) -> dict[str, Any]:
    content = address(encode(request), names) if names else encode(request)
    return dict(split_answers(hub.respond(instruction(8, content, kind)).content))


def training(hub: Hub) -> TrainRequest:
    enrolled = decode(EnrolReply, ask(hub, INVITATION, ENROL)["client-2"])
    return TrainRequest(1, enrolled.enrolment, parameters(task_model(CONFIG, CATALOGUE)))


def test_all_clients_answer_an_invitation_and_the_named_ones_any_request() -> None:
    hub = hub_of()
    assert list(ask(hub, INVITATION, ENROL)) == [*hub.sessions]
    answers = ask(hub, training(hub), TRAIN, "b/client-1", "a/client-9")
    assert isinstance(answers["b/client-1"], RecordDict)
    assert answers["a/client-9"].reason == "this hub does not host such a client"


def test_a_cohort_that_fails_trains_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, train = hub_of(together=5), hub_module.train

    def fail(options: Any, participants: Any) -> Any:
        if any(one.client == "a/client-3" for one in participants):
            raise ValueError("a value of /home/ann")
        return train(options, participants)

    monkeypatch.setattr(hub_module, "train", fail)
    answers = ask(hub, training(hub), TRAIN)
    failed = {name for name, answer in answers.items() if isinstance(answer, Error)}
    assert failed == {"a/client-3"}
    assert "ann" not in answers["a/client-3"].reason
    assert decode(TrainReply, answers["client-2"]).steps == CONFIG.method_options.steps("local")


def noisy_training(hub: Hub, folder: Path) -> TrainRequest:
    config = noisy(folder, "fedavg")
    enrolment = decode(
        EnrolReply, ask(hub, EnrolRequest("toy", to_json(config), CATALOGUE.to_json()), ENROL)["client-2"]
    )
    return TrainRequest(1, enrolment.enrolment, parameters(task_model(config, CATALOGUE)), cost=0.001)


def test_ledgers_of_a_cohort_wait_for_the_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub, commit, all_at_once = hub_of(together=5), Reservation.commit, threading.Barrier(5)

    def waiting(*arguments: Any, **options: Any) -> bytes:
        all_at_once.wait(timeout=20)
        return commit(*arguments, **options)

    monkeypatch.setattr(Reservation, "commit", waiting)
    answers = ask(hub, noisy_training(hub, tmp_path), TRAIN)
    assert all(isinstance(answer, RecordDict) for answer in answers.values()), answers


def test_a_ledger_that_cannot_be_written_leaves_out_its_client_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = hub_of(together=5)
    request = noisy_training(hub, tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        raise LedgerError("free disk space")

    budget = hub.sessions["b/client-1"].releaser.budget
    monkeypatch.setattr(budget.ledger(noisy(tmp_path).privacy), "charge", fail)
    answers = ask(hub, request, TRAIN)
    assert {name for name, answer in answers.items() if isinstance(answer, Error)} == {"b/client-1"}


def test_requests_that_no_client_can_read_have_one_error() -> None:
    hub = hub_of()
    assert hub.respond(instruction(8, RecordDict(), TRAIN)).has_error()
    assert hub.respond(instruction(8, encode(INVITATION), "query.unheard_of")).error.reason.startswith("unsupported")


def test_a_hub_is_no_helper() -> None:
    reply = hub_of().respond(instruction(8, encode(HelperRequest("toy", "{}")), HELPER))
    assert not is_from_hub(reply.content)
    assert decode(HelperReply, reply.content).card == ""


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
