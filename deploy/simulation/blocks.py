"""Blocks of simulated clients: shards train them as sums, and evaluate them."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from flwr.app import Error, Message, RecordDict
from safetensors.torch import load as load_tensors

from client.node.flower import failure
from client.session import Session
from client.state import ClientMemory, MemoryStore, StackedRow
from client.tasks.learner import Learner
from client.training.local_round import IsDoubtful, train_together
from client.training.participant import Participant, choose_cohort, split_cohort
from client.training.snapshot import Shard, memories_of, pack_shards, shard_arrays, shards_of, stack_memories
from client.training.state import split_histories
from common.arrays import Arrays, Floats
from common.config.run import RunConfig
from common.contribution import DOUBT, BlockReply, ClientBlock, Lengths, find_doubtful
from common.errors import FedloomError
from common.wire.codec import decode
from common.wire.messages import EVALUATE, LOCAL, TRAIN, EvaluateRequest, TrainRequest
from deploy.simulation.clients import answer_all, answer_each, message_sizes
from deploy.simulation.shared_state import SharedMemory, adopt_state, share_state
from deploy.simulation.workers import SPARE_BYTES, TrainedBlock, Worker, ask_all, can_copy, join, pack, split, unpack
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

FEWEST = 1000
"""Smallest number of clients whose evaluation is shared out; for fewer, copies cost more time."""

Blocks = Sequence[Sequence[int]]
"""Nodes of the clients of each block, whose sums are one."""

Judge = Callable[[Floats, dict[str, Floats], Floats], Sequence[int]]
"""`find_doubtful` with its reference."""

Members = Sequence[tuple[int, Participant]]
"""Clients of a block with their nodes."""


class ClientShard:
    """Clients of a simulation that one process trains in blocks.

    Args:
        sessions: All clients by their nodes.
        sums: Number of a sum -> the blocks in it; the numbers are those of the whole population.
        together: Largest number of clients of a block.
        evaluated: Number of clients that are evaluated stacked.
        folder: Folder of files that hold the clients' state; None for main memory.
    """

    def __init__(
        self,
        sessions: Mapping[int, Session],
        sums: Mapping[int, Blocks],
        together: int,
        evaluated: int,
        folder: Path | None = None,
    ) -> None:
        self.sessions, self.sums, self._folder = sessions, sums, folder
        self.together, self.evaluated = together, evaluated
        self._memories: dict[tuple[str, ...], SharedMemory] = {}
        self._held: dict[tuple[str, ...], SharedMemory] = {}
        self._pieces: Iterator[list[Shard]] = iter(())
        self._rows: dict[int, StackedRow] = {}

    @property
    def blocks(self) -> int:
        """Number of its blocks."""
        return sum(map(len, self.sums.values()))

    @cached_property
    def nodes(self) -> list[int]:
        """Nodes of its clients."""
        return [node for blocks in self.sums.values() for block in blocks for node in block]

    def answer(self, order: bytes) -> bytes:
        """Return the answer to an order of a `Population` in another process."""
        about, _ = unpack(order)
        if about["kind"] == "dump":
            return self._dump(about["run"], is_first=about["is_first"])
        if about["kind"] == "load":
            return self._load(about["run"], order)
        return join(piece if isinstance(piece, bytes) else piece.to_bytes() for piece in self.pieces(order))

    def pieces(self, order: bytes) -> Iterator[bytes | TrainedBlock]:
        """Return the pieces of the answer to requests of clients."""
        about, arrays = unpack(order)
        self._pieces, self._rows = iter(()), {}
        contents = [decode_record(arrays[f"content/{k}"].tobytes()) for k in range(about["contents"])]
        asked = dict(zip(arrays["nodes"].tolist(), (contents[k] for k in arrays["which"].tolist()), strict=True))
        if about["kind"] == EVALUATE:
            return self._evaluate(asked)
        limits = dict(zip(asked, arrays["limits"].tolist(), strict=True))
        return self._train(asked, limits, about["reference"], with_all=about["with_all"])

    def _dump(self, run: str, *, is_first: bool) -> bytes:
        """Return the next piece of the state of its clients, whose numbers are those of their nodes from 0."""
        if is_first:
            nodes, stores = self.nodes, [self.sessions[node].store for node in self.nodes]
            found = stack_memories([store.load(run) for store in stores])
            self._pieces = pack_shards(replace(one, clients=tuple(nodes[k] - 1 for k in one.clients)) for one in found)
        piece = next(self._pieces, None)
        return pack({"kind": "load", "run": run}, shard_arrays(piece)) if piece else b""

    def _load(self, run: str, piece: bytes) -> bytes:
        for k, memory in memories_of(shards_of(load_tensors(piece)), self._rows):
            self.sessions[k + 1].store.save(run, memory)
        return b""

    def _train(
        self, asked: Mapping[int, RecordDict], limits: Mapping[int, float], reference: Lengths, *, with_all: bool
    ) -> Iterator[bytes | TrainedBlock]:
        """Yield the refusals of its clients, then the trained clients of each sum."""
        participants, refused = dict[int, Participant](), dict[int, tuple[int, str | None]]()
        contents = {id(content): content for content in asked.values()}
        requests = {key: decode(TrainRequest, content) for key, content in contents.items()}
        for node in self.nodes:
            try:
                if node in asked:
                    participants[node] = self.sessions[node].participant(requests[id(asked[node])])
            except FedloomError as error:
                found = failure(TRAIN, error)
                refused[node] = found.code, found.reason
        yield json.dumps(refused).encode()
        self._held, self._memories = self._memories, {}
        judge = partial(find_doubtful, reference)
        for number, blocks in self.sums.items():
            members = [[(node, participants[node]) for node in block if node in participants] for block in blocks]
            if any(members):
                yield self._add_up(number, members, limits, judge, with_all=with_all)

    def _add_up(
        self, number: int, blocks: Sequence[Members], limits: Mapping[int, float], judge: Judge, *, with_all: bool
    ) -> TrainedBlock:
        """Train the clients of a sum, block by block."""
        trained = list[TrainedBlock]()
        for members in (one for block in blocks for one in self._split(block, with_all=with_all)):
            its_judge = partial(judge, np.array([limits[node] for node, _ in members]))
            trained.append(self._train_block(number, members, its_judge, with_all=with_all))
        if len(trained) == 1:
            return trained[0]
        sums = trained[0].sums.empty()
        for one in trained:
            sums.merge(one.sums)
        whole = ClientBlock(number, tuple(member.name for member in sums.members), sums)
        replies = [reply for one in trained for reply in one.replies]
        kinds = dict.fromkeys(kind for one in trained for kind in one.lengths)
        return TrainedBlock(
            [replace(one, block=whole) if isinstance(one, BlockReply) else one for one in replies],
            [size for one in trained for size in one.sizes],
            {kind: np.concatenate([one.lengths[kind] for one in trained]) for kind in kinds},
            sums,
            [node for one in trained for node in one.nodes],
        )

    def _split(self, members: Members, *, with_all: bool) -> Iterator[Members]:
        """Yield the clients of a block that train together: first those whose clients share rows of tables."""
        participants = [participant for _, participant in members]
        memories = [p.store.load(p.run) if with_all else ClientMemory() for p in participants]
        together, others = split_histories(memories, [participant.request for participant in participants])
        yield from ([members[k] for k in clients] for clients in together)
        yield from split_cohort([members[k] for k in others], lambda member: member[1].learner, self.together)

    def _train_block(self, number: int, members: Members, judge: IsDoubtful, *, with_all: bool) -> TrainedBlock:
        participants = [participant for _, participant in members]
        first, key = participants[0], tuple(participant.client for participant in participants)
        config = self.sessions[members[0][0]].config(first.request.enrolment, first.request.round)
        before = [p.store.load(p.run) for p in participants] if self._folder else []
        trained = train_together(config.method_options, participants, with_all=with_all)
        replies, block = trained.sum_up(number, judge, config.secure_sums.most_examples)
        if self._folder:
            size = len(key) * STATE_VECTORS * _bytes_of(first.request.model) + SPARE_BYTES
            memory = self._memories[key] = self._held.get(key) or SharedMemory(size, self._folder)
            adopt_state(participants, share_state(participants, before, memory), memory)
        sizes = message_sizes(config, len(members), trained.update, trained.gradient)
        return TrainedBlock(replies, sizes, trained.lengths, block.sums, [node for node, _ in members])

    def _evaluate(self, asked: Mapping[int, RecordDict]) -> Iterator[bytes]:
        """Yield the answer of each of its clients, and the documents that it wrote."""
        run = decode(EvaluateRequest, next(iter(asked.values()))).enrolment.partition(":")[0]
        sessions, messages = self.sessions, [Message(content, node, EVALUATE) for node, content in asked.items()]
        before = {node: _documents(sessions[node], run) for node in asked}
        for message, reply in zip(messages, answer_all(sessions, messages, self.evaluated), strict=True):
            node = message.metadata.dst_node_id
            if reply.has_error():
                yield b"e" + json.dumps([reply.error.code, reply.error.reason]).encode()
            else:
                yield b"c" + encode_record(reply.content)
            new = {n: text for n, text in _documents(sessions[node], run).items() if text is not before[node].get(n)}
            yield json.dumps({n: text.decode("latin-1") for n, text in new.items()}).encode()


def _documents(session: Session, run: str) -> dict[str, bytes]:
    return session.store.documents(run) if isinstance(session.store, MemoryStore) else {}


def dump(answer: Callable[[bytes], bytes], run: str) -> Iterator[bytes]:
    """Yield a shard's state in pieces as large as a file of a snapshot, as orders that load them."""
    is_first = True
    while piece := answer(pack({"kind": "dump", "run": run, "is_first": is_first}, {})):
        is_first = False
        yield piece


