"""Workers of a simulation: copies of its process that train blocks of clients in shared memory."""

import gc
import mmap
import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any, TypeVar

import torch

from client.state import ClientMemory, StackedRow
from client.training.participant import Participant
from client.training.stacks import Tensors
from common.arrays import Floats
from common.contribution import BlockReply, ClientBlock, Contribution
from common.errors import FedloomError, RunError
from common.system_calls import end_with_parent
from common.wire.messages import TrainReply

ResultT = TypeVar("ResultT")


def can_copy() -> bool:
    """Return True if this system can copy a process."""
    return "fork" in multiprocessing.get_all_start_methods()


def run_in_copies(
    work: Callable[[int], ResultT], size: int, copies: int, noun: str, together: int = 1
) -> Iterator[ResultT]:
    """Do the work for 0, …, size − 1 in copies of this process; return the results in their order.

    Args:
        work: Work for one number.
        size: Number of works.
        copies: Number of processes.
        noun: Noun of the works, for errors.
        together: Number of consecutive works that one process does, in their order.

    Raises:
        RunError: A copy has ended without a result; the others are ended as well.
    """
    shares = [[n for n in range(size) if n // together % copies == k] for k in range(copies)]
    results: dict[int, ResultT] = {}
    with ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile()) for _ in shares]
        _await_copies(
            [
                multiprocessing.get_context("fork").Process(
                    target=_work,
                    args=(work, share, output),
                    name=f"worker {k} of {copies}, with {len(share)} {noun}",
                    daemon=True,
                )
                for k, (share, output) in enumerate(zip(shares, outputs, strict=True), start=1)
            ]
        )
        for share, output in zip(shares, outputs, strict=True):
            output.seek(0)
            results |= {number: pickle.load(output) for number in share}
    return (results.pop(number) for number in range(size))


def _await_copies(copies: Sequence[Any]) -> None:
    """Start copies of this process, and wait for their ends."""
    for copy in copies:
        copy.start()
    running = {copy.sentinel: copy for copy in copies}
    try:
        while running:
            for sentinel in wait([*running]):
                copy = running.pop(sentinel)
                copy.join()
                if copy.exitcode:
                    ended = (
                        f"was ended by signal {-copy.exitcode}"
                        if copy.exitcode < 0
                        else "has failed; its error is above"
                    )
                    raise RunError(f"{copy.name}: the process {ended}; continue with --resume, or with --workers 1")
    finally:
        for copy in running.values():
            copy.kill()
            copy.join()


def _work(work: Callable[[int], object], numbers: Sequence[int], output: IO[bytes]) -> None:
    """Write the results; only the parent hears of an interrupt."""
    end_with_parent()
    gc.freeze()  # a collection would write to all objects, and so copy their pages
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    for number in numbers:
        pickle.dump(work(number), output, pickle.HIGHEST_PROTOCOL)
    output.flush()


_ALIGNED = 64

Layout = list[tuple[str, str, torch.dtype, torch.Size, int]]
"""Group, name, dtype, shape and offset in bytes of each tensor."""


