"""A hub answers for each of its clients, whatever becomes of another one."""

import threading
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Error, RecordDict

from client.hub import hub as hub_module
from client.hub.hub import Hub
from client.privacy.budget import Reservation
from common.config.parse import to_json
from common.errors import LedgerError
from common.models import parameters
from common.wire.codec import decode, encode
from common.wire.hubs import address, is_from_hub, split_answers
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
