"""Stacked states in which clients were stored, found from their memories."""

from collections.abc import Sequence

from client.state import ClientMemory, StackedRow
from common.wire.messages import TrainRequest


def count_sources(memories: Sequence[ClientMemory]) -> int:
    """Return the number of stacked or single states that the memories belong to."""
    groups = [memory.groups for memory in memories]
    return len({id(g.stacked) if isinstance(g, StackedRow) else id(g) if g else 0 for g in groups})


def find_stacked(memories: Sequence[ClientMemory], requests: Sequence[TrainRequest]) -> ClientMemory | None:
    """Return the stacked state if it is that of these clients, in this order and for one request."""
    first = memories[0].groups
    if not isinstance(first, StackedRow) or first.clients != len(memories):
        return None
    rows = [memory.groups for memory in memories]
    fits = all(isinstance(r, StackedRow) and r.stacked is first.stacked and r.place == k for k, r in enumerate(rows))
    after_one = all(memory.round == memories[0].round for memory in memories)
    return ClientMemory(memories[0].round, first.stacked) if fits and after_one and is_one_request(requests) else None


def is_one_request(requests: Sequence[TrainRequest]) -> bool:
    """Return True if all clients get the same request."""
    return len({(id(r.model), id(r.shared), r.round, r.shared_round, r.phase) for r in requests}) == 1