class SharedMemory:
    """Memory of one block's stacked state; the system provides pages when they are first written.

    Args:
        size: Bytes.
        folder: Folder of a nameless file that holds it, which ends with the process; None for main memory.
    """

    def __init__(self, size: int, folder: Path | None = None) -> None:
        self._size, self._folder, self._written = size, folder, 0
        self._pages = _map_file(size, folder) if folder else _map_memory(size)

    def apart(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor that a `write` does not change: a copy of one that lies here."""
        start = self._pages.data_ptr()
        return tensor.clone() if start <= tensor.data_ptr() < start + self._size else tensor

    def write(self, groups: dict[str, Tensors]) -> Layout:
        """Write tensors; return a description with which `read` finds them.

        Raises:
            RunError: They do not fit, or the disk is full, where writing would end the process.
        """
        layout: Layout = []
        size = 0
        for group, tensors in groups.items():
            for name, tensor in tensors.items():
                layout.append((group, name, tensor.dtype, tensor.shape, size))
                size += -(-tensor.nbytes // _ALIGNED) * _ALIGNED
        if size > self._size:
            raise RunError(f"state of clients exceeds {self._size:,} bytes; continue with --workers 1")
        if self._folder and size - self._written > shutil.disk_usage(self._folder).free:
            raise RunError(f"the disk of {self._folder} is full; continue with --resume, without --state-on-disk")
        self._written = max(self._written, size)
        for group, tensors in self.read(layout).items():
            for name, view in tensors.items():
                view.copy_(groups[group][name])
        return layout

    def read(self, layout: Layout) -> dict[str, Tensors]:
        """Return the tensors, as views."""
        groups: dict[str, Tensors] = {}
        for group, name, dtype, shape, start in layout:
            content = self._pages[start : start + shape.numel() * dtype.itemsize]
            groups.setdefault(group, {})[name] = content.view(dtype).view(shape)
        return groups


def _map_memory(size: int) -> torch.Tensor:
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return torch.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=torch.uint8)


def _map_file(size: int, folder: Path) -> torch.Tensor:
    with tempfile.NamedTemporaryFile(dir=folder) as file:  # only its name goes; the pages stay while they are used
        return torch.from_file(file.name, shared=True, size=size, dtype=torch.uint8)


@dataclass(frozen=True)
class TrainedState:
    """State of a block's clients after a round, without that in shared memory.

    Args:
        layout: Description of the stacked state.
        clients: Number of clients in it.
        rows: Client -> round and row of the stack; -1: only its groups in `single` hold.
        single: Client -> its own groups; of those that may be left out, beside their row.
    """

    layout: Layout
    clients: int
    rows: dict[int, tuple[int, int]]
    single: dict[int, dict[str, Tensors]]


def share_state(
    participants: Sequence[Participant], before: Sequence[ClientMemory], memory: SharedMemory
) -> TrainedState:
    """Write the state that clients have after training into shared memory.

    Clients that did not train, whose earlier state the memory may have held, keep it as a copy.
    """
    after = [p.store.load(p.run) for p in participants]
    changed = [new is not old for new, old in zip(after, before, strict=True)]
    stacks = [m.groups for m, is_new in zip(after, changed, strict=True) if is_new and isinstance(m.groups, StackedRow)]
    rows: dict[int, tuple[int, int]] = {}
    single: dict[int, dict[str, Tensors]] = {}
    for k, (one, is_new) in enumerate(zip(after, changed, strict=True)):
        row = one.groups if is_new and isinstance(one.groups, StackedRow) else None
        if is_new or one.round:
            rows[k] = one.round, -1 if row is None else row.place
        if row is None or row.alone:
            single[k] = {group: {n: t.clone() for n, t in named.items()} for group, named in one.groups.items()}
    stacked = stacks[0].stacked if stacks else {}
    layout = memory.write({g: {n: memory.apart(t) for n, t in named.items()} for g, named in stacked.items()})
    return TrainedState(layout, stacks[0].clients if stacks else 0, rows, single)


def adopt_state(participants: Sequence[Participant], state: TrainedState, memory: SharedMemory) -> None:
    """Give the clients the state that a copy of this process has trained."""
    stacked = memory.read(state.layout)
    for k, (number, row) in state.rows.items():
        alone = state.single.get(k, {})
        groups = StackedRow(stacked, row, state.clients, alone) if row >= 0 else alone
        participants[k].store.save(participants[k].run, ClientMemory(number, groups))


@dataclass(frozen=True)
class TrainedBlock:
    """Replies of a block.

    Args:
        replies: Reply or error of each client.
        sizes: Bytes of the arrays that each reply would have in a message.
        lengths: Kind -> length of each client's reply, (K,).
        sums: Sum of the replies, or of those of all blocks that share a sum with this last one; else empty.
    """

    replies: Sequence[TrainReply | FedloomError]
    sizes: list[int]
    lengths: dict[str, Floats]
    sums: Contribution = field(default_factory=Contribution)


def share_sum(blocks: Sequence[TrainedBlock]) -> list[TrainedBlock]:
    """Return consecutive blocks whose replies are in the sum of the last one."""
    sums = blocks[-1].sums
    replies = [reply for block in blocks for reply in block.replies if isinstance(reply, BlockReply)]
    members = [*dict.fromkeys(reply.block for reply in replies)]
    if not members:
        return [*blocks]
    shared = ClientBlock(members[0].number, tuple(client for member in members for client in member.clients), sums)
    return [replace(block, replies=put_into(shared, block.replies), sums=sums) for block in blocks]


def put_into(block: ClientBlock, replies: Sequence[TrainReply | FedloomError]) -> list[TrainReply | FedloomError]:
    """Return the replies, with that block for those without arrays of their own."""
    return [replace(reply, block=block) if isinstance(reply, BlockReply) else reply for reply in replies]


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
    ) -> Iterator[TrainedBlock]:
        """Return the trained blocks in their order; with a block, the state of its clients is stored.

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
        train, size = partial(_train_and_share, blocks, train_block, memories), len(blocks)
        trained = run_in_copies(train, size, count, "blocks", together) if count > 1 else map(train, range(size))

        def adopt(number: int, trained: tuple[TrainedBlock, TrainedState]) -> TrainedBlock:
            block, state = trained
            adopt_state(blocks[number], state, memories[number])
            return block

        return map(adopt, range(size), trained)


def _train_and_share(
    blocks: Sequence[Block], train_block: TrainBlock, memories: Sequence[SharedMemory], number: int
) -> tuple[TrainedBlock, TrainedState]:
    before = [p.store.load(p.run) for p in blocks[number]]
    trained = train_block(number)
    return trained, share_state(blocks[number], before, memories[number])
