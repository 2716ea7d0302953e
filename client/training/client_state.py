"""Load and store client state: optimizer moments, private head, personalized model.

Each is stored as it was before and after the last round, so that a repeated round starts from the same state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from client.privacy.transforms import Released
from client.stacked_tensors import Tensors, row, stack
from client.state import ClientMemory
from client.trainers.optimizers import Moments, initialize_moments
from client.trainers.spec import Trainer
from client.training.participant import Participant
from common.arrays import Array, Arrays, add_prefix, group
from common.methods.spec import MethodOptions
from common.wire.encodings import unpack
from common.wire.messages import LOCAL, TrainRequest
from common.wire.sparse_rows import expand

HEAD, PERSONALIZED, DELIVERED = "head", "own", "delivered"
"""Groups of client state: private head, personalized model, and the head of a delivered earlier round."""


@dataclass(frozen=True)
class KeepReleased:
    """Encode step: store the released values in the client state, if the method needs them."""

    trainer: Trainer
    participant: Participant

    def __call__(self, released: Released) -> Released:
        """Store the values of this round; return them unchanged."""
        participant, arrays = self.participant, released.own or released.arrays
        update, gradient = group("update", arrays), group("gradient", arrays)
        groups = self.trainer.released_state(update, gradient, participant.steps)
        if groups and (state := participant.store.load(participant.run)).round == participant.request.round:
            merged = {key: {**state.groups.get(key, {}), **tensors} for key, tensors in groups.items()}
            participant.store.save(participant.run, replace(state, groups={**state.groups, **merged}))
        return released


@dataclass(frozen=True)
class KeepReceived:
    """Encode step: store rounded values as the server reads them, if the method needs them.

    Args:
        keep: Step that stores them.
        encoding: Form of their numbers.
    """

    keep: KeepReleased
    encoding: str

    def __call__(self, released: Released) -> Released:
        """Store the values of this round; return them unchanged."""
        request = self.keep.participant.request
        if request.phase == LOCAL:
            self.keep(replace(released, arrays=receive(released, self.encoding, request.model)))
        return released


def receive(released: Released, encoding: str, model: Mapping[str, Array]) -> Arrays:
    """Return released values as the server reads them."""
    received: Arrays = {}
    for kind in ("update", "gradient"):
        arrays = unpack(group(kind, released.arrays), encoding, kind)
        received |= add_prefix(kind, expand(arrays, model, kind))
    return received


def load_group(state: ClientMemory, request: TrainRequest, group: str) -> Tensors:
    """Return a group at the start of this request; empty before the first round.

    A group that is stored in one version is that after the last round, also if a round is repeated.
    """
    if group in state.groups:
        return state.groups[group]
    is_repeated = state.round == request.round and request.phase == LOCAL
    return state.groups.get(f"{group}.{'before' if is_repeated else 'after'}", {})


def save_group(group: str, before: Tensors, after: Tensors) -> dict[str, Tensors]:
    """Return a group to store; empty if the state after the round is empty."""
    return {f"{group}.before": before, f"{group}.after": after} if after else {}


def load_moments(options: MethodOptions, pairs: Sequence[tuple[ClientMemory, TrainRequest]], start: Tensors) -> Moments:
    """Return the stacked moments at the start of the requests; initial ones if none are stored.

    Args:
        options: Options of the method.
        pairs: Client state and request of each participant.
        start: Initial parameters, K × ….
    """
    initial = initialize_moments(options, start)
    if not _has_persistent_moments(options) or not any(state.round for state, _ in pairs):
        return initial
    rows = []
    for k, (state, request) in enumerate(pairs):
        stored = {group: load_group(state, request, group) for group in ("first", "second", "count")}
        rows.append(stored if stored["count"] else _moment_groups(initial, k))
    first, second = stack([r["first"] for r in rows]), stack([r["second"] for r in rows])
    return Moments(torch.stack([r["count"]["count"] for r in rows]), first, second)


def stacked_moments(
    options: MethodOptions, state: ClientMemory, request: TrainRequest, start: Tensors, clients: int
) -> Moments:
    """Return the moments of a stacked state at the start of a request; initial ones if none are stored."""
    stored = [load_group(state, request, group) for group in ("count", "first", "second")]
    if not _has_persistent_moments(options) or not stored[0]:
        return initialize_moments(options, start, clients)
    return Moments(stored[0]["count"], stored[1], stored[2])


def save_moments(options: MethodOptions, before: Moments, after: Moments, k: int | None = None) -> dict[str, Tensors]:
    """Return the moments to store, of client k or stacked; empty if the method keeps none."""
    if not _has_persistent_moments(options):
        return {}
    old, new = _moment_groups(before, k), _moment_groups(after, k)
    return {name: group for key in old for name, group in save_group(key, old[key], new[key]).items()}


def save_newest_moments(options: MethodOptions, moments: Moments) -> dict[str, Tensors]:
    """Return the stacked moments to store in one version; empty if the method keeps none."""
    return _moment_groups(moments, None) if _has_persistent_moments(options) else {}


def _moment_groups(moments: Moments, k: int | None) -> dict[str, Tensors]:
    if k is None:
        return {"first": moments.first, "second": moments.second, "count": {"count": moments.count}}
    count = {"count": moments.count[k].clone()}
    return {"first": row(moments.first, k), "second": row(moments.second, k), "count": count}


def _has_persistent_moments(options: MethodOptions) -> bool:
    return options.optimizer == "adam" and options.moments == "persist"