class Team(Protocol):
    """Shards of a population elsewhere; they have the state of their clients, and this process has not."""

    def ask(self, orders: Sequence[bytes]) -> list[bytes]:
        """Return the answer of each shard to its order.

        Raises:
            RunError: A shard is lost.
        """

    def dump(self) -> Iterator[bytes]:
        """Yield the state of all shards in pieces; see `dump`."""

    def end(self) -> None:
        """End the shards."""


class TeamOfCopies(Team):
    """Shards in copies of this process."""

    def __init__(self, shards: Sequence[ClientShard], run: str) -> None:
        self._run, count = run, len(shards)
        names = [f"worker {k} of {count}, with {shard.blocks} blocks" for k, shard in enumerate(shards, start=1)]
        self._workers = [Worker(name, shard.answer) for name, shard in zip(names, shards, strict=True)]

    def ask(self, orders: Sequence[bytes]) -> list[bytes]:
        """Return the answer of each copy to its order."""
        return ask_all(self._workers, orders)

    def dump(self) -> Iterator[bytes]:
        """Yield the state of all copies in pieces."""
        return (piece for worker in self._workers for piece in dump(worker.ask, self._run))

    def end(self) -> None:
        """End the copies."""
        for worker in self._workers:
            worker.end()


Engine = Callable[[Sequence[ClientShard], str], Team]
"""(shards, name of the run) -> the same shards elsewhere, with the state of their clients."""


