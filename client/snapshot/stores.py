"""State of clients whose stores are in memory, to and from a snapshot."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from client.own_rows import own_rows_of
from client.snapshot.folder import ClientsState
from client.snapshot.shard import Shard
from client.stacked_tensors import Tensors, row, stack
from client.state import ClientMemory, MemoryStore, StackedRow

TOGETHER = 32
"""Number of clients with states of their own that a snapshot stacks."""


def dump_stores(stores: Sequence[MemoryStore], run: str) -> ClientsState:
    """Return the state of a run; states that are stacked are not copied."""
    shards = stack_memories([store.load(run) for store in stores])
    return ClientsState(shards, [store.documents(run) for store in stores])


def load_stores(state: ClientsState, stores: Sequence[MemoryStore], run: str) -> None:
    """Give the clients of a run the state that `dump_stores` returned."""
    for store, documents in zip(stores, state.documents, strict=True):
        for name, content in documents.items():
            store.write(run, name, content)
    for k, memory in memories_of(state.shards):
        stores[k].save(run, memory)


def stack_memories(memories: Sequence[ClientMemory]) -> list[Shard]:
    """Return the states of clients, of which those of equal form are stacked; inverse of `memories_of`.

    A client with a row and groups of its own is in two shards, first in that of the row.
    """
    stacked: dict[int, list[int]] = defaultdict(list)
    alike: dict[object, list[int]] = defaultdict(list)
    for k, memory in enumerate(memories):
        if isinstance(memory.groups, StackedRow):
            stacked[id(memory.groups.stacked)].append(k)
        if memory.round and (not isinstance(memory.groups, StackedRow) or memory.groups.alone):
            alike[_form(memory.groups)].append(k)
    shards = [_stacked_shard(memories, clients) for clients in stacked.values()]
    for clients in alike.values():
        shards += [_shard(memories, clients[i : i + TOGETHER]) for i in range(0, len(clients), TOGETHER)]
    return shards


def memories_of(shards: Sequence[Shard]) -> Iterator[tuple[int, ClientMemory]]:
    """Yield the number and the state of each client; a later state of a client replaces an earlier one."""
    rows: dict[int, StackedRow] = {}
    for shard in shards:
        count = len(shard.clients)
        for place, (k, last) in enumerate(zip(shard.clients, shard.rounds, strict=True)):
            single = {group: row(named, 0) for group, named in shard.groups.items()} if count == 1 else {}
            groups = StackedRow(shard.groups, place, count) if shard.groups and count > 1 else single
            if k in rows:
                groups = replace(rows[k], alone=groups)
            elif isinstance(groups, StackedRow):
                rows[k] = groups
            yield k, ClientMemory(last, groups)


def _stacked_shard(memories: Sequence[ClientMemory], clients: Sequence[int]) -> Shard:
    """Return clients with one stacked state, in the order of their rows."""
    rows = {k: groups for k in clients if isinstance(groups := memories[k].groups, StackedRow)}
    clients = sorted(clients, key=lambda k: rows[k].place)
    first = rows[clients[0]]
    if [rows[k].place for k in clients] == list(range(first.clients)):
        return Shard(tuple(clients), _rounds(memories, clients), first.stacked)
    if len(clients) > 1 and (own := own_rows_of(first.stacked)):
        kept = own.select(first.stacked, [rows[k].place for k in clients])
        return Shard(tuple(clients), _rounds(memories, clients), kept)
    return _shard(memories, clients)


def _shard(memories: Sequence[ClientMemory], clients: Sequence[int]) -> Shard:
    """Return clients with states of equal form."""
    stacked = {group: stack([memories[k].groups[group] for k in clients]) for group in memories[clients[0]].groups}
    return Shard(tuple(clients), _rounds(memories, clients), stacked)


def _rounds(memories: Sequence[ClientMemory], clients: Sequence[int]) -> tuple[int, ...]:
    return tuple(memories[k].round for k in clients)


def _form(groups: Mapping[str, Tensors]) -> object:
    """Return what clients must have in common to be stacked."""
    return tuple((group, name, t.shape, t.dtype) for group, own in groups.items() for name, t in own.items())
