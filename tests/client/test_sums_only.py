"""Clients of a hub whose owner lets an update leave inside sums alone."""

from pathlib import Path

import pytest
from flwr.app import Error, RecordDict

from client.hub.hub import Hub
from client.owner.policy import Policy
from common.config.parse import to_json
from common.models import parameters
from common.options import Scalar
from common.wire.codec import arrays_of, decode, encode
from common.wire.hubs import Answer, address, split_answers, sum_of
from common.wire.messages import ENROL, TRAIN, EnrolReply, EnrolRequest, TrainRequest
from server.run import run
from tests.support.build import task_model
from tests.support.hubs import NodeGrid, nodes_of, settings, with_names
from tests.support.owners import owners
from tests.support.sensors import rounds_of
from tests.support.toys import CATALOGUE, configured, instruction

BOUND = "a/client-0"


def hub_of(*bound: str) -> Hub:
    return Hub({session.client: session for session in with_names(owners(5)).values()}, 2, bound)


def enrol(hub: Hub, method: str = "fedavg", **options: Scalar) -> dict[str, Answer]:
    invitation = EnrolRequest("toy", to_json(configured(method, **options)), CATALOGUE.to_json())
    return split_answers(hub.respond(instruction(8, encode(invitation), ENROL)).content)


def train(hub: Hub, *names: str, sums: bool = True, **options: Scalar) -> tuple[dict[str, Answer], tuple[str, ...]]:
    """Return the answers to a training request, and the clients in their sum."""
    accepted = next(answer for answer in enrol(hub, **options).values() if isinstance(answer, RecordDict))
    model = parameters(task_model(configured("fedavg"), CATALOGUE))
    request = encode(TrainRequest(1, decode(EnrolReply, accepted).enrolment, model))
    reply = hub.respond(instruction(8, address(request, names, sums=sums), TRAIN)).content
    total = sum_of(reply)
    return split_answers(reply), total.clients if total else ()


def reason(answer: Answer) -> str:
    return answer.reason or "" if isinstance(answer, Error) else ""


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        (
            "fedavg",
            {"federation__robust": "median", "federation__min_replies": 3},
            "federation.robust=median compares single updates",
        ),
        ("fedavg", {"federation__answer": "replies"}, "federation.answer is replies"),
        ("ifca", {"clusters": 2}, "ifca uses single updates"),
    ],
)
def test_a_run_that_needs_single_replies_is_refused_with_the_reason(
    method: str, options: dict[str, Scalar], expected: str
) -> None:
    answers = enrol(hub_of(BOUND), method, **options)
    assert expected in reason(answers[BOUND])
    assert [name for name, answer in answers.items() if isinstance(answer, Error)] == [BOUND]


def test_an_update_leaves_inside_a_sum() -> None:
    answers, summed = train(hub_of(BOUND), BOUND, "client-2")
    assert {*summed} == {BOUND, "client-2"}
    assert isinstance(answers[BOUND], RecordDict)
    assert arrays_of(answers[BOUND]) == {}


def test_a_server_that_asks_for_single_replies_gets_none() -> None:
    answers, summed = train(hub_of(BOUND), BOUND, "client-2", sums=False)
    assert not summed
    assert "inside sums alone" in reason(answers[BOUND])
    assert isinstance(answers["client-2"], RecordDict)


def test_a_sum_of_one_client_does_not_leave() -> None:
    answers, summed = train(hub_of(BOUND), BOUND)
    assert not summed
    assert "it would be alone" in reason(answers[BOUND])


def test_a_client_with_steps_of_its_own_is_in_the_sum_of_the_others() -> None:
    hub = hub_of(BOUND)
    session = hub.sessions[BOUND]
    session.policy = Policy(max_local_steps=1)
    answers, summed = train(hub, *hub.sessions)
    assert BOUND in summed
    assert len(summed) == 5
    assert not any(map(reason, answers.values()))


def test_a_long_update_does_not_leave_by_itself() -> None:
    hub = hub_of("a/client-0", "a/client-3")
    answers, summed = train(hub, "a/client-0", "a/client-3", federation__norm_bound=0.01)
    assert not summed
    assert all("far longer" in reason(answer) for answer in answers.values())


def test_a_run_with_single_replies_continues_without_the_client(tmp_path: Path) -> None:
    nodes = {node: one.respond if isinstance(one, Hub) else one for node, one in nodes_of(owners(5)).items()}
    nodes[8] = Hub({name: one for name, one in hub_of().sessions.items() if name.startswith("a/")}, 2, [BOUND]).respond
    limits: dict[str, Scalar] = {"federation__min_clients": 4, "federation__min_replies": 3}
    result = run(NodeGrid(nodes), settings(tmp_path, rounds=2, federation__robust="median", **limits), tmp_path)
    assert (result.status, len(result.clients), BOUND in result.clients) == ("completed", 4, False)
    assert [event.answered for event in rounds_of(tmp_path)] == [4, 4]
