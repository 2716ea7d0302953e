"""Inviting nodes, with a Grid and a clock that are made up."""

from collections.abc import Callable, Iterable

import pytest
from flwr.app import Error, Message, RecordDict

from common.errors import QuorumError
from common.wire.codec import decode, encode
from common.wire.messages import ENROL, EnrolReply, EnrolRequest
from server.enrolment import Enrolment

INVITATION = EnrolRequest("toy", '{"seed": 0}', "{}")
DEADLINE = 120.0
Answer = EnrolReply | str | RecordDict


class World:
    """Nodes that come online at a second and answer an invitation as written; the clock runs while somebody sleeps."""

    def __init__(
        self, answers: dict[int, Answer], online: Callable[[float], Iterable[int]] | None = None, wait: float = 10.0
    ) -> None:
        self.answers, self.now, self.invited, self.naps = answers, 0.0, list[int](), list[float]()
        self.online = online or (lambda now: answers)
        self.slow: dict[int, float] = {}
        """Node -> the second at which it is ready to answer."""
        self.enrolment = Enrolment(INVITATION, wait, self.ask, clock=lambda: self.now, sleep=self.sleep)

    def ask(self, messages: list[Message], seconds: float) -> Iterable[Message]:
        nodes = [message.metadata.dst_node_id for message in messages]
        last = max(self.slow.get(node, 0.0) for node in nodes)
        self.now = max(self.now, min(last, self.now + min(seconds, DEADLINE)))
        for message in messages:
            node = message.metadata.dst_node_id
            assert (decode(EnrolRequest, message.content), message.metadata.message_type) == (INVITATION, ENROL)
            self.invited.append(node)
            if self.slow.get(node, 0.0) > self.now:
                continue
            answer = self.answers[node]
            message.metadata.__dict__["_message_id"] = f"m{len(self.invited)}"
            if isinstance(answer, str):
                yield Message(Error(1000, answer), reply_to=message)
            else:
                yield Message(answer if isinstance(answer, RecordDict) else encode(answer), reply_to=message)

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds

    def gather(self, at_least: int) -> list[str]:
        return sorted(self.enrolment.gather(self, at_least))

    def get_node_ids(self) -> Iterable[int]:
        return list(self.online(self.now))


def yes(name: str, examples: int = 3) -> EnrolReply:
    return EnrolReply(name, "toy:0", examples)


def test_whoever_is_online_is_invited_once() -> None:
    world = World({11: yes("ann"), 12: yes("bob")})
    assert world.gather(2) == ["ann", "bob"]
    assert world.gather(1) == ["ann", "bob"]
    assert (world.invited, world.naps) == ([11, 12], [])


def test_what_a_client_says_of_itself_is_kept() -> None:
    world = World({11: EnrolReply("ann", "toy:0", 1, 1.5, True), 12: yes("bob")})
    found = world.enrolment.gather(world, 2)
    assert (found["ann"].budget, found["ann"].shares_metrics) == (1.5, True)
    assert (found["bob"].budget, found["bob"].shares_metrics) == (0.0, False)


def test_newcomers_are_invited_whenever_it_gathers() -> None:
    world = World({11: yes("ann"), 12: yes("bob")}, online=lambda now: [11] if now < 1 else [11, 12])
    assert world.gather(1) == ["ann"]
    assert world.gather(2) == ["ann", "bob"]
    assert 1 <= world.now < 2.5
    assert world.naps == sorted(world.naps), "it looks less often as time goes by"
    assert max(world.naps) <= 1.0


def test_who_leaves_is_not_counted_and_who_comes_back_is() -> None:
    world = World({11: yes("ann"), 12: yes("bob")}, online=lambda now: [11] if 1 <= now < 3 else [11, 12])
    assert world.gather(2) == ["ann", "bob"]
    world.now = 1.0
    assert world.gather(1) == ["ann"]
    assert world.gather(2) == ["ann", "bob"]
    assert (world.now >= 3, world.invited) == (True, [11, 12])


def test_waiting_ends_with_the_reasons_of_those_who_refused() -> None:
    world = World({11: yes("ann"), 12: "method 'fedrule' is not allowed by this client's policy", 13: yes("empty", 0)})
    with pytest.raises(QuorumError) as caught:
        world.gather(2)
    assert str(caught.value) == (
        "1 client can train, 2 needed after 5 s (3 online, 1 without anything to train on); "
        "refused: method 'fedrule' is not allowed by this client's policy"
    )
    assert 5 <= world.now < 6, "nobody else is waited for where enough have answered"
    assert world.invited == [11, 12, 13], "and nobody was asked twice"