class Population:
    """Training in blocks of clients with data of similar size, by shards that own them for the run.

    The blocks follow from the clients alone, and sums are added in the order of blocks. The results do not depend on shards.

    Args:
        sessions: All clients by their nodes.
        together: Number of clients of a block; 0 chooses by the size of the model.
        reference: Typical lengths of the last round, replaced by those of each round.
        workers: Number of shards.
        folder: Folder of files that hold the clients' state; None for main memory.
        engine: Place of the shards; None for copies of this process.
    """

    def __init__(
        self,
        sessions: Mapping[int, Session],
        together: int,
        reference: Lengths,
        workers: int = 1,
        folder: Path | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._sessions, self._together, self._reference, self._folder = sessions, together, reference, folder
        self._workers, self._engine = workers if engine or can_copy() else 1, engine
        self._evaluated = together or choose_cohort(len(sessions))
        self._trained: set[int] = set()
        self.team: Team | None = None
        self._shards: list[ClientShard] = []
        self._run, self._has_changed = "", False

    def trains(self, messages: Sequence[Message]) -> bool:
        """Return True if these clients' replies are summed."""
        if not messages:
            return False
        request, session = decode(TrainRequest, messages[0].content), self._session(messages[0])
        config = session.config(request.enrolment, request.round)
        if len(messages) * _reply_bytes(config, request.model) <= FOLDED_BYTES or config.keeps_rows:
            return False
        is_plain = config.privacy.unit == "none" and config.privacy.resolved_trust != "helpers"
        if not is_plain or not config.capabilities.sum_only or config.robust != "none" or request.phase != LOCAL:
            return False
        try:
            first = session.participant(request)
        except FedloomError:
            return False
        return all(self._session(message).passes_unchanged(first) for message in messages)

    def evaluates(self, messages: Sequence[Message]) -> bool:
        """Return True if the shards answer these messages, which are evaluations of many clients."""
        if not messages or messages[0].metadata.message_type != EVALUATE:
            return False
        return self.team is not None or (self._workers > 1 and len(messages) >= FEWEST)

    def train(self, messages: Sequence[Message]) -> list[Message]:
        """Train all clients and return their replies; most of them hold no arrays."""
        request = decode(TrainRequest, messages[0].content)
        by_node = {message.metadata.dst_node_id: message for message in messages}
        learners = {node: self._learner(node, request) for node in by_node}
        config = self._session(messages[0]).config(request.enrolment, request.round)
        most = config.secure_sums.most_examples
        weights = {str(node): config.method_options.weight(one.examples, most) for node, one in learners.items()}
        allowed = allowances(weights)
        bound = min(config.federation.norm_bound, CLIP / DOUBT)  # who may be clipped is a single reply
        limits = {node: bound * allowed[str(node)] for node in by_node}
        with_all = self._trained <= by_node.keys()
        self._trained |= by_node.keys()
        about = {"kind": TRAIN, "reference": {**self._reference}, "with_all": with_all}
        lengths, replies = defaultdict[str, list[Floats]](list), list[Message]()
        answers = self._ask(by_node, request, about, limits)
        self._has_changed = True  # new shards have changed nothing
        for refused, *blocks in answers:
            for node, (code, reason) in json.loads(refused).items():
                replies.append(Message(Error(code, reason), reply_to=by_node[int(node)]))
            for block in blocks:
                block = TrainedBlock.from_bytes(block) if isinstance(block, bytes) else block
                asked = [by_node[node] for node in block.nodes]
                replies += answer_each(asked, block.replies, block.sizes)
                for kind, found in block.lengths.items():
                    lengths[kind].append(found)
        self._reference.clear()
        self._reference.update(typical_of({kind: np.concatenate(found) for kind, found in lengths.items()}))
        return replies

    def evaluate(self, messages: Sequence[Message]) -> list[Message]:
        """Return the clients' answers, and store the documents that they wrote."""
        request, replies = decode(EvaluateRequest, messages[0].content), list[Message]()
        by_node = {message.metadata.dst_node_id: message for message in messages}
        session = self._session(messages[0])
        answers = self._ask(by_node, request, {"kind": EVALUATE}, dict.fromkeys(by_node, 0.0))
        self._has_changed |= session.config(request.enrolment).capabilities.own_model == "adapted"
        for orders, pieces in zip(self._asked, answers, strict=True):
            for node, content, documents in zip(orders, pieces[::2], pieces[1::2], strict=True):
                replies.append(_read(by_node[node], content))
                for name, text in json.loads(documents).items():
                    self._sessions[node].store.write(self._run, name, text.encode("latin-1"))
        return replies

    def dump(self) -> Iterator[Shard] | None:
        """Return the state of all clients that shards have, fetched in pieces; None if this process has it."""
        if not (self.team and self._has_changed):
            return None
        return (shard for piece in self.team.dump() for shard in shards_of(load_tensors(piece)))

    def recall(self) -> None:
        """Give this process the state of all clients, and end the shards."""
        for k, memory in memories_of(self.dump() or ()):
            self._sessions[k + 1].store.save(self._run, memory)
        self.end()

    def end(self) -> None:
        """End the shards."""
        if self.team:
            self.team.end()
        self.team, self._shards, self._has_changed = None, [], False

    def _session(self, message: Message) -> Session:
        return self._sessions[message.metadata.dst_node_id]

    def _learner(self, node: int, request: TrainRequest | EvaluateRequest) -> Learner:
        return self._sessions[node].runs.find(request.enrolment).learner

    def _ask(
        self,
        by_node: Mapping[int, Message],
        request: TrainRequest | EvaluateRequest,
        about: dict[str, Any],
        limits: Mapping[int, float],
    ) -> Iterator[list[Any]]:
        """Yield the pieces of each shard's answer on its clients among those asked."""
        self._open(by_node, request)
        contents = {id(message.content): message.content for message in by_node.values()}
        numbers = {content: number for number, content in enumerate(contents)}
        encoded = [np.frombuffer(encode_record(content), np.uint8) for content in contents.values()]
        arrays = {f"content/{k}": content for k, content in enumerate(encoded)}
        self._asked = [[node for node in shard.nodes if node in by_node] for shard in self._shards]
        orders = []
        for nodes in self._asked:
            which = np.array([numbers[id(by_node[node].content)] for node in nodes], np.int64)
            of_nodes = {
                "nodes": np.array(nodes, np.int64),
                "which": which,
                "limits": np.array([limits[node] for node in nodes]),
            }
            orders.append(pack({**about, "contents": len(encoded)}, {**arrays, **of_nodes}))
        if self.team:
            return map(split, self.team.ask(orders))
        return (list(shard.pieces(order)) for shard, order in zip(self._shards, orders, strict=True))

    def _open(self, asked: Collection[int], request: TrainRequest | EvaluateRequest) -> None:
        """Make the shards, anew if they miss a client; a single one stays in this process."""
        if not {node for shard in self._shards for node in shard.nodes}.issuperset(asked):
            self.recall()
            self._run, self._shards = request.enrolment.partition(":")[0], self._cut(asked, request)
            if self._engine or len(self._shards) > 1:
                self.team = (self._engine or TeamOfCopies)(self._shards, self._run)

    def _cut(self, asked: Collection[int], request: TrainRequest | EvaluateRequest) -> list[ClientShard]:
        """Return the shards of all clients with data, in blocks by the size of their data."""
        sessions, model = self._sessions, request.model
        nodes = [node for node, session in sessions.items() if session.runs.is_open(request.enrolment)]
        nodes = [node for node in nodes if node in asked or self._learner(node, request).examples]
        nodes.sort(key=lambda node: (self._learner(node, request).size, sessions[node].client))
        config, together = sessions[nodes[0]].config(request.enrolment), self._together or _choose_block(model)
        blocks = [*split_cohort(nodes, lambda node: self._learner(node, request), together)]
        shared = max(-(-len(blocks) * _sum_bytes(config, model) // SUMS_BYTES), 1)
        sums = [blocks[k : k + shared] for k in range(0, len(blocks), shared)]
        count = min(self._workers, len(sums))
        owned = [{n: sums[n] for n in range(k, len(sums), count)} for k in range(count)]
        return [ClientShard(sessions, one, together, self._evaluated, self._folder) for one in owned]


def typical_of(lengths: Mapping[str, Floats]) -> Lengths:
    """Return the median of each kind over positive lengths, as `typical` does of rows."""
    return {kind: float(np.median(positive)) for kind, found in lengths.items() if len(positive := found[found > 0])}


def _bytes_of(model: Arrays) -> int:
    return sum(a.nbytes for a in model.values())


def _reply_bytes(config: RunConfig, model: Arrays) -> int:
    return _bytes_of(model) * (2 if config.capabilities.needs_gradient else 1)


def _sum_bytes(config: RunConfig, model: Arrays) -> int:
    return 2 * _reply_bytes(config, model) + (2 * _bytes_of(model) if config.capabilities.needs_magnitude else 0)


def _choose_block(model: Arrays) -> int:
    """Return the power of two nearest to a fixed number of bytes; the machine has no influence on it."""
    clients = BLOCK_BYTES / (8 * max(_bytes_of(model), 1))
    return int(min(max(2 ** round(math.log2(clients)), MIN_BLOCK), MAX_BLOCK))


def _read(message: Message, content: bytes) -> Message:
    if content[:1] == b"e":
        return Message(Error(*json.loads(content[1:])), reply_to=message)
    return Message(decode_record(content[1:]), reply_to=message)
