"""Simulated nodes that answer invitations, with a clock."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from flwr.app import Error, Message, RecordDict

from common.wire.codec import decode, encode
from common.wire.messages import ENROL, EnrolReply, EnrolRequest
from server.clients.enrolment import Enrolment

INVITATION = EnrolRequest("toy", '{"seed": 0}', "{}")

DEADLINE = 120.0

Answer = EnrolReply | str | RecordDict


class World:
    """Simulated nodes: each is online from some second on and answers an invitation; sleeping advances the clock."""

    def __init__(
        self, answers: dict[int, Answer], online: Callable[[float], Iterable[int]] | None = None, wait: float = 10.0
    ) -> None:
        self.answers, self.now, self.invited, self.naps = answers, 0.0, list[int](), list[float]()
        self.online = online or (lambda now: answers)
        self.explained: list[tuple[int, str]] = []
        """Nodes that were sent the reason of their refusal."""
        self.slow: dict[int, float] = {}
        """Node -> second from which it can answer."""
        self.posted: dict[int, Message] = {}
        """Node -> its invitation without an answer."""
        self.enrolment = Enrolment(INVITATION, wait, self.ask, clock=lambda: self.now, sleep=self.sleep)

    def ask(self, messages: list[Message], seconds: float) -> Iterable[Message]:
        nodes = [message.metadata.dst_node_id for message in messages]
        last = max((self.slow.get(node, 0.0) for node in nodes), default=0.0)
        self.now = max(self.now, min(last, self.now + min(seconds, DEADLINE)))
        for message in messages:
            node = message.metadata.dst_node_id
            request = decode(EnrolRequest, message.content)
            plain = replace(request, refusal="")
            assert (plain, message.metadata.message_type) == (INVITATION, ENROL)
            if request.refusal:
                self.explained.append((node, request.refusal))
                continue
            self.invited.append(node)
            message.metadata.__dict__["_message_id"] = f"m{len(self.invited)}"
            self.posted[node] = message
        for message in [*self.posted.values()]:
            node = message.metadata.dst_node_id
            if self.slow.get(node, 0.0) > self.now:
                continue
            del self.posted[node]
            answer = self.answers[node]
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
