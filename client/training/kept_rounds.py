"""Layers that never leave a client, kept after each evaluated round for the delivered model."""

from dataclasses import replace

from safetensors.torch import load, save

from client.state import ClientMemory, Store
from client.training.client_state import DELIVERED, HEAD


def keep_round(store: Store, run: str, number: int) -> None:
    """Store the client's own layers of an evaluated round, if it has any."""
    if head := store.load(run).groups.get(f"{HEAD}.after"):
        store.write(run, _document(number), save({name: t.contiguous() for name, t in head.items()}))


def return_to_round(store: Store, run: str, state: ClientMemory, number: int) -> ClientMemory:
    """Return the client's state with its own layers of a round as the delivered ones.

    The last round delivers those of the state itself, as does a round whose layers were not kept.
    """
    kept = store.read(run, _document(number)) if 0 < number < state.round else b""
    if kept:
        return replace(state, groups={**state.groups, DELIVERED: load(kept)})
    if DELIVERED in state.groups:
        return replace(state, groups={name: group for name, group in state.groups.items() if name != DELIVERED})
    return state


def _document(number: int) -> str:
    return f"round-{number}.safetensors"
