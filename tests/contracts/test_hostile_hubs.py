"""A hub that does not keep to the protocol: its clients are left out with a reason, and the run continues."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict

from client.hub.hub import Hub
from common.arrays import Arrays
from common.node_names import NamedKey, write_names
from common.wire.codec import RECORD, decode, encode
from common.wire.hubs import Answer
from common.wire.messages import ENROL, TRAIN, EnrolReply, TrainReply
from server.exchange.relays import HostedClient
from server.record.result import Result
from server.run import run
from studies.lies.liars import Lie, filled
from tests.server.clients.test_node_directory import MARKS, NODES
from tests.support.hubs import NodeGrid, lying, nodes_of, settings, with_answers
from tests.support.owners import owners
from tests.support.sensors import rounds_of

ALL, OTHERS = (
    ["a/client-0", "a/client-3", "b/client-1", "b/client-4", "client-2"],
    ["b/client-1", "b/client-4", "client-2"],
)


def lied(kind: str, lie: Lie, folder: Path) -> Result:
    nodes = nodes_of(owners(5))
    hub = nodes.pop(8)
    assert isinstance(hub, Hub)
    honest = {node: one.respond if isinstance(one, Hub) else one for node, one in nodes.items()}
    return run(NodeGrid({8: lying(hub, kind, lie), **honest}), settings(folder, federation__min_clients=3), folder)


def entries(change: Callable[[dict[str, object]], dict[str, object]]) -> Lie:
    """Return the lie that changes the entries of a hub's record."""

    def lie(reply: Message) -> Message:
        reply.content = RecordDict({RECORD: ConfigRecord(change(dict(reply.content[RECORD])))})
        return reply

    return lie


def first(change: Callable[[Answer], Answer]) -> Lie:
    """Return the lie that changes the first answer of a hub."""
    return with_answers(lambda answers: {n: change(a) if n == "a/client-0" else a for n, a in answers.items()})


def update(change: Callable[[Arrays], Arrays]) -> Callable[[Answer], Answer]:
    def lie(answer: Answer) -> Answer:
        assert isinstance(answer, RecordDict)
        reply = decode(TrainReply, answer)
        return encode(TrainReply(1, change(reply.update), reply.gradient, reply.loss, reply.examples, reply.steps))

    return lie


WHOLE: dict[str, tuple[Lie, str]] = {
    "a stranger": (
        with_answers(lambda a: {**a, "b/client-1": a["a/client-0"]}),
        "answers for 'b/client-1', which was not asked",
    ),
    "a name twice": (entries(lambda e: e | {"hub.clients": ["a/client-0"] * 2}), "names client 'a/client-0' twice"),
    "fewer codes": (entries(lambda e: e | {"hub.codes": [0]}), "hub.codes: not one int for each of 2 clients"),
    "texts as codes": (entries(lambda e: e | {"hub.codes": ["0", "0"]}), "hub.codes: not one int"),
    "an unheard-of code": (entries(lambda e: e | {"hub.codes": [0, 7]}), "belongs to no client with an answer"),
    "another version": (entries(lambda e: e | {"wire.schema": 1}), "expected HubReply of schema version"),
    "further entries": (entries(lambda e: e | {"2/round": 1}), "entry '2/round' belongs to no client"),
    "no names": (entries(lambda e: {k: v for k, v in e.items() if k != "hub.clients"}), "names 1 to 100,000 clients"),
    "an error": (entries(lambda e: {}), "expected HubReply"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_malformed_reply_is_left_out_as_a_whole(name: str, tmp_path: Path) -> None:
    lie, reason = WHOLE[name]
    result = lied(TRAIN, lie, tmp_path)
    assert result.status == "completed"
    assert [event.answered for event in rounds_of(tmp_path)] == [3, 3, 3]
    for event in rounds_of(tmp_path):
        assert all(reason in event.refused[client] for client in ("a/client-0", "a/client-3"))


SINGLE: dict[str, tuple[Lie, str]] = {
    "NaN": (first(update(filled(float("nan")))), "non-finite numbers"),
    "1e300 records": (first(lambda a: changed(a, examples=10**18)), "on 1000000000000000000 records"),
    "no steps": (first(lambda a: changed(a, steps=0)), "0 local steps"),
    "no answer": (with_answers(lambda a: {n: one for n, one in a.items() if n != "a/client-0"}), "sent no answer"),
    "an error": (first(lambda a: Error(1000, "full disk")), "full disk"),
}


def changed(answer: Answer, **entries: int) -> Answer:
    assert isinstance(answer, RecordDict)
    return RecordDict({RECORD: ConfigRecord({**answer[RECORD], **entries})})


@pytest.mark.parametrize("name", SINGLE)
def test_an_invalid_answer_leaves_out_its_client_alone(name: str, tmp_path: Path) -> None:
    lie, reason = SINGLE[name]
    result = lied(TRAIN, lie, tmp_path)
    assert result.status == "completed"
    [event, *_] = rounds_of(tmp_path)
    assert event.answered == 4
    assert reason in event.refused["a/client-0"]
    assert "a/client-3" not in event.refused


def enrolled(client: str) -> Lie:
    return first(lambda answer: encode(EnrolReply(client, "toy:0", 3)))


INVITATION: dict[str, tuple[Lie, str]] = {
    "two hubs": (
        with_answers(lambda a: {"a/x": a["a/client-0"], "b/client-1": a["a/client-3"]}),
        "clients of 'a' and of 'b'",
    ),
    "no prefix": (with_answers(lambda a: {"client-2": a["a/client-0"]}), "invalid client name 'client-2' of a hub"),
    "a way out": (with_answers(lambda a: {"a/../b": a["a/client-0"]}), "invalid client name 'a/../b' of a hub"),
    "garbage": (entries(lambda e: {"wire.payload": "HubReply"}), "expected HubReply of schema version"),
}


@pytest.mark.parametrize("name", INVITATION)
def test_a_hub_with_wrong_names_is_refused_once(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lie, reason = INVITATION[name]
    result = lied(ENROL, lie, tmp_path)
    assert sorted(result.clients) == OTHERS
    assert sum(reason in one.getMessage() for one in caplog.records if one.name == "fedloom.server") == 1


def test_a_hub_with_more_clients_than_its_key_is_registered_for_is_refused_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = {8: MARKS[1], 9: MARKS[2]}
    write_names(tmp_path, {hub: NamedKey(fingerprint=keys[8 + k], clients=1 + k) for k, hub in enumerate("ab")})
    nodes = {node: one.respond if isinstance(one, Hub) else one for node, one in nodes_of(owners(5)).items()}
    described = [HostedClient(node, 0, "", one.public_key) for node, one in zip(keys, NODES, strict=True)]
    grid = NodeGrid(nodes, described)
    result = run(grid, settings(tmp_path, federation__min_clients=3), tmp_path, tmp_path)
    assert result.status == "completed"
    assert sorted(result.clients) == OTHERS
    reason = "a refused: the key is registered for 1 client, and its hub brings 2"
    assert sum(reason in one.getMessage() for one in caplog.records if one.name == "fedloom.server") == 1


def test_a_client_of_a_hub_that_calls_itself_otherwise_is_refused(tmp_path: Path) -> None:
    result = lied(ENROL, enrolled("b/client-1"), tmp_path)
    assert sorted(result.clients) == [name for name in ALL if name != "a/client-0"]
    assert np.isfinite(result.metrics["loss"])
