"""Workers of a simulation: copies of its process that train blocks of clients."""

import gc
import json
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from safetensors.numpy import load, save

from client.training.local_round import DivergedError
from client.training.participant import Participant
from common.arrays import Arrays, Floats, add_prefix, group
from common.contribution import BlockReply, ClientBlock, Contribution, Member
from common.errors import FedloomError, RunError
from common.system_calls import end_with_parent
from common.wire.messages import TrainReply
from deploy.simulation.shared_state import SharedMemory, TrainedState, adopt_state, share_state

Work = Callable[[], Iterable[bytes]]
"""Work of one copy, which returns any number of parts."""

_LENGTH, _POLL_SECONDS = 8, 0.005


def can_copy() -> bool:
    """Return True if this system can copy a process."""
    return hasattr(os, "fork")


def run_in_copies(works: Sequence[Work], names: Sequence[str]) -> list[list[bytes]]:
    """Do each work in a copy of its own, all at once; return the parts of each.

    Args:
        works: The works.
        names: Name of each, for errors.

    Raises:
        RunError: A copy has ended without a result; the others are ended as well.
    """
    with ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile()) for _ in works]
        copies = {_start(work, output): name for work, output, name in zip(works, outputs, names, strict=True)}
        try:
            while copies:
                _collect(copies)
                time.sleep(_POLL_SECONDS)
        finally:
            for pid in copies:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        return [_read(output) for output in outputs]


def _collect(copies: dict[int, str]) -> None:
    """Remove the copies that have ended.

    Raises:
        RunError: One of them has failed.
    """
    for pid in list(copies):
        ended, status = os.waitpid(pid, os.WNOHANG)
        name = copies.pop(pid) if ended else ""
        if ended and status:
            raise RunError(f"{name}: the process {_reason(status)}; continue with --resume, or with --workers 1")


def _start(work: Work, output: IO[bytes]) -> int:
    pid = os.fork()
    return pid or _work(work, output)


def _work(work: Work, output: IO[bytes]) -> NoReturn:
    """Do the work in this copy and end it; only its parent hears of an interrupt."""
    status = 1
    try:
        end_with_parent()
        gc.freeze()  # a collection would write to all objects, and so copy their pages
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        for part in work():
            output.write(len(part).to_bytes(_LENGTH, "little"))
            output.write(part)
        output.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _read(output: IO[bytes]) -> list[bytes]:
    output.seek(0)
    pieces = []
    while header := output.read(_LENGTH):
        pieces.append(output.read(int.from_bytes(header, "little")))
    return pieces


def _reason(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    return "has failed; its error is above"


@dataclass(frozen=True)
class TrainedBlock:
    """Replies of a block.

    Args:
        replies: Reply or error of each client.
        sizes: Bytes of the arrays that each reply would have in a message.
        lengths: Kind -> length of each client's reply, (K,).
        sums: Sum of the replies, or of those of all blocks that share a sum with this last one; else empty.
    """

    replies: list[TrainReply | FedloomError]
    sizes: list[int]
    lengths: dict[str, Floats]
    sums: Contribution = field(default_factory=Contribution)

    def to_bytes(self) -> bytes:
        """Return the block in the form that `from_bytes` reads."""
        rows = [_describe(reply) for reply in self.replies]
        arrays: Arrays = {"sizes": np.array(self.sizes), **add_prefix("lengths", self.lengths)}
        arrays |= add_prefix("sums", self.sums.to_arrays())
        about: dict[str, Any] = {"rows": rows, "members": [vars(member) for member in self.sums.members]}
        for k, reply in enumerate(self.replies):
            if isinstance(reply, BlockReply):
                about["block"] = {"number": reply.block.number, "clients": reply.block.clients}
            elif isinstance(reply, TrainReply):
                arrays |= add_prefix(f"{k}/update", reply.update) | add_prefix(f"{k}/gradient", reply.gradient)
        return save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, {"about": json.dumps(about)})

    @staticmethod
    def from_bytes(content: bytes) -> "TrainedBlock":
        """Return the block; inverse of `to_bytes`."""
        about = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["about"])
        arrays = load(content)
        lengths, found = group("lengths", arrays), about.get("block", {"number": 0, "clients": ()})
        sums = Contribution.from_arrays(group("sums", arrays), [Member(**member) for member in about["members"]])
        block = ClientBlock(found["number"], tuple(found["clients"]), sums)
        replies = [_read_reply(row, k, arrays, block, lengths) for k, row in enumerate(about["rows"])]
        return TrainedBlock(replies, arrays["sizes"].tolist(), lengths, sums)


def share_sum(blocks: Sequence[TrainedBlock]) -> list[TrainedBlock]:
    """Return consecutive blocks whose replies are in the sum of the last one."""
    sums = blocks[-1].sums
    found = [{r.block: r.block for r in block.replies if isinstance(r, BlockReply)} for block in blocks]
    members = [member for one in found for member in one]
    if not members:
        return [*blocks]
    shared = ClientBlock(members[0].number, tuple(client for one in members for client in one.clients), sums)
    return [replace(block, replies=put_into(shared, block.replies), sums=sums) for block in blocks]


