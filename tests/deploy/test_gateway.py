"""A gateway passes requests on: names, limits, absent clients, restarts, and its log."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import Context, Error, Message, RecordDict

from client.owner.control import OwnerControl, RunningClient, leave, pause
from client.state import MemoryStore
from common.config.flatten import to_json
from common.errors import RefusedError
from common.models import parameters
from common.wire.codec import decode, encode
from common.wire.hubs import address, split_answers, sum_of
from common.wire.messages import ENROL, TRAIN, EnrolReply, EnrolRequest, Payload, TrainReply, TrainRequest
from common.wire.sums import HELPER, HelperReply, HelperRequest
from deploy.gateway import Gateway
from deploy.gateway_view import GatewayView
from tests.support.build import task_model
from tests.support.gateways import gateway, gateway_of, respondents
from tests.support.hubs import NodeGrid, nodes_of
from tests.support.owners import owners
from tests.support.toys import CATALOGUE, configured, instruction

CONFIG = configured("fedavg", federation__deadline=2.0)
INVITATION = EnrolRequest("toy", to_json(CONFIG), CATALOGUE.to_json())
ALL = ["west/a/client-0", "west/a/client-3", "west/b/client-1", "west/b/client-4", "west/client-2"]


def ask(one: Gateway, request: Payload, kind: str, *names: str, sums: bool = False) -> Message:
    content = address(encode(request), names, sums=sums) if names else encode(request)
    return one.respond(instruction(8, content, kind))


def training(one: Gateway) -> TrainRequest:
    enrolled = split_answers(ask(one, INVITATION, ENROL).content)["west/client-2"]
    assert isinstance(enrolled, RecordDict)
    reply = decode(EnrolReply, enrolled)
    assert reply.client == "west/client-2"
    return TrainRequest(1, reply.enrolment, parameters(task_model(CONFIG, CATALOGUE)))


def reasons(reply: Message) -> dict[str, str]:
    return {name: one.reason for name, one in split_answers(reply.content).items() if isinstance(one, Error)}


def test_the_named_clients_answer_under_longer_names() -> None:
    one = gateway_of(owners(5))
    assert list(split_answers(ask(one, INVITATION, ENROL).content)) == ALL
    reply = ask(one, training(one), TRAIN, "west/b/client-1", "west/client-9")
    assert list(split_answers(reply.content)) == ["west/b/client-1", "west/client-9"]
    assert reasons(reply) == {"west/client-9": "this gateway has no such client; it may have left"}
    stranger = ask(one, training(one), TRAIN, "east/client-1")
    assert stranger.error.reason == "'east/client-1' is no client of the gateway 'west'"


def test_clients_learn_of_each_gateway_on_the_way(caplog: pytest.LogCaptureFixture) -> None:
    grid, store = NodeGrid(respondents(nodes_of(owners(5)))), MemoryStore()
    with caplog.at_level(logging.INFO, "fedloom.client"):
        ask(Gateway("west", grid, 5, store), replace(INVITATION, run="on-the-way", hops=1), ENROL)
    assert {decode(EnrolRequest, message.content).hops for message in grid.pushed} == {2}
    assert "run on-the-way: 2 gateways on the way to the server; its operator sees all" in caplog.text


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (replace(INVITATION, hops=3), "3 gateways are on the way already"),
        (replace(INVITATION, helpers=["{}"]), "runs with helpers take no gateways"),
    ],
)
def test_too_long_ways_and_runs_with_helpers_are_refused(request_: EnrolRequest, reason: str) -> None:
    one = gateway_of(owners(5))
    assert reason in ask(one, request_, ENROL).error.reason


def test_a_gateway_takes_part_when_all_its_clients_are_here() -> None:
    reply = ask(gateway_of(owners(5), clients=6), INVITATION, ENROL)
    assert "this gateway has 5 clients of 6, and takes part when all are here" in reply.error.reason


def test_an_absent_client_is_named_and_the_others_answer_in_time() -> None:
    nodes = respondents(nodes_of(owners(5)))
    answer = nodes[8]
    one = gateway({**nodes, 8: lambda message: None if message.metadata.message_type == TRAIN else answer(message)})
    reply = ask(one, training(one), TRAIN)
    assert reasons(reply) == dict.fromkeys(["west/a/client-0", "west/a/client-3"], "no answer")
    answers = split_answers(reply.content)
    assert isinstance(trained := answers["west/client-2"], RecordDict)
    assert decode(TrainReply, trained).update


def test_replies_are_added_up_where_the_server_asks_for_sums() -> None:
    one = gateway_of(owners(5), together=2)
    request = training(one)
    summed, single = (ask(one, request, TRAIN, *ALL, sums=sums).content for sums in (True, False))
    total = sum_of(summed)
    assert total is not None
    assert list(total.clients) == ALL
    assert sum_of(single) is None
    for name, answer in split_answers(summed).items():
        other = split_answers(single)[name]
        assert isinstance(answer, RecordDict)
        assert isinstance(other, RecordDict)
        without, whole = decode(TrainReply, answer), decode(TrainReply, other)
        assert not without.update
        assert whole.update
        assert (without.steps, without.examples) == (whole.steps, whole.examples)
        assert without.loss == pytest.approx(whole.loss, rel=1e-5)


def test_a_restarted_gateway_asks_its_clients_again_and_forgets_other_runs() -> None:
    nodes, store = respondents(nodes_of(owners(5))), MemoryStore()
    request = training(gateway(nodes, store=store))
    again = ask(gateway(nodes, store=store), request, TRAIN)
    assert list(split_answers(again.content)) == ALL
    assert not reasons(again)
    stranger = ask(gateway(nodes, store=store), replace(request, enrolment="toy:0123"), TRAIN)
    assert "not enrolled in this run" in stranger.error.reason


def test_a_client_that_failed_is_invited_again_by_its_name() -> None:
    grid = NodeGrid(respondents(nodes_of(owners(5))))
    one = Gateway("west", grid, 5, MemoryStore())
    training(one)
    grid.pushed.clear()
    answers = split_answers(ask(one, INVITATION, ENROL, "west/b/client-1").content)
    assert list(answers) == ["west/b/client-1"]
    assert isinstance(answers["west/b/client-1"], RecordDict)
    assert [message.metadata.dst_node_id for message in grid.pushed] == [9]


def test_a_refusal_reaches_the_clients_that_it_is_for() -> None:
    one = gateway_of(owners(5))
    training(one)
    refusal = replace(INVITATION, refusal="join as bob")
    found = reasons(ask(one, refusal, ENROL, "west/b/client-1"))
    assert found == {"west/b/client-1": "the server does not admit this client: join as bob"}
    assert list(reasons(ask(one, refusal, ENROL))) == ALL


def test_a_gateway_is_no_helper() -> None:
    reply = ask(gateway_of(owners(5)), HelperRequest("toy", "{}"), HELPER)
    assert decode(HelperReply, reply.content).card == ""


@pytest.fixture
def watched(tmp_path: Path) -> tuple[GatewayView, list[str], list[bool]]:
    lines, faults = list[str](), list[bool]()
    control = OwnerControl(tmp_path, RunningClient(1, "west", "localhost:9092", ""))
    return GatewayView("localhost:9092", "west", control, lambda: bool(faults), lines.append), lines, faults


Watched = tuple[GatewayView, list[str], list[bool]]


def observed(view: GatewayView, one: Gateway, request: Payload, kind: str) -> None:
    message = instruction(8, encode(request), kind)
    view.begin(message, Context(1, 8, {}, RecordDict(), {}))
    view.finish(one.respond(message), 0.5)
    view.acknowledge()


def test_the_log_has_a_line_for_each_request_and_each_new_reason(watched: Watched) -> None:
    view, lines, _ = watched
    nodes = respondents(nodes_of(owners(5)))
    keep: Callable[[Message], Message | None] = nodes[3]
    one = gateway({**nodes, 3: lambda m: None if m.metadata.message_type == TRAIN else keep(m)})
    request = training(one)
    for _ in range(2):
        observed(view, one, request, TRAIN)
    assert [line.partition(",")[0] for line in lines] == [
        "run toy round 1: 4 of 5 clients trained",
        "west/client-2 left out: no answer",
        "run toy round 1: 4 of 5 clients trained",
    ]
    observed(view, one, replace(INVITATION, hops=3), ENROL)
    assert lines[-1].startswith("request refused: 3 gateways are on the way")


def test_its_operator_pauses_it_and_a_lost_server_ends_it(watched: Watched, tmp_path: Path) -> None:
    view, _, faults = watched
    with view._control:
        assert not view.leaves
        pause(tmp_path)
        view.check(instruction(8, kind=ENROL))
        with pytest.raises(RefusedError, match="paused"):
            view.check(instruction(8, kind=TRAIN))
        faults.append(True)
        assert view.leaves
        faults.clear()
        leave(tmp_path)
        assert view.leaves
