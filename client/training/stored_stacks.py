"""Stacked states in which clients were stored, found from their memories."""

from collections.abc import Sequence

from client.own_rows import TOUCHED
from client.state import ClientMemory, StackedRow
from common.wire.messages import TrainRequest


def count_sources(memories: Sequence[ClientMemory]) -> int:
    """Return the number of stacked or single states that the memories belong to."""
    groups = [memory.groups for memory in memories]
    return len({id(g.stacked) if isinstance(g, StackedRow) else id(g) if g else 0 for g in groups})


def find_stacked(memories: Sequence[ClientMemory], requests: Sequence[TrainRequest]) -> ClientMemory | None:
    """Return the stacked state if it is that of these clients, in this order and for one request."""
    found, places = find_rows(memories, requests)
    first = memories[0].groups
    return found if isinstance(first, StackedRow) and places == [*range(first.clients)] else None


def find_rows(
    memories: Sequence[ClientMemory], requests: Sequence[TrainRequest]
) -> tuple[ClientMemory | None, list[int]]:
    """Return the stacked state in which all these clients have rows for one request, and their places.

    Return None if there is none.
    """
    last, request = memories[0].round, requests[0]
    rows = [memory.groups for memory in memories if isinstance(memory.groups, StackedRow) and memory.round == last]
    is_one = len(rows) == len(memories) and all(row.stacked is rows[0].stacked for row in rows)
    if not is_one or not is_one_request(requests) or not all(_has_row(memory, request) for memory in memories):
        return None, []
    return ClientMemory(last, rows[0].stacked), [row.place for row in rows]


def split_histories(
    memories: Sequence[ClientMemory], requests: Sequence[TrainRequest]
) -> tuple[list[list[int]], list[int]]:
    """Return the clients of each stack with short tables that stay together, and all others.

    A client whose reply was left out has a history of its own. It leaves the stack.
    """
    stacks: dict[int, dict[object, list[int]]] = {}
    for k, (memory, request) in enumerate(zip(memories, requests, strict=True)):
        if isinstance(memory.groups, StackedRow) and TOUCHED in memory.groups.stacked and _has_row(memory, request):
            histories = stacks.setdefault(id(memory.groups.stacked), {})
            histories.setdefault((memory.round, _key(request)), []).append(k)
    largest = [max(histories.values(), key=len) for histories in stacks.values()]
    together = [clients for clients in largest if len(clients) > 1]
    return together, sorted({*range(len(memories))} - {k for clients in together for k in clients})


def is_counted(memory: ClientMemory, request: TrainRequest) -> bool:
    """Return True if the server aggregated the client's last round, which a replayed one is not yet."""
    return 0 < memory.round == request.shared_round


def _has_row(memory: ClientMemory, request: TrainRequest) -> bool:
    """Return True if a client's row of a stack holds its state at the start of a request."""
    groups = memory.groups
    return isinstance(groups, StackedRow) and (not groups.alone or is_counted(memory, request))


def _key(request: TrainRequest) -> tuple[int, int, int, int, str]:
    return id(request.model), id(request.shared), request.round, request.shared_round, request.phase


def is_one_request(requests: Sequence[TrainRequest]) -> bool:
    """Return True if all clients get the same request."""
    return len({_key(request) for request in requests}) == 1
