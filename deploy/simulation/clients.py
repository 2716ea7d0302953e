"""Clients of a simulation: sessions on partitions, with state and ledgers in memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from flwr.app import Message

from client.app import answer, decode_request
from client.data.dataset import AnyDataset
from client.data.read import read_under
from client.node.flower import failure_reply
from client.owner.policy import Policy
from client.privacy.release import Releaser, sends_rows
from client.privacy.simulation import MemoryLedgers
from client.session import MODEL, Session, cohorts
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.training.local_round import train_together
from client.training.participant import Participant
from client.training.stacks import Tensors
from common.arrays import Ints
from common.config.run import RunConfig
from common.errors import FedloomError
from common.node_names import simulated_node_key
from common.privacy.mechanisms import fresh_generator
from common.tasks.vocabulary import FEDERATED, Vocabulary
from common.wire.codec import Handed, encode, hand, size_without_arrays
from common.wire.messages import TrainReply
from common.wire.sparse_rows import stacked_sizes

simulated_policy = partial(
    Policy, allow_counts="clear", allow_names="clear", share_metrics="always", min_sum=2, helpers_on_first_use=True
)
"""Policy of simulated clients; made anew, since it allows the methods of that time."""


class SeededNoise:
    """Generators of one client's noise, from a root seed."""

    def __init__(self, seed: int, node: int) -> None:
        self._seed, self._node = seed, node
        self.drawn = 0
        """Number of generators so far."""

    def __call__(self) -> np.random.Generator:
        """Return the next generator."""
        self.drawn += 1
        return np.random.default_rng([self._seed, self._node, self.drawn - 1])


class SharedStore(MemoryStore):
    """State of a simulated client. It stores no finished model, because the client ends with the run.

    Args:
        documents: Documents of all clients by their content; clients with equal documents share one copy.
        noise: Seeded generators of its noise; None if they are fresh.
    """

    def __init__(self, documents: dict[bytes, bytes], noise: SeededNoise | None = None) -> None:
        super().__init__()
        self._shared, self.noise = documents, noise
        self.policy = simulated_policy()
        self.ledgers = MemoryLedgers(self.policy)

    def write(self, run: str, name: str, content: bytes) -> None:
        """Replace a document of a run, as in `Store`."""
        if name != MODEL:
            super().write(run, name, self._shared.setdefault(content, content))


def open_sessions(
    partitions: Sequence[AnyDataset],
    noise_seed: int | None = None,
    device: str = "cpu",
    nodes: Collection[int] | None = None,
) -> tuple[dict[int, Session], list[SharedStore]]:
    """Return the sessions of simulated clients by node id, from 1, and their stores in the same order.

    With a seed their DP noise is reproducible, and gives no protection. `nodes` are those of a share of the clients.
    """
    documents: dict[bytes, bytes] = {}
    found = {node: part for node, part in enumerate(partitions, start=1) if nodes is None or node in nodes}
    noise = [None if noise_seed is None else SeededNoise(noise_seed, node) for node in found]
    stores = [SharedStore(documents, generators) for generators in noise]
    pairs = zip(found.items(), stores, strict=True)
    return {node: _open_session(node, part, store, device) for (node, part), store in pairs}, stores


def _open_session(node: int, data: AnyDataset, store: SharedStore, device: str) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        is_found = config.catalogue == FEDERATED  # by the run, after the data were read
        return build_learner(config, read_under(config.task, data, vocabulary) if is_found else data)

    def names(config: RunConfig) -> Vocabulary:
        found: Vocabulary = read_under(config.task, data, None).vocabulary
        return found

    releaser = Releaser(store.policy, store.ledgers, store.noise or fresh_generator)
    name, key = f"client-{node - 1}", partial(simulated_node_key, f"client-{node - 1}")
    return Session(name, learner, store, releaser, read_names=names, node_key=key, device=device)


RequestT = TypeVar("RequestT")


@dataclass(frozen=True)
class Job:
    """Training request with the client that answers it."""

    message: Message
    session: Session
    participant: Participant


def train_cohort(jobs: Sequence[Job]) -> list[Message]:
    """Train clients stacked and return their replies."""
    request = jobs[0].participant.request
    config = jobs[0].session.config(request.enrolment, request.round)
    trained = train_together(config.method_options, [job.participant for job in jobs])
    replies = trained.replies()
    if all(job.session.passes_unchanged(job.participant) for job in jobs):
        sizes = message_sizes(config, len(jobs), trained.update, trained.gradient, trained.rows)
        return answer_each([job.message for job in jobs], replies, sizes)
    return [_reply(job, outcome) for job, outcome in zip(jobs, replies, strict=True)]


def answer_each(
    messages: Sequence[Message], outcomes: Sequence[TrainReply | FedloomError], sizes: Sequence[int]
) -> list[Message]:
    """Return the replies of clients whose release changes nothing but the encoding.

    Args:
        messages: Requests.
        outcomes: Results of the training.
        sizes: Bytes of each reply's arrays in a message; the rest of the replies takes equal bytes.
    """
    rest = next((size_without_arrays(reply) for reply in outcomes if isinstance(reply, TrainReply)), 0)
    pairs = zip(messages, outcomes, sizes, strict=True)
    return [
        failure_reply(message, outcome)
        if isinstance(outcome, FedloomError)
        else Message(Handed(outcome, rest + size), reply_to=message)
        for message, outcome, size in pairs
    ]


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


def _reply(job: Job, outcome: TrainReply | FedloomError) -> Message:
    def result() -> TrainReply:
        if isinstance(outcome, FedloomError):
            raise outcome
        return outcome

    try:
        return Message(encode(job.session.release(job.participant, result)), reply_to=job.message)
    except FedloomError as error:
        return failure_reply(job.message, error)


def answer_all(sessions: Mapping[int, Session], messages: Sequence[Message], together: int) -> list[Message]:
    """Return the clients' answers to requests other than training, equal ones in cohorts."""
    request, replies = decode_once(decode_request), dict[int, Message]()
    write = hand if together > 1 else encode  # one at a time, they send what single nodes send
    equal: dict[int, dict[int, Message]] = {}
    for message in messages:
        equal.setdefault(id(message.content), {})[message.metadata.dst_node_id] = message
    for by_node in equal.values():
        try:
            asked = request(next(iter(by_node.values())))
        except FedloomError:
            asked = None  # each client says so
        for node in (node for cohort in cohorts({n: sessions[n] for n in by_node}, asked, together) for node in cohort):
            replies[id(by_node[node])] = answer(sessions[node], by_node[node], partial(request, by_node[node]), write)
    return [replies[id(message)] for message in messages]


def decode_once(decoder: Callable[[Message], RequestT]) -> Callable[[Message], RequestT]:
    """Return the decoder with a cache by content; clients share the content that the server encoded."""
    requests: dict[int, RequestT] = {}

    def cached(message: Message) -> RequestT:
        key = id(message.content)
        if key not in requests:
            requests[key] = decoder(message)
        return requests[key]

    return cached
