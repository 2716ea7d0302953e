"""Grid in which each client of a hub is a node of its own.

Messages to clients of one hub travel together.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flwr.app import Error, Message, RecordDict
from flwr.serverapp import Grid

from common.contribution import BlockReply, ClientBlock, Member
from common.errors import WireError
from common.text import printable
from common.wire.codec import Handed, decode, size_without_arrays
from common.wire.hubs import MAX_NAME, Answer, SumBlob, address, read_sum, split_answers, sum_of
from common.wire.messages import FAILED, TRAIN, TrainReply
from server.exchange.flower import Pull
from server.exchange.grid import Weighed, WrappedGrid, content_size, is_beside, limit_to, reply_limit, set_beside

SUM_FACTOR = 6
"""Largest size of a hub's sum, in replies of a client: up to three kinds in twice as many bits."""

HOSTED_BYTES = 2 * MAX_NAME + 4096
"""Bytes of a hub's reply for each client beside its own: its name, twice, and a reason or a length."""

UNANSWERED = "the hub sent no answer of this client"


def split_reply(reply: Message, asked: Mapping[str, Message], *, sums: bool = False) -> list[Message]:
    """Return a reply of each client of a hub to the message that it was sent; `sums` accepts their sum."""
    pairs = [(answer, asked[name]) for name, answer in _answers_of(reply, asked, sums=sums).items()]
    return [
        Message(error=one, reply_to=to) if isinstance(one, Error) else Message(content=one, reply_to=to)
        for one, to in pairs
    ]


def _answers_of(reply: Message, asked: Mapping[str, Message], *, sums: bool) -> dict[str, Answer]:
    if reply.has_error():
        return dict.fromkeys(asked, reply.error)
    try:
        answers = _split(reply.content, asked, sums=sums)
    except WireError as error:
        return dict.fromkeys(asked, Error(FAILED, f"the whole reply of the hub is left out: {error}"))
    return {name: answers.get(name, Error(FAILED, UNANSWERED)) for name in asked}


def _split(content: RecordDict, asked: Mapping[str, Message], *, sums: bool) -> dict[str, Answer]:
    answers = split_answers(content)
    if strangers := answers.keys() - asked.keys():
        raise WireError(f"it answers for '{printable(min(strangers), 40)}', which was not asked")
    total = sum_of(content)
    if total and not sums:
        raise WireError("it sends a sum in place of replies, which this run needs")
    return answers if total is None else answers | _share(total, answers)


