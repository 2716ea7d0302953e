"""Blocks of simulated clients, trained as sums and evaluated in several processes."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from flwr.app import Error, Message

from client.session import Session
from client.state import ClientMemory, MemoryStore
from client.training.local_round import train_together
from client.training.participant import split_cohort
from client.training.state import split_histories
from common.config.run import RunConfig
from common.contribution import DOUBT, Contribution, Lengths, find_doubtful, rows_of_lengths, typical
from common.wire.codec import decode
from common.wire.messages import EVALUATE, LOCAL, EvaluateRequest
from deploy.simulation.clients import Job, answer_all, answer_jobs, message_sizes
from deploy.simulation.workers import TrainedBlock, Workers, can_copy, put_into, run_in_copies, share_sum
from server.aggregation.lengths import CLIP, allowances
from server.exchange.flower import decode_record, encode_record

FOLDED_BYTES = 192 * 2**20
"""Bytes of a round's replies above which they are summed.

Below, the server has single replies. It can then find the outliers of a step that ruined the model, and clients keep what a
repeated round needs.
"""

BLOCK_BYTES, MIN_BLOCK, MAX_BLOCK = 32 * 2**20, 4, 256
"""Bytes of a block: two models a client, and limits of its number of clients."""

SUMS_BYTES = 192 * 2**20
"""Bytes of a round's sums above which consecutive blocks share one, at whole multiples."""

STATE_VECTORS = 12
"""Upper bound on the vectors of a client's state, each as long as the model."""


