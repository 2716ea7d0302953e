"""Training of simulated clients in one cohort; replies without noise are handed over, not encoded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flwr.app import Message, RecordDict

from client.node.replies import failure_reply
from client.privacy.plain_updates import sends_rows
from client.session import Session
from client.stacked_tensors import Tensors
from client.training.cohort import train_stacked
from client.training.participant import Participant
from common.arrays import Ints
from common.config.run import RunConfig
from common.errors import FedloomError
from common.wire.codec import Handed, encode, size_without_arrays
from common.wire.messages import TrainReply
from common.wire.sparse_rows import stacked_sizes

RequestT = TypeVar("RequestT")


@dataclass(frozen=True)
class Job:
    """Training request with the client that answers it."""

    message: Message
    session: Session
    participant: Participant


def train_cohort(jobs: Sequence[Job]) -> list[Message]:
    """Train clients stacked and return their replies."""
    config = jobs[0].session.config(jobs[0].participant.request.enrolment)
    trained = train_stacked(config.method_options, [job.participant for job in jobs])
    if all(job.session.passes_unchanged(job.participant) for job in jobs):
        sizes = message_sizes(config, len(jobs), trained.update, trained.gradient, trained.rows)
        return answer_jobs(jobs, trained.replies, sizes)
    return [_reply(job, outcome, None) for job, outcome in zip(jobs, trained.replies, strict=True)]


def answer_jobs(
    jobs: Sequence[Job], outcomes: Sequence[TrainReply | FedloomError], sizes: Sequence[int]
) -> list[Message]:
    """Return the replies of clients whose release changes nothing but the encoding.

    Args:
        jobs: Requests with their clients.
        outcomes: Results of the training.
        sizes: Bytes of each reply's arrays in a message; the rest of the replies takes equal bytes.
    """
    rest = next((size_without_arrays(reply) for reply in outcomes if isinstance(reply, TrainReply)), 0)
    return [_reply(job, outcome, rest + size) for job, outcome, size in zip(jobs, outcomes, sizes, strict=True)]


def message_sizes(
    config: RunConfig, clients: int, update: Tensors, gradient: Tensors, rows: Mapping[str, Ints] | None = None
) -> list[int]:
    """Return the bytes of the arrays of each client's reply in a message.

    Args:
        config: Configuration of the run.
        clients: Number K of clients.
        update: Δ_k, K × ….
        gradient: s_k, K × ….
        rows: Table that replies hold as gathered rows -> number of each client's rows, (K,).
    """
    groups = {"update": update, "gradient": gradient}
    arrays = {f"{group}/{n}": t.numpy() for group, tensors in groups.items() for n, t in tensors.items()}
    gathered = {f"update/{table}": counts for table, counts in (rows or {}).items()}
    return stacked_sizes(clients, arrays, gathered, compressed=sends_rows(config))


def _reply(job: Job, outcome: TrainReply | FedloomError, size: int | None) -> Message:
    def result() -> TrainReply:
        if isinstance(outcome, FedloomError):
            raise outcome
        return outcome

    def content() -> RecordDict:
        return encode(job.session.release(job.participant, result)) if size is None else Handed(result(), size)

    try:
        return Message(content(), reply_to=job.message)
    except FedloomError as error:
        return failure_reply(job.message, error)


def decode_once(decoder: Callable[[Message], RequestT]) -> Callable[[Message], RequestT]:
    """Return the decoder with a cache by content; clients share the content that the server encoded."""
    requests: dict[int, RequestT] = {}

    def cached(message: Message) -> RequestT:
        key = id(message.content)
        if key not in requests:
            requests[key] = decoder(message)
        return requests[key]

    return cached
