"""Training of simulated clients in cohorts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flwr.app import Message

from client.node.replies import failure_reply
from client.session import Session
from client.training.cohort import train
from client.training.participant import Participant
from common.errors import FedloomError
from common.wire.codec import encode
from common.wire.messages import TrainReply

RequestT = TypeVar("RequestT")


@dataclass(frozen=True)
class Job:
    """Training request with the client that answers it."""

    message: Message
    session: Session
    participant: Participant

    def reply(self, outcome: TrainReply | FedloomError) -> Message:
        """Return the answer: the released reply, or the failure."""

        def result() -> TrainReply:
            if isinstance(outcome, FedloomError):
                raise outcome
            return outcome

        try:
            return Message(encode(self.session.release(self.participant, result)), reply_to=self.message)
        except FedloomError as error:
            return failure_reply(self.message, error)


def train_cohort(jobs: Sequence[Job]) -> list[Message]:
    """Train the clients of a cohort stacked, and return their answers."""
    config = jobs[0].session.config(jobs[0].participant.request.enrolment)
    outcomes = train(config.method_options, [job.participant for job in jobs])
    return [job.reply(outcome) for job, outcome in zip(jobs, outcomes, strict=True)]


def decode_once(decoder: Callable[[Message], RequestT]) -> Callable[[Message], RequestT]:
    """Return the decoder with a cache by content; clients share the content that the server encoded."""
    requests: dict[int, RequestT] = {}

    def cached(message: Message) -> RequestT:
        key = id(message.content)
        if key not in requests:
            requests[key] = decoder(message)
        return requests[key]

    return cached