def put_into(block: ClientBlock, replies: Sequence[TrainReply | FedloomError]) -> list[TrainReply | FedloomError]:
    """Return the replies, with that block for those without arrays of their own."""
    return [replace(reply, block=block) if isinstance(reply, BlockReply) else reply for reply in replies]


def _describe(reply: TrainReply | FedloomError) -> dict[str, Any]:
    if isinstance(reply, FedloomError):
        return {}
    numbers = {"round": reply.round, "loss": reply.loss, "examples": reply.examples, "steps": reply.steps}
    return {**numbers, "alone": not isinstance(reply, BlockReply)}


def _read_reply(
    row: dict[str, Any], k: int, arrays: Arrays, block: ClientBlock, lengths: dict[str, Floats]
) -> TrainReply | FedloomError:
    if not row:
        return DivergedError()
    if row.pop("alone"):
        return TrainReply(update=group(f"{k}/update", arrays), gradient=group(f"{k}/gradient", arrays), **row)
    client_lengths = {kind: float(length[k]) for kind, length in lengths.items()}
    return BlockReply(update={}, gradient={}, block=block, lengths=client_lengths, **row)


Block = Sequence[Participant]
TrainBlock = Callable[[int], TrainedBlock]
"""Number of a block -> its trained clients."""

SPARE_BYTES = 1 << 16
MOST_WORKERS = 8


def choose_workers() -> int:
    """Return the number of processors, at most 8."""
    return min(os.cpu_count() or 1, MOST_WORKERS)


class Workers:
    """Copies of this process, made anew in each round; each trains every Wth block.

    Clients' state is in memory that the copies share. Sums are those of blocks, in the order of blocks, so the results do not
    depend on the number of processes.

    Args:
        count: Number W of processes; 1 trains in this one.
        folder: Folder of files that hold the clients' state; None for main memory.
    """

    def __init__(self, count: int, folder: Path | None = None) -> None:
        self._count, self._folder = count if can_copy() else 1, folder
        self._memories: dict[tuple[str, ...], SharedMemory] = {}

    def train(
        self, blocks: Sequence[Block], train_block: TrainBlock, client_bytes: int, together: int = 1
    ) -> list[TrainedBlock]:
        """Train all blocks and store their clients' state; see `train_each`."""
        return [*self.train_each(blocks, train_block, client_bytes, together)]

    def train_each(
        self, blocks: Sequence[Block], train_block: TrainBlock, client_bytes: int, together: int = 1
    ) -> Iterator[TrainedBlock]:
        """Return the trained blocks in their order; the state of a block's clients is stored when it is taken.

        Args:
            blocks: Clients of each block.
            train_block: Training of one block.
            client_bytes: Upper bound on a client's state.
            together: Number of consecutive blocks that one process trains, in their order.

        Raises:
            RunError: A process has ended before its blocks were trained.
        """
        count = min(self._count, -(-len(blocks) // together))
        if count == 1 and not self._folder:
            return map(train_block, range(len(blocks)))
        keys = [tuple(participant.client for participant in block) for block in blocks]
        earlier = self._memories
        sizes = {key: len(key) * client_bytes + SPARE_BYTES for key in keys}
        self._memories = {key: earlier.get(key) or SharedMemory(size, self._folder) for key, size in sizes.items()}
        memories = [self._memories[key] for key in keys]
        if count == 1:
            return (_train_and_move(blocks, n, train_block, memories[n]) for n in range(len(blocks)))
        shares = [[n for n in range(len(blocks)) if n // together % count == k] for k in range(count)]
        works = [partial(_train_share, share, blocks, train_block, memories) for share in shares]
        names = [f"worker {k + 1} of {count}, with {len(share)} blocks" for k, share in enumerate(shares)]
        trained: dict[int, tuple[bytes, bytes]] = {}
        for share, pieces in zip(shares, run_in_copies(works, names), strict=True):
            trained |= zip(share, zip(pieces[::2], pieces[1::2], strict=True), strict=True)

        def take(number: int) -> TrainedBlock:
            block, state = trained.pop(number)
            adopt_state(blocks[number], TrainedState.from_bytes(state), memories[number])
            return TrainedBlock.from_bytes(block)

        return map(take, range(len(blocks)))


def _train_and_move(
    blocks: Sequence[Block], number: int, train_block: TrainBlock, memory: SharedMemory
) -> TrainedBlock:
    before = [p.store.load(p.run) for p in blocks[number]]
    trained = train_block(number)
    adopt_state(blocks[number], share_state(blocks[number], before, memory), memory)
    return trained


def _train_share(
    share: Sequence[int], blocks: Sequence[Block], train_block: TrainBlock, memories: Sequence[SharedMemory]
) -> Iterator[bytes]:
    for number in share:
        before = [p.store.load(p.run) for p in blocks[number]]
        yield train_block(number).to_bytes()
        yield share_state(blocks[number], before, memories[number]).to_bytes()
