"""Invitation of nodes, with a simulated Grid and clock."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from common.errors import DataError, QuorumError
from common.wire.codec import decode, encode
from common.wire.messages import EnrolReply, TrainRequest
from server.record.events import Refusal
from tests.server.simulated_nodes import INVITATION, Answer, World, yes
from tests.support.strategies import MODEL, NODES, Server


def test_every_online_node_is_invited_once() -> None:
    world = World({11: yes("ann"), 12: yes("bob")})
    assert world.gather(2) == ["ann", "bob"]
    assert world.gather(1) == ["ann", "bob"]
    assert (world.invited, world.naps) == ([11, 12], [])


def test_the_content_of_an_enrolment_is_stored() -> None:
    world = World({11: EnrolReply("ann", "toy:0", 1, 1.5, True), 12: yes("bob")})
    enrolled = world.enrolment.gather(world, 2)
    assert (enrolled["ann"].budget, enrolled["ann"].shares_metrics) == (1.5, True)
    assert (enrolled["bob"].budget, enrolled["bob"].shares_metrics) == (0.0, False)


def test_late_joining_nodes_are_invited_at_every_gathering() -> None:
    world = World({11: yes("ann"), 12: yes("bob")}, online=lambda now: [11] if now < 1 else [11, 12])
    assert world.gather(1) == ["ann"]
    assert world.gather(2) == ["ann", "bob"]
    assert 1 <= world.now < 2.5
    assert world.naps == sorted(world.naps), "it looks less often as time goes by"
    assert max(world.naps) <= 1.0


def test_a_client_that_leaves_is_not_counted_until_it_returns() -> None:
    world = World({11: yes("ann"), 12: yes("bob")}, online=lambda now: [11] if 1 <= now < 3 else [11, 12])
    assert world.gather(2) == ["ann", "bob"]
    world.now = 1.0
    assert world.gather(1) == ["ann"]
    assert world.gather(2) == ["ann", "bob"]
    assert (world.now >= 3, world.invited) == (True, [11, 12])


def test_waiting_ends_with_the_reasons_of_refusals() -> None:
    world = World({11: yes("ann"), 12: "method 'fedrule' is not allowed by this client's policy", 13: yes("empty", 0)})
    with pytest.raises(QuorumError) as caught:
        world.gather(2)
    assert str(caught.value) == (
        "1 client can train, 2 required after 5 s (3 online, 1 without training data); "
        "1 refused: method 'fedrule' is not allowed by this client's policy"
    )
    assert 5 <= world.now < 6, "enough nodes have answered"
    assert world.invited == [11, 12, 13], "each node once"


def test_clients_that_all_lack_training_data_are_an_error_of_data() -> None:
    world = World({11: yes("ann", 0), 12: yes("bob", 0)})
    with pytest.raises(DataError, match=r"^2 clients enrolled, none has training data$"):
        world.gather(1)


def test_missing_nodes_are_waited_for_until_the_deadline() -> None:
    world = World({11: yes("ann")})
    with pytest.raises(QuorumError, match=r"1 client can train, 2 required after 1[01] s"):
        world.gather(2)
    assert 10 <= world.now < 11.5


def test_a_run_assembles_with_clients_that_cannot_train_too() -> None:
    world = World({11: yes("ann"), 12: yes("empty", 0)})
    world.enrolment.assemble(world, 2)
    assert (world.now, world.gather(1)) == (0.0, ["ann"])


def test_equal_reasons_are_listed_once_with_their_number() -> None:
    world = World(dict.fromkeys(range(10, 20), "no"))
    with pytest.raises(QuorumError, match=r"\(10 online, 0 without training data\); 10 refused: no$"):
        world.gather(1)


def test_the_error_names_a_name_that_two_nodes_share() -> None:
    world = World({11: yes("ann"), 12: yes("ann")})
    with pytest.raises(QuorumError, match="refused: another node is enrolled as 'ann'; set a different --name"):
        world.gather(2)


@pytest.mark.parametrize("answer", [RecordDict(), encode(INVITATION), ""])
def test_an_invalid_answer_is_a_refusal(answer: Answer) -> None:
    world = World({11: yes("ann"), 12: answer})
    assert world.gather(1) == ["ann"]
    assert world.enrolment.roster.refused[12]


def test_a_late_answer_restarts_the_wait() -> None:
    """A refusal at once, an enrolment after 6 s and another one 3 s later."""
    world = World(
        {11: "no", 12: yes("bob"), 13: yes("cyd")}, lambda now: [n for n in (11, 12, 13) if now >= 6 + 3 * (n - 12)]
    )
    assert world.gather(2) == ["bob", "cyd"]
    assert 9 <= world.now < 10


@pytest.mark.parametrize(("wait", "given_up"), [(120.0, 5.0), (86_400.0, 86_400.0)])
def test_a_long_wait_expects_more_clients_than_answered(wait: float, given_up: float) -> None:
    world = World({11: yes("ann"), 12: "no"}, wait=wait)
    with pytest.raises(QuorumError, match="1 client can train, 2 required"):
        world.enrolment.assemble(world, 2)
    assert given_up <= world.now < given_up + 1


def test_a_client_may_return_in_the_middle_of_a_run() -> None:
    world = World({11: yes("ann"), 12: yes("empty", 0)}, lambda now: [12] if 1 <= now < 8 else [11, 12])
    assert world.gather(1) == ["ann"]
    world.now = 1.0
    assert world.gather(1) == ["ann"]
    assert 8 <= world.now < 9


def test_a_running_run_waits_two_minutes_at_most_and_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    world = World({11: yes("ann")}, lambda now: [11] if now < 1 else [], wait=86_400.0)
    world.enrolment.assemble(world, 1)
    assert caplog.messages == []
    world.now = 1.0
    with pytest.raises(QuorumError, match="0 clients can train, 1 required after 120 s"):
        world.gather(1)
    assert caplog.messages == ["0 clients online, 1 required; waiting up to 120 s"]


def test_a_slow_late_joining_node_delays_no_round_and_is_invited_again() -> None:
    """The node is ready after 100 s; it is invited again 30 s and 90 s after its first invitation."""
    world = World({11: yes("ann"), 12: yes("bob")}, lambda now: [11] if now < 5 else [11, 12])
    world.slow = {12: 100.0}
    assert world.gather(1) == ["ann"]
    world.now = 5.0
    while "bob" not in world.enrolment.gather(world, 1):
        world.sleep(1.0)
    assert (world.invited, world.now, sum(world.naps)) == ([11, 12, 12, 12], 100.0, 95.0)


def test_a_node_that_comes_during_an_exchange_is_invited_then_and_enrolled_afterwards() -> None:
    world = World({11: yes("ann"), 12: yes("bob"), 13: "no"}, lambda now: [11] if now < 5 else [11, 12, 13])
    assert world.gather(1) == ["ann"]
    for world.now in (5.0, 6.0):
        world.enrolment.greet(world)
    assert (world.invited, [*world.enrolment.roster.clients]) == ([11, 12, 13], [11])
    assert world.gather(1) == ["ann", "bob"]
    world.enrolment.greet(world)
    assert (world.invited, world.enrolment.roster.refused) == ([11, 12, 13], {13: "no"})


def test_a_node_that_leaves_and_returns_before_it_answers_delays_no_round() -> None:
    """It is not invited again within 30 s."""
    world = World({11: yes("ann"), 12: yes("bob")}, lambda now: [11, 12] if now >= 5 and now % 4 < 2 else [11])
    world.slow = {12: 100.0}
    assert world.gather(1) == ["ann"]
    for world.now in map(float, range(5, 35)):
        assert world.gather(1) == ["ann"]
    assert (world.invited, world.now) == ([11, 12], 34.0)


def test_a_slow_node_that_is_required_is_waited_for() -> None:
    world = World({11: yes("ann"), 12: yes("bob")})
    world.slow = {12: 9.0}
    assert world.gather(2) == ["ann", "bob"]
    assert (world.invited, world.now) == ([11, 12], 9.0)


def test_a_node_that_refused_is_invited_after_a_minute_and_equal_reasons_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World({11: yes("ann"), 12: "no"})
    for second in range(130):
        world.now = float(second)
        world.gather(1)
    assert world.invited == [11, 12, 12, 12]
    assert caplog.messages == ["node-12 refused: no"]
    world.answers[12], world.now = yes("bob"), 180.0
    assert world.gather(1) == ["ann", "bob"]
    assert world.enrolment.roster.refused == {}


def test_a_reason_that_many_clients_share_is_logged_with_their_number(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(QuorumError, match="; 30 refused: no"):
        World(dict.fromkeys(range(11, 41), "no")).gather(1)
    assert [text for text in caplog.messages if text.startswith("node")] == [
        "node-11 refused: no",
        "node-20 and 9 other clients refused: no",
    ]


@pytest.mark.parametrize("name", ["", "two words", "a/b", "x" * 65, "\x1b[31m", "<b>"])
def test_a_client_name_that_files_cannot_hold_is_refused(name: str) -> None:
    world = World({11: yes(name), 12: yes("ann")})
    assert world.gather(1) == ["ann"]
    assert world.enrolment.roster.refused[11].endswith("starting with a letter or digit (--name)")
    assert world.enrolment.roster.refused[11].isprintable()


def test_a_wait_is_reported_at_once_and_every_five_seconds() -> None:
    world = World({11: yes("ann"), 12: yes("bob")}, online=lambda now: [11] if now < 12 else [11, 12], wait=60.0)
    reports: list[tuple[float, int]] = []
    world.enrolment.on_wait = lambda online, wanted, seconds: reports.append((round(60 - seconds), wanted))
    assert world.gather(2) == ["ann", "bob"]
    assert reports[0] == (0, 2)
    assert all(later - earlier >= 5 for (earlier, _), (later, _) in pairwise(reports))
    assert len(reports) == 3


def test_a_client_that_enrols_with_more_records_than_exist_is_refused() -> None:
    world = World({1: yes("ann"), 2: yes("liar", 2**63 - 1), 3: yes("neg", -1)})
    assert world.gather(1) == ["ann"]
    assert sorted(world.enrolment.roster.refused) == [2, 3]
    assert "at most 1,000,000,000 are accepted" in world.enrolment.roster.refused[2]


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


class Online:
    """Grid whose nodes are all online."""

    def get_node_ids(self) -> list[int]:
        return [*NODES.values()]

    def send_and_receive(self, messages: Iterable[Message]) -> list[Message]:
        return []


@pytest.mark.parametrize(("variant", "last"), [("fedga", [0, 0, 0, 0]), ("fedrule", [1, 2, 0, 0])])
def test_only_clients_with_arrays_to_settle_get_requests_of_their_own(variant: str, last: list[int]) -> None:
    server = Server(variant)
    means = {"mean.1": MODEL, "mean.2": MODEL} if variant == "fedrule" else {}
    state = replace(server.strategy.state, round=3, counted={"ann": 1, "bob": 2, "cyd": 3}, memory=means)
    server.strategy.state = state
    messages = [*server.strategy.configure_train(1, ArrayRecord(), ConfigRecord(), Online())]
    assert [decode(TrainRequest, message.content).shared_round for message in messages] == last
    assert len({id(message.content) for message in messages}) == len(set(last))