def test_who_has_not_come_is_waited_for_to_the_end() -> None:
    world = World({11: yes("ann")})
    with pytest.raises(QuorumError, match=r"1 client can train, 2 needed after 1[01] s"):
        world.gather(2)
    assert 10 <= world.now < 11.5


def test_a_run_assembles_with_clients_that_cannot_train_too() -> None:
    world = World({11: yes("ann"), 12: yes("empty", 0)})
    world.enrolment.assemble(world, 2)
    assert (world.now, world.gather(1)) == (0.0, ["ann"])


def test_the_same_reason_is_said_once() -> None:
    world = World(dict.fromkeys(range(10, 20), "no"))
    with pytest.raises(QuorumError, match=r"\(10 online, 0 without anything to train on\); refused: no$"):
        world.gather(1)


def test_two_nodes_of_one_name_are_told_apart_in_the_text() -> None:
    world = World({11: yes("ann"), 12: yes("ann")})
    with pytest.raises(QuorumError, match="refused: another node is already enrolled as 'ann'; give this one its own"):
        world.gather(2)


@pytest.mark.parametrize("answer", [RecordDict(), encode(INVITATION), ""])
def test_an_answer_that_makes_no_sense_is_a_refusal(answer: Answer) -> None:
    world = World({11: yes("ann"), 12: answer})
    assert world.gather(1) == ["ann"]
    assert world.enrolment.roster.refused[12]


def test_who_answers_late_starts_the_waiting_anew() -> None:
    """A refusal at once and an enrolment after 6 s; a third node may be on its way, and comes 3 s later."""
    world = World(
        {11: "no", 12: yes("bob"), 13: yes("cyd")}, lambda now: [n for n in (11, 12, 13) if now >= 6 + 3 * (n - 12)]
    )
    assert world.gather(2) == ["bob", "cyd"]
    assert 9 <= world.now < 10


@pytest.mark.parametrize(("wait", "given_up"), [(120.0, 5.0), (86_400.0, 86_400.0)])
def test_who_waits_for_long_expects_more_than_those_that_answered(wait: float, given_up: float) -> None:
    world = World({11: yes("ann"), 12: "no"}, wait=wait)
    with pytest.raises(QuorumError, match="1 client can train, 2 needed"):
        world.enrolment.assemble(world, 2)
    assert given_up <= world.now < given_up + 1


def test_who_is_away_in_the_middle_of_a_run_may_come_back() -> None:
    world = World({11: yes("ann"), 12: yes("empty", 0)}, lambda now: [12] if 1 <= now < 8 else [11, 12])
    assert world.gather(1) == ["ann"]
    world.now = 1.0
    assert world.gather(1) == ["ann"]
    assert 8 <= world.now < 9


def test_a_run_under_way_waits_two_minutes_at_most_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    world = World({11: yes("ann")}, lambda now: [11] if now < 1 else [], wait=86_400.0)
    world.enrolment.assemble(world, 1)
    assert caplog.messages == []
    world.now = 1.0
    with pytest.raises(QuorumError, match="0 clients can train, 1 needed after 120 s"):
        world.gather(1)
    assert caplog.messages == ["0 clients here, 1 needed: waiting for up to 120 s"]


def test_a_slow_newcomer_holds_nobody_up_and_is_asked_again() -> None:
    """It is ready after 100 s: it is given 5 s, and 5 s again after 30 and after 60 s more."""
    world = World({11: yes("ann"), 12: yes("bob")}, lambda now: [11] if now < 5 else [11, 12])
    world.slow = {12: 100.0}
    assert world.gather(1) == ["ann"]
    world.now = 5.0
    while "bob" not in world.enrolment.gather(world, 1):
        world.sleep(1.0)
    assert (world.invited, world.now) == ([11, 12, 12, 12], 105.0)


def test_a_slow_newcomer_without_whom_there_are_too_few_is_waited_for() -> None:
    world = World({11: yes("ann"), 12: yes("bob")})
    world.slow = {12: 9.0}
    assert world.gather(2) == ["ann", "bob"]
    assert (world.invited, world.now) == ([11, 12], 9.0)


def test_who_refused_is_asked_again_after_a_minute_and_the_same_reason_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World({11: yes("ann"), 12: "no"})
    for second in range(130):
        world.now = float(second)
        world.gather(1)
    assert world.invited == [11, 12, 12, 12]
    assert caplog.messages == ["node 12 refused: no"]
    world.answers[12], world.now = yes("bob"), 180.0
    assert world.gather(1) == ["ann", "bob"]
    assert world.enrolment.roster.refused == {}
