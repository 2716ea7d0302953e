"""Grid through a door: one call for all clients, and their answers as they come."""

from collections.abc import Iterable
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict

from common.door.door_pb2 import Answer, Answers, Order
from common.door.frames import ELSEWHERE
from deploy.superlink.door import MISSING
from server.exchange.door import DoorGrid
from server.exchange.flower import encode_record
from server.exchange.grid import PollingGrid, limit_to
from server.exchange.relays import HOSTED_BYTES, HubGrid
from tests.server.fake_grid import LIMITS

CONTENT = RecordDict({"a": ConfigRecord({"b": b"content"})})


class FakeGrid:
    """Grid with a door; it stores what is pushed and asked, and answers as the tests say."""

    def __init__(self, *, has_door: bool = True) -> None:
        self.has_door = has_door
        self.pushed: list[Message] = []
        self.replies: dict[str, Message] = {}
        self.orders: list[Order] = []
        self.answers: list[Answer] = []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        new = [*messages]
        for message in new:
            message.metadata.__dict__["_message_id"] = f"flower-{len(self.pushed)}"
            self.pushed.append(message)
        return [message.metadata.message_id for message in new]

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self.replies.pop(one) for one in message_ids if one in self.replies]

    def ask(self, order: Order) -> Answers | None:
        self.orders.append(order)
        found, self.answers = self.answers, []
        return Answers(answers=found) if self.has_door else None

    def reply(self, number: int, reply: Message) -> None:
        self.replies[self.pushed[number].metadata.message_id] = reply


def through_door(fake: Any) -> DoorGrid:
    return DoorGrid(fake, fake.pull_messages, fake.ask, upload=20.0)


def push(grid: DoorGrid | HubGrid, *nodes: int) -> list[str]:
    return grid.push_messages([Message(CONTENT, node, "train") for node in nodes])


def test_messages_with_one_content_are_one_order_and_answers_are_pulled_as_they_come() -> None:
    fake = FakeGrid()
    grid = through_door(fake)
    ids = push(grid, 7, 8)
    [order] = fake.orders
    assert ([*order.contents], [task.node for task in order.tasks]) == ([encode_record(CONTENT)], [7, 8])
    assert ([task.id for task in order.tasks], order.upload) == (ids, 20.0)
    assert [*grid.pull_messages(ids)] == []
    assert [*fake.orders[1].awaited] == sorted(ids)
    fake.answers = [Answer(task=ids[1], content=encode_record(CONTENT))]
    [reply] = grid.pull_messages(ids)
    assert (reply.metadata.reply_to_message_id, reply.content["a"]["b"]) == (ids[1], b"content")
    fake.answers = [Answer(task=ids[0], code=1001, reason="paused")]
    [reply] = grid.pull_messages(ids[:1])
    assert (reply.metadata.reply_to_message_id, reply.error.reason) == (ids[0], "paused")
    assert [*fake.orders[-1].awaited] == [ids[0]]
    assert fake.pushed == []


def test_an_order_has_the_largest_reply_of_each_request_also_to_a_hub() -> None:
    fake = FakeGrid()
    door = through_door(fake)
    hubs = HubGrid(door, door.pull_messages)
    nodes, content = hubs.admit(8, ["hub/a", "hub/b"]), RecordDict({"fedloom": ConfigRecord()})
    for adds_up in (False, True):
        hubs.sums = adds_up
        hubs.push_messages([limit_to(Message(content, node, "train"), 10**6) for node in (7, *nodes.values())])
    hubs.push_messages([Message(content, node, "train") for node in nodes.values()])
    (direct, each), (_, total), [unlimited] = ([task.most for task in fake.orders[k].tasks] for k in range(3))
    assert (direct, each, total) == (10**6, 2 * (10**6 + HOSTED_BYTES), 8 * 10**6 + 2 * HOSTED_BYTES)
    assert unlimited == 0


def test_a_malformed_reply_is_an_error_of_its_client_alone() -> None:
    fake = FakeGrid()
    grid = through_door(fake)
    ids = push(grid, 7, 8)
    fake.answers = [Answer(task=ids[0], content=b"\xff\xff"), Answer(task=ids[1], content=encode_record(CONTENT))]
    wrong, right = grid.pull_messages(ids)
    assert (wrong.has_error(), right.has_error()) == (True, False)


def test_a_node_of_flower_s_own_gets_its_message_directly() -> None:
    fake = FakeGrid()
    grid = through_door(fake)
    ids = push(grid, 7, 9)
    fake.answers = [Answer(task=ids[0], content=encode_record(CONTENT)), Answer(task=ids[1], code=ELSEWHERE)]
    assert [reply.metadata.reply_to_message_id for reply in grid.pull_messages(ids)] == [ids[0]]
    assert [message.metadata.dst_node_id for message in fake.pushed] == [9]
    asked = len(fake.orders)
    fake.reply(0, Message(CONTENT, reply_to=fake.pushed[0]))
    assert [reply.metadata.reply_to_message_id for reply in grid.pull_messages(ids[1:])] == ids[1:]
    assert len(fake.orders) == asked, "the door owes nothing more"


def test_without_a_door_messages_pass_unchanged() -> None:
    fake = FakeGrid(has_door=False)
    grid = through_door(fake)
    ids = push(grid, 7)
    assert ids == ["flower-0"]
    fake.reply(0, Message(CONTENT, reply_to=fake.pushed[0]))
    assert len([*grid.pull_messages(ids)]) == 1


def test_messages_of_an_exchange_that_is_over_are_not_held() -> None:
    grid = through_door(FakeGrid())
    first = push(grid, 7)
    push(grid, 8)
    assert [*grid.pull_messages(first)] == []
    assert len(grid._asked) == 1


def test_a_message_beside_the_exchanges_outlasts_them_until_its_node_is_sent_another() -> None:
    fake = FakeGrid()
    door = through_door(fake)
    hubs = HubGrid(door, door.pull_messages)
    [client] = hubs.admit(8, ["hub/a"]).values()
    grid, content = PollingGrid(hubs, LIMITS), RecordDict({"fedloom": ConfigRecord()})
    assert grid.post([Message(CONTENT, 7, "query"), Message(content, client, "query")]) == []
    first, hub = (task.id for task in fake.orders[0].tasks)
    ids = push(door, 9)
    assert (sorted(fake.orders[-1].awaited), [*fake.orders[-1].beside]) == (sorted([first, hub]), []), "they stay"
    assert [*grid.pull_messages(ids)] == []
    assert [*fake.orders[-1].awaited] == ids
    grid.post([Message(CONTENT, 7, "query")])
    second, pulled = fake.orders[-2].tasks[0].id, fake.orders[-1]
    assert ([*pulled.awaited], sorted(pulled.beside)) == ([], sorted([second, hub]))
    push(hubs, 9)
    assert sorted(fake.orders[-1].awaited) == sorted([second, hub]), "the first one is over"
    fake.answers = [Answer(task=second, content=encode_record(CONTENT)), Answer(task=hub, code=MISSING)]
    assert [reply.metadata.src_node_id for reply in grid.post([])] == [7], "an answer that is lost is none"
    asked = len(fake.orders)
    assert (grid.post([]), len(fake.orders)) == ([], asked)
