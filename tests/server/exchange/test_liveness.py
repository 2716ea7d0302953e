"""Silence of nodes, by their heartbeats."""

import pytest
from flwr.proto.node_pb2 import NodeInfo

from common.wire.messages import PROMISE_SECONDS, RESTART_SECONDS, SILENCE_SECONDS, HelperRequest
from server.exchange.grid import Liveness, PollingGrid
from server.secure.helpers import HelperExchange
from tests.server.fake_grid import LIMITS, Clock, FakeGrid, instruction


class Nodes:
    """Nodes that send a heartbeat every half second until `dead` has them."""

    def __init__(self, clock: Clock, *nodes: int, promise: float = PROMISE_SECONDS) -> None:
        self.clock, self.nodes, self.promise = clock, nodes, promise
        self.dead: dict[int, float] = {}
        self.restarts = 0

    def __call__(self) -> list[NodeInfo]:
        def last(node: int) -> float:
            return self.dead.get(node, self.clock() // 0.5)

        since = str(self.restarts)
        return [
            NodeInfo(node_id=n, heartbeat_interval=self.promise, online_until=last(n), last_activated_at=since)
            for n in self.nodes
        ]


def connected(*dead: int) -> tuple[Clock, Nodes, Liveness]:
    """Return a clock, nodes 10 and 11 of which `dead` are silent from the start, and their record."""
    clock = Clock()
    nodes = Nodes(clock, 10, 11)
    nodes.dead = dict.fromkeys(dead, 0.0)
    return clock, nodes, Liveness(nodes, clock)


def watch(liveness: Liveness, clock: Clock, seconds: float, nodes: tuple[int, ...] = (10, 11)) -> list[float]:
    """Return seconds from the begin until node 11 counts as silent."""
    liveness.begin()
    start, found = clock(), list[float]()
    while clock() < start + seconds:
        if 11 in liveness.silent(nodes):
            found.append(clock() - start)
        clock.sleep(0.1)
    return found[:1]


def test_only_a_node_without_heartbeats_is_silent_and_within_three_seconds() -> None:
    clock, nodes, liveness = connected()
    assert watch(liveness, clock, 10) == []
    nodes.dead = {11: 0.0}
    [seconds] = watch(liveness, clock, 10)
    assert SILENCE_SECONDS <= seconds <= 3.0
    assert liveness.audible([10, 11]) == [10]


def test_a_node_that_leaves_while_it_is_awaited_is_silent_until_it_returns() -> None:
    """Also one that left before the first look at it; a stock client is Flower's to judge."""
    clock = Clock()
    nodes = Nodes(clock, 10)
    liveness = Liveness(nodes, clock)
    [seconds] = watch(liveness, clock, 10)
    assert SILENCE_SECONDS <= seconds <= 3.0
    nodes.nodes = 10, 11
    assert watch(liveness, clock, 10) == []
    nodes.nodes = (10,)
    [seconds] = watch(liveness, clock, 10)
    assert 2.0 <= seconds <= 3.0
    liveness = Liveness(lambda: [*nodes(), *stock], clock)
    stock = [NodeInfo(node_id=11, heartbeat_interval=30.0)]
    assert watch(liveness, clock, 1) == []
    stock.clear()
    assert watch(liveness, clock, 10) == []


def test_a_silent_node_is_asked_again_after_its_next_heartbeat() -> None:
    clock, nodes, liveness = connected(11)
    assert watch(liveness, clock, 10)
    assert watch(liveness, clock, 1) == [0.0], "silent still, without another wait"
    nodes.dead = {}
    assert watch(liveness, clock, 1) == []
    assert liveness.audible([10, 11]) == [10, 11]
    assert watch(liveness, clock, 10) == []


def test_a_node_that_has_answered_may_be_idle_while_another_is_awaited() -> None:
    """An idle client sends a heartbeat every 5 s, and must not miss the next round for it."""
    clock, _, liveness = connected(10, 11)
    assert watch(liveness, clock, 10, nodes=(11,))
    assert liveness.audible([10, 11]) == [10]


def test_a_wait_that_ends_early_is_continued_in_the_next() -> None:
    clock, _, liveness = connected(11)
    assert watch(liveness, clock, 2) == []
    assert watch(liveness, clock, 2)[0] <= 1.0


def test_a_node_that_answered_late_has_all_its_time_in_the_next_wait() -> None:
    clock, _, liveness = connected(11)
    assert watch(liveness, clock, 2) == []
    liveness.silent([10])
    assert watch(liveness, clock, 2) == []


@pytest.mark.parametrize("received_again", [False, True])
def test_a_restart_is_no_heartbeat_unless_the_request_comes_again(received_again: bool) -> None:
    clock, nodes, liveness = connected()
    watch(liveness, clock, 1)
    liveness.begin()
    nodes.dead = {11: 1.0}
    for _ in range(20):
        clock.sleep(0.1)
        assert liveness.silent([11]) == frozenset()
    nodes.restarts, nodes.dead = 1, {} if received_again else {11: 2.0}
    start, found = clock(), list[float]()
    while clock() < start + 5:
        clock.sleep(0.1)
        found += [clock() - start] if liveness.silent([11]) else []
    assert (found == []) if received_again else (RESTART_SECONDS <= found[0] <= RESTART_SECONDS + 0.5)
    assert liveness.audible([10, 11]) == [10, 11]
    waited = watch(liveness, clock, 10)
    assert (waited == []) if received_again else (SILENCE_SECONDS <= waited[0] <= 3.0), "a new request has all its time"


def test_stock_clients_with_rare_heartbeats_are_not_judged() -> None:
    clock = Clock()
    nodes = Nodes(clock, 10, 11, promise=30.0)
    nodes.dead = {10: 0.0, 11: 0.0}
    assert watch(Liveness(nodes, clock), clock, 60) == []


def test_a_pause_of_this_process_makes_nobody_silent() -> None:
    clock, nodes, liveness = connected()
    watch(liveness, clock, 1)
    nodes.dead = dict.fromkeys((10, 11), 0.0)
    liveness.silent([10, 11])
    clock.sleep(60)
    assert liveness.silent([10, 11]) == frozenset()


def test_an_exchange_ends_without_a_silent_client_and_the_next_does_not_ask_it() -> None:
    clock, _, liveness = connected(11)
    polling = PollingGrid(FakeGrid(clock, [0.5, 1e9]), LIMITS, clock=clock, sleep=clock.sleep, liveness=liveness)
    result = polling.exchange([instruction(10), instruction(11)])
    assert result.missing == (11,)
    assert result.seconds == pytest.approx(2.75, abs=0.3)
    assert polling.get_node_ids() == [10]


def test_a_helper_that_was_silent_is_waited_for_again_after_its_next_heartbeat() -> None:
    clock, nodes, liveness = connected(11)
    helpers = HelperExchange(FakeGrid(clock, [0.5, 0.5]), HelperRequest("run", "{}"), 1.0, liveness)
    assert watch(liveness, clock, 10)
    assert helpers.online == {10}
    nodes.dead = {}
    assert helpers.online == {10, 11}
    assert watch(liveness, clock, 10) == []
