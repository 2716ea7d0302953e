"""Workers of a simulation: copies of its process that train blocks of clients."""

import gc
import json
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import numpy as np
from safetensors.numpy import load, save

from client.training.local_round import DivergedError
from client.training.participant import Participant
from common.arrays import Arrays, Floats, add_prefix, group
from common.contribution import BlockReply, ClientBlock, Contribution, Lengths, Member, rows_of_lengths
from common.errors import FedloomError, RunError
from common.system_calls import end_with_parent
from common.wire.messages import TrainReply
from deploy.simulation.shared_state import SharedMemory, TrainedState, adopt_state, share_state

_LENGTH = 8


def can_copy() -> bool:
    """Return True if this system can copy a process."""
    return hasattr(os, "fork")


def _reason(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    return "has failed; its error is above"


def pack(about: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return a description and arrays as bytes for another process."""
    return save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, {"about": json.dumps(about)})


def unpack(content: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return what `pack` was given."""
    header = json.loads(content[_LENGTH : _LENGTH + int.from_bytes(content[:_LENGTH], "little")])
    return json.loads(header["__metadata__"]["about"]), load(content)


def join(pieces: Iterable[bytes]) -> bytes:
    """Return pieces as one; inverse of `split`."""
    return b"".join(part for piece in pieces for part in (len(piece).to_bytes(_LENGTH, "little"), piece))


def split(content: bytes) -> list[bytes]:
    """Return the pieces that `join` was given."""
    pieces, stream = [], BytesIO(content)
    while header := stream.read(_LENGTH):
        pieces.append(stream.read(int.from_bytes(header, "little")))
    return pieces


@dataclass(frozen=True)
class TrainedBlock:
    """Replies of clients that trained together.

    Args:
        replies: Reply or error of each client.
        sizes: Bytes of the arrays that each reply would have in a message.
        lengths: Kind -> length of each client's reply, (K,).
        sums: Sum of the replies that have no arrays of their own.
        nodes: Node of each client of a simulation.
    """

    replies: list[TrainReply | FedloomError]
    sizes: list[int]
    lengths: dict[str, Floats]
    sums: Contribution = field(default_factory=Contribution)
    nodes: list[int] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """Return the block in the form that `from_bytes` reads; of its clients, numbers are columns."""
        arrays: Arrays = {"sizes": np.array(self.sizes), "nodes": np.array(self.nodes, np.int64)}
        arrays |= {"numbers": np.array([_describe(reply) for reply in self.replies]).reshape(-1, len(_NUMBERS))}
        arrays |= add_prefix("lengths", self.lengths) | add_prefix("sums", self.sums.to_arrays())
        arrays["weights"] = np.array([member.weight for member in self.sums.members])
        about: dict[str, Any] = {"number": 0, "clients": [member.name for member in self.sums.members]}
        for k, reply in enumerate(self.replies):
            if isinstance(reply, BlockReply):
                about["number"] = reply.block.number
            elif isinstance(reply, TrainReply):
                arrays |= add_prefix(f"{k}/update", reply.update) | add_prefix(f"{k}/gradient", reply.gradient)
        return pack(about, arrays)

    @staticmethod
    def from_bytes(content: bytes) -> "TrainedBlock":
        """Return the block; inverse of `to_bytes`."""
        about, arrays = unpack(content)
        lengths = group("lengths", arrays)
        of_clients, numbers = rows_of_lengths(lengths) or [{}] * len(arrays["numbers"]), arrays["numbers"].tolist()
        rows = [*zip(numbers, of_clients, strict=True)]
        summed = [(steps, loss, lengths) for (_, loss, _, steps, form), lengths in rows if form == _SUMMED]
        pairs = zip(about["clients"], arrays["weights"].tolist(), summed, strict=True)
        members = [Member(name, weight, int(steps), *about_it) for name, weight, (steps, *about_it) in pairs]
        sums = Contribution.from_arrays(group("sums", arrays), members)
        block = ClientBlock(about["number"], tuple(about["clients"]), sums)
        replies = [_read_reply(row, k, arrays, block, its_lengths) for k, (row, its_lengths) in enumerate(rows)]
        return TrainedBlock(replies, arrays["sizes"].tolist(), lengths, sums, arrays["nodes"].tolist())


_NUMBERS = ("round", "loss", "examples", "steps", "form")
_FAILED, _ALONE, _SUMMED = 0.0, 1.0, 2.0


def _describe(reply: TrainReply | FedloomError) -> tuple[float, ...]:
    if isinstance(reply, FedloomError):
        return 0, 0, 0, 0, _FAILED
    return reply.round, reply.loss, reply.examples, reply.steps, _SUMMED if isinstance(reply, BlockReply) else _ALONE


def _read_reply(
    row: Sequence[float], k: int, arrays: Arrays, block: ClientBlock, lengths: Lengths
) -> TrainReply | FedloomError:
    number, loss, examples, steps, form = row
    if form == _FAILED:
        return DivergedError()
    about = int(number), loss, int(examples), int(steps)
    if form == _ALONE:
        return TrainReply(about[0], group(f"{k}/update", arrays), group(f"{k}/gradient", arrays), *about[1:])
    return BlockReply(about[0], {}, {}, *about[1:], block=block, lengths=lengths)


Block = Sequence[Participant]
TrainBlock = Callable[[int], TrainedBlock]
"""Number of a block -> its trained clients."""

SPARE_BYTES = 1 << 16
MOST_WORKERS = 8


def choose_workers() -> int:
    """Return the number of processors, at most 8."""
    return min(os.cpu_count() or 1, MOST_WORKERS)


class Worker:
    """Copy of this process that answers orders until it is ended.

    Args:
        name: Its name in errors.
        answer: Answer to an order, as bytes.
    """

    def __init__(self, name: str, answer: Callable[[bytes], bytes]) -> None:
        self._name = name
        self._pipe, end = Pipe()
        self._pid = os.fork() or _serve(end, answer)
        end.close()

    def send(self, order: bytes) -> None:
        """Send an order; `receive` returns its answer."""
        with suppress(BrokenPipeError, ConnectionResetError):  # `receive` says why
            self._pipe.send_bytes(order)

    def receive(self) -> bytes:
        """Return the answer to the last order.

        Raises:
            RunError: The process has ended.
        """
        try:
            return self._pipe.recv_bytes()
        except (EOFError, ConnectionResetError):
            self._pid, ended = 0, self._pid
            reason = _reason(os.waitpid(ended, 0)[1])
        raise RunError(f"{self._name}: the process {reason}; continue with --resume, or with --workers 1")

    def ask(self, order: bytes) -> bytes:
        """Return the answer to an order; see `receive`."""
        return ask_all([self], [order])[0]

    def end(self) -> None:
        """End the process."""
        if self._pid:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        self._pid = 0
        self._pipe.close()


def _serve(end: Connection, answer: Callable[[bytes], bytes]) -> NoReturn:
    """Answer orders in this copy until it is ended; only its parent hears of an interrupt."""
    try:
        end_with_parent()
        gc.freeze()  # a collection would write to all objects, and so copy their pages
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        while True:
            end.send_bytes(answer(end.recv_bytes()))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def ask_all(workers: Sequence[Worker], orders: Sequence[bytes]) -> list[bytes]:
    """Return the answer of each worker to its order; all work at once.

    Raises:
        RunError: One has ended.
    """
    for worker, order in zip(workers, orders, strict=True):
        worker.send(order)
    return [worker.receive() for worker in workers]


def train_apart(
    count: int, blocks: Sequence[Block], train_block: TrainBlock, client_bytes: int
) -> Iterator[TrainedBlock]:
    """Return the blocks that copies of this process train, in their order.

    Clients' state is in memory that the copies share; it is stored when its block is taken.

    Args:
        count: Number W of processes, each of which trains every Wth block.
        blocks: Clients of each block.
        train_block: Training of one block.
        client_bytes: Upper bound on a client's state.

    Raises:
        RunError: A process has ended before its blocks were trained.
    """
    count = min(count if can_copy() else 1, len(blocks))
    if count == 1:
        return map(train_block, range(len(blocks)))
    memories = [SharedMemory(len(block) * client_bytes + SPARE_BYTES) for block in blocks]
    shares = [range(k, len(blocks), count) for k in range(count)]

    def train_share(order: bytes) -> bytes:
        return join(_train_share(shares[int(order)], blocks, train_block, memories))

    names = [f"worker {k + 1} of {count}, with {len(share)} blocks" for k, share in enumerate(shares)]
    copies, trained = [Worker(name, train_share) for name in names], dict[int, tuple[bytes, bytes]]()
    try:
        for share, answer in zip(shares, ask_all(copies, [b"%d" % k for k in range(count)]), strict=True):
            pieces = split(answer)
            trained |= zip(share, zip(pieces[::2], pieces[1::2], strict=True), strict=True)
    finally:
        for copy in copies:
            copy.end()

    def take(number: int) -> TrainedBlock:
        block, state = trained.pop(number)
        adopt_state(blocks[number], TrainedState.from_bytes(state), memories[number])
        return TrainedBlock.from_bytes(block)

    return map(take, range(len(blocks)))


def _train_share(
    share: Sequence[int], blocks: Sequence[Block], train_block: TrainBlock, memories: Sequence[SharedMemory]
) -> Iterator[bytes]:
    for number in share:
        before = [p.store.load(p.run) for p in blocks[number]]
        yield train_block(number).to_bytes()
        yield share_state(blocks[number], before, memories[number]).to_bytes()