def _share(total: SumBlob, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Return the reply of each client in a sum: its own numbers, and the sum that all of them share."""
    replies = {name: _numbers_of(name, answers[name]) for name in total.clients}
    members = [Member(name, steps=reply.steps, loss=reply.loss) for name, reply in replies.items()]
    sums = read_sum(total.content, members)
    block = ClientBlock(0, total.clients, sums)
    found: dict[str, Answer] = {}
    for member, sent in zip(sums.members, replies.values(), strict=True):
        reply = BlockReply(
            round=sent.round,
            update={},
            gradient={},
            loss=sent.loss,
            examples=sent.examples,
            steps=sent.steps,
            block=block,
            lengths=member.lengths,
            ledger=sent.ledger,
        )
        found[member.name] = Handed(reply, size_without_arrays(reply) + len(total.content) // len(total.clients))
    return found


def _numbers_of(name: str, answer: Answer) -> TrainReply:
    """Return the reply of a client in a sum, which has no arrays."""
    if isinstance(answer, Error):
        raise WireError(f"the sum has '{printable(name, 40)}', which has failed")
    return decode(TrainReply, answer)


@dataclass(frozen=True)
class HostedClient:
    """Client of a hub, in the form of Flower's description of a node.

    Args:
        node_id: Node of the client; below 0, as no node of Flower's is.
        hub: Node of the hub.
        name: Name of the client at the hub.
        public_key: PEM of the hub's key.
        heartbeat_interval: Interval that the hub promised, in seconds.
        online_until: Time at which the SuperLink misses the hub.
        last_activated_at: Time of the hub's last connection.
    """

    node_id: int
    hub: int
    name: str
    public_key: bytes = b""
    heartbeat_interval: float = 0.0
    online_until: float = 0.0
    last_activated_at: str = ""


class HubGrid(WrappedGrid):
    """Wrapper of a Grid; nodes that are no hubs pass unchanged.

    Replies are pulled by `pull`, that of the Grid by default.
    """

    def __init__(self, grid: Grid, pull: Pull | None = None) -> None:
        super().__init__(grid)
        self._pull = pull or grid.pull_messages
        self.sums = False
        """True if hubs may add up the training replies of their clients."""
        self._hosted: dict[int, HostedClient] = {}
        self._hubs: dict[int, list[int]] = {}
        self._sent: dict[str, dict[str, Message]] = {}
        """Message to a hub -> the messages to its clients by their names."""

    def admit(self, hub: int, names: Iterable[str]) -> dict[str, int]:
        """Put nodes of its clients in place of a hub; return client -> node."""
        nodes = {name: -len(self._hosted) - k for k, name in enumerate(names, start=1)}  # of earlier hubs, too
        self._hosted |= {node: HostedClient(node, hub, name) for name, node in nodes.items()}
        self._hubs[hub] = [*nodes.values()]
        return nodes

    def hosted(self, node: int) -> HostedClient | None:
        """Return the client of a hub with this node; None for any other node."""
        return self._hosted.get(node)

    def get_node_ids(self) -> list[int]:
        """Return the connected nodes, with the clients of hubs in place of the hubs."""
        nodes = [*self._grid.get_node_ids()]
        return [client for node in nodes for client in self._hubs.get(node, [node])] if self._hubs else nodes

    def get_nodes(self) -> Iterable[Any]:
        """Return descriptions of the connected nodes; the clients of a hub have its key and its heartbeats."""
        for one in self._grid.get_nodes():
            if one.node_id not in self._hubs:
                yield one
            for node in self._hubs.get(one.node_id, ()):
                about = one.public_key, one.heartbeat_interval, one.online_until, one.last_activated_at
                yield HostedClient(node, one.node_id, self._hosted[node].name, *about)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Push messages; one message goes to all clients of a hub that get the same content."""
        direct: list[Message] = []
        groups: dict[tuple[int, int], list[Message]] = defaultdict(list)
        for message in messages:
            client = self._hosted.get(message.metadata.dst_node_id)
            if client is None:
                direct.append(message)
            else:
                groups[client.hub, id(message.content)].append(message)
        together = [self._join(hub, group) for (hub, _), group in groups.items()]
        is_apart = all(map(is_beside, [*direct, *together]))
        self._sent = {k: asked for k, asked in self._sent.items() if is_apart or any(map(is_beside, asked.values()))}
        accepted = {*self._grid.push_messages([*direct, *together])}
        for message, group in zip(together, groups.values(), strict=True):
            identity = message.metadata.message_id
            if identity in accepted:
                accepted.remove(identity)
                accepted |= self._record(identity, group)
        return [*accepted]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pull the replies of nodes, and those of clients from the replies of their hubs."""
        return self._pull_from_hubs({*message_ids}) if self._sent else self._pull(message_ids)

    def _pull_from_hubs(self, wanted: set[str]) -> Iterator[Message]:
        shared = {identity for identity, asked in self._sent.items() if not wanted.isdisjoint(_ids(asked))}
        for reply in self._pull(wanted.difference(*map(_ids, self._sent.values())) | shared):
            asked = self._sent.pop(reply.metadata.reply_to_message_id, None)
            for one in [reply] if asked is None else split_reply(reply, asked, sums=self.sums):
                if one.metadata.reply_to_message_id in wanted:
                    yield one

    def _join(self, hub: int, group: Sequence[Message]) -> Message:
        """Return the message to a hub in place of its clients', which keep their shares of the bytes."""
        about, names = group[0].metadata, [self._name(message) for message in group]
        content = address(group[0].content, names, sums=self.sums and about.message_type == TRAIN)
        size = content_size(content)
        for k, message in enumerate(group):
            message.content = Weighed(size * (k + 1) // len(group) - size * k // len(group))
        joined = Message(content, hub, about.message_type, ttl=about.ttl, group_id=about.group_id)
        set_beside(joined, value=is_beside(group[0]))
        limits = [reply_limit(message) for message in group]
        sums = SUM_FACTOR * max(limits) if self.sums and about.message_type == TRAIN else 0
        return limit_to(joined, sum(limits) + sums + len(group) * HOSTED_BYTES if all(limits) else 0)

    def _record(self, identity: str, group: Sequence[Message]) -> set[str]:
        """Note a message that a hub was sent; return the ids of the messages to its clients."""
        self._sent[identity] = {self._name(message): message for message in group}
        for k, message in enumerate(group):
            message.metadata.__dict__["_message_id"] = f"{identity}/{k}"
        return {*_ids(self._sent[identity])}

    def _name(self, message: Message) -> str:
        return self._hosted[message.metadata.dst_node_id].name


def _ids(asked: Mapping[str, Message]) -> list[str]:
    return [message.metadata.message_id for message in asked.values()]
