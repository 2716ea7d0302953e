"""Training of blocks of clients in several processes."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from client.training.participant import Participant
from deploy.copies import can_copy, run_in_copies
from deploy.shared_state import SharedMemory, TrainedState, adopt_state, share_state
from deploy.trained_block import TrainedBlock

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
        kept = self._memories
        sizes = {key: len(key) * client_bytes + SPARE_BYTES for key in keys}
        self._memories = {key: kept.get(key) or SharedMemory(size, self._folder) for key, size in sizes.items()}
        memories = [self._memories[key] for key in keys]
        if count == 1:
            return (_train_and_move(blocks, n, train_block, memories[n]) for n in range(len(blocks)))
        shares = [[n for n in range(len(blocks)) if n // together % count == k] for k in range(count)]
        works = [partial(_train_share, share, blocks, train_block, memories) for share in shares]
        names = [f"worker {k + 1} of {count}, with {len(share)} blocks" for k, share in enumerate(shares)]
        trained: dict[int, tuple[bytes, bytes]] = {}
        for share, parts in zip(shares, run_in_copies(works, names), strict=True):
            trained |= zip(share, zip(parts[::2], parts[1::2], strict=True), strict=True)

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