class Population:
    """Training in blocks of clients with data of similar size.

    Args:
        together: Number of clients of a block; 0 chooses by the size of the model.
        reference: Typical lengths of the last round, replaced by those of each round.
        workers: Number of processes that train blocks; the results do not depend on it.
        folder: Folder of files that hold the clients' state; None for main memory.
    """

    def __init__(self, together: int, reference: Lengths, workers: int = 1, folder: Path | None = None) -> None:
        self._together, self._reference, self._workers = together, reference, Workers(workers, folder)
        self._trained: set[str] = set()

    def trains(self, jobs: Sequence[Job]) -> bool:
        """Return True if these clients' replies are summed."""
        if not jobs or len(jobs) * _reply_bytes(jobs[0]) <= FOLDED_BYTES or _config(jobs[0]).keeps_rows:
            return False
        config, phase = _config(jobs[0]), jobs[0].participant.request.phase
        fits = config.capabilities.sum_only and config.federation.robust == "none" and phase == LOCAL
        return fits and all(job.session.passes_unchanged(job.participant) for job in jobs)

    def train(self, jobs: Sequence[Job]) -> list[Message]:
        """Train all clients and return their replies; most of them hold no arrays."""
        config, size = _config(jobs[0]), self._together or _choose_block(jobs[0])
        jobs = sorted(jobs, key=lambda job: (job.participant.learner.size, job.participant.client))
        weights = {j.participant.client: config.method_options.weight(j.participant.learner.examples) for j in jobs}
        with_all = self._trained <= weights.keys()
        self._trained |= weights.keys()
        allowed, blocks = allowances(weights), _cut(jobs, size, with_all=with_all)
        together, running = -(-len(blocks) * _sum_bytes(jobs[0]) // SUMS_BYTES), Contribution()

        def train_block(number: int) -> TrainedBlock:
            nonlocal running
            members = [job.participant for job in blocks[number]]
            bound = min(config.federation.norm_bound, CLIP / DOUBT)  # who may be clipped is a single reply
            limits = bound * np.array([allowed[member.client] for member in members])
            judge = partial(find_doubtful, self._reference, limits)
            trained = train_together(config.method_options, members, with_all=with_all)
            replies, block = trained.sum_up(number, judge)
            sizes = message_sizes(config, len(members), trained.update, trained.gradient)
            running = running if number % together else block.sums.empty()
            if block.clients:
                running.merge(block.sums)
            replies = put_into(replace(block, sums=running.empty()), replies)
            is_last = number + 1 == len(blocks) or not (number + 1) % together
            return TrainedBlock(replies, sizes, trained.lengths, running if is_last else running.empty())

        participants = [[job.participant for job in block] for block in blocks]
        trained = self._workers.train(participants, train_block, STATE_VECTORS * _model_bytes(jobs[0]), together)
        trained = [block for k in range(0, len(trained), together) for block in share_sum(trained[k : k + together])]
        self._reference.clear()
        self._reference.update(typical([row for block in trained for row in rows_of_lengths(block.lengths)]))
        pairs = zip(blocks, trained, strict=True)
        return [reply for jobs, block in pairs for reply in answer_jobs(jobs, block.replies, block.sizes)]


def _cut(jobs: Sequence[Job], size: int, *, with_all: bool) -> list[list[Job]]:
    """Return the blocks of a round: first those whose clients share rows of tables."""
    members = [job.participant for job in jobs]
    memories = [member.store.load(member.run) if with_all else ClientMemory() for member in members]
    together, others = split_histories(memories, [member.request for member in members])
    rest = split_cohort([jobs[k] for k in others], lambda job: job.participant.learner, size)
    return [*([jobs[k] for k in clients] for clients in together), *rest]


def _config(job: Job) -> RunConfig:
    request = job.participant.request
    return job.session.config(request.enrolment, request.round)


def _model_bytes(job: Job) -> int:
    return sum(a.nbytes for a in job.participant.request.model.values())


def _reply_bytes(job: Job) -> int:
    return _model_bytes(job) * (2 if _config(job).capabilities.needs_gradient else 1)


def _sum_bytes(job: Job) -> int:
    capabilities = _config(job).capabilities
    return 2 * _reply_bytes(job) + (2 * _model_bytes(job) if capabilities.needs_magnitude else 0)


def _choose_block(job: Job) -> int:
    """Return the power of two nearest to a fixed number of bytes; the machine has no influence on it."""
    clients = BLOCK_BYTES / (8 * _model_bytes(job))
    return int(min(max(2 ** round(math.log2(clients)), MIN_BLOCK), MAX_BLOCK))


FEWEST = 1000
"""Smallest number of clients whose evaluation is shared out; for fewer, copies cost more time."""


def are_shared_out(sessions: Mapping[int, Session], messages: Sequence[Message]) -> bool:
    """Return True if several processes answer these messages.

    They are evaluations of many clients, which store documents, but no state of the method.
    """
    if len(messages) < FEWEST or not can_copy() or messages[0].metadata.message_type != EVALUATE:
        return False
    first = sessions[messages[0].metadata.dst_node_id]
    enrolment = decode(EvaluateRequest, messages[0].content).enrolment
    return first.config(enrolment).capabilities.own_model != "adapted"


def evaluate_apart(
    sessions: Mapping[int, Session], messages: Sequence[Message], workers: int, together: int
) -> list[Message]:
    """Return the clients' answers, and store the documents that they wrote.

    Raises:
        RunError: A process has ended before its clients had answered.
    """
    run = decode(EvaluateRequest, messages[0].content).enrolment.partition(":")[0]
    shares = [messages[first::workers] for first in range(workers)]
    works = [partial(_evaluate, sessions, share, run, together) for share in shares]
    names = [f"worker {k + 1} of {workers}, with {len(share)} evaluations" for k, share in enumerate(shares)]
    replies: dict[str, Message] = {}
    for share, pieces in zip(shares, run_in_copies(works, names), strict=True):
        for message, content, documents in zip(share, pieces[::2], pieces[1::2], strict=True):
            replies[message.metadata.message_id] = _read(message, content)
            for name, text in json.loads(documents).items():
                sessions[message.metadata.dst_node_id].store.write(run, name, text.encode("latin-1"))
    return [replies[message.metadata.message_id] for message in messages]


def _evaluate(sessions: Mapping[int, Session], messages: Sequence[Message], run: str, together: int) -> Iterator[bytes]:
    before = {
        message.metadata.dst_node_id: _documents(sessions[message.metadata.dst_node_id], run) for message in messages
    }
    for message, reply in zip(messages, answer_all(sessions, messages, together), strict=True):
        node = message.metadata.dst_node_id
        if reply.has_error():
            yield b"e" + json.dumps([reply.error.code, reply.error.reason]).encode()
        else:
            yield b"c" + encode_record(reply.content)
        changed = {n: text for n, text in _documents(sessions[node], run).items() if text is not before[node].get(n)}
        yield json.dumps({n: text.decode("latin-1") for n, text in changed.items()}).encode()


def _documents(session: Session, run: str) -> dict[str, bytes]:
    return session.store.documents(run) if isinstance(session.store, MemoryStore) else {}


def _read(message: Message, content: bytes) -> Message:
    if content[:1] == b"e":
        return Message(Error(*json.loads(content[1:])), reply_to=message)
    return Message(decode_record(content[1:]), reply_to=message)
