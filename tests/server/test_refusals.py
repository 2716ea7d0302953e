"""Reasons of refusals: for the client's owner at its terminal, and for the server's owner as events."""

from server.record.events import Refusal
from tests.server.simulated_nodes import Answer, World, yes


def test_a_client_that_the_server_refuses_reads_the_reason_once() -> None:
    world = World({11: yes("ann"), 12: yes("ann"), 13: "not by my policy"})
    found: list[Refusal] = []
    world.enrolment.on_refusal = found.append
    for second in range(130):
        world.now = float(second)
        world.gather(1)
    assert world.invited.count(12) == 3, "its owner may correct its name"
    assert world.explained == [(12, "another node is enrolled as 'ann'; set a different --name")]
    assert [(one.client, one.reason) for one in found] == [
        ("node-12", world.explained[0][1]),
        ("node-13", "not by my policy"),
    ]


def test_a_client_that_comes_again_reads_the_reason_again_and_the_server_s_owner_does_not() -> None:
    away = range(20, 40)
    answers: dict[int, Answer] = {11: yes("ann"), 12: yes("a/b")}
    world = World(answers, online=lambda now: [11] if int(now) in away else [11, 12])
    found: list[Refusal] = []
    world.enrolment.on_refusal = found.append
    for second in range(60):
        world.now = float(second)
        world.gather(1)
    assert [node for node, _ in world.explained] == [12, 12]
    assert [one.client for one in found] == ["node-12"]
