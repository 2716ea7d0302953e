"""States of a cohort's clients: optimizer moments, private head, personalized model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from safetensors.torch import load, save

from client.privacy.transforms import Released
from client.state import ClientMemory, StackedRow, Store
from client.trainers.base import Cohort, CohortResult, Trainer
from client.training.participant import Participant
from client.training.stacks import TOUCHED, Tensors, at, row, select, stack
from client.training.steps import Moments, initialize_moments
from common.arrays import Array, Arrays, add_prefix, group
from common.methods.base import MethodOptions
from common.models import tensors
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


MOST_SOURCES = 2
"""Number of former cohorts from which on each client's state is copied.

A stacked state stays in memory until all of its clients have left it, as after one of them failed.
"""


def build_cohort(
    trainer: Trainer, participants: Sequence[Participant], private: frozenset[str], *, with_all: bool = False
) -> Cohort:
    """Load the client states and stack the initial parameters.

    `with_all`: every client with a state is in this round, so that no former stack outlives it.
    """
    memories, requests = [p.store.load(p.run) for p in participants], [p.request for p in participants]
    stays = len(participants) > 1 and (with_all or count_sources(memories) <= MOST_SOURCES)
    together = find_stacked(memories, requests)
    if together is not None and TOUCHED not in together.groups:
        request, clients = requests[0], range(len(participants))
        head, own = load_group(together, request, HEAD), load_group(together, request, PERSONALIZED)
        start = {**_stack_models(requests), **head}
        control = settle(trainer, together, request, tensors(request.shared))
        moments = stacked_moments(trainer.options, together, request, start, len(participants))
        heads, personalized = [at(head, k) for k in clients], [at(own, k) for k in clients]
        return Cohort(participants, start, moments, control, personalized, heads, private, stays)
    pairs = list(zip(memories, requests, strict=True))
    heads = [load_group(state, request, HEAD) for state, request in pairs]
    start = _stack_models(requests, heads)
    shared = {id(request.shared): tensors(request.shared) for request in requests}
    settled = [settle(trainer, state, request, shared[id(request.shared)]) for state, request in pairs]
    control = _stack_or_zeros(settled, start)
    personalized = [load_group(state, request, PERSONALIZED) for state, request in pairs]
    moments = load_moments(trainer.options, pairs, start)
    return Cohort(participants, start, moments, control, personalized, heads, private, stays)


def save_states(
    options: MethodOptions,
    cohort: Cohort,
    result: CohortResult,
    method: dict[str, Tensors],
    counted: Sequence[int],
    is_usable: Sequence[bool],
) -> None:
    """Store the states of the counted participants.

    Args:
        options: Options of the method.
        cohort: The cohort.
        result: Result of its training.
        method: Groups of the method's state, K × ….
        counted: Numbers of the participants whose update is finite.
        is_usable: True for each participant whose personalized model is finite.
    """
    rounds = {participant.request.round for participant in cohort.participants}
    uniform = all(len({*map(bool, groups)}) == 1 for groups in (cohort.heads, cohort.personalized))
    if cohort.stays_stacked and uniform and len(rounds) == 1 and all(is_usable[k] for k in counted):
        _save_stacked(options, cohort, result, method, counted)
        return
    for k in counted:
        head, before = select(row(result.descent.params, k), cohort.private), cohort.personalized[k]
        own = {group: row(tensors, k) for group, tensors in method.items()}
        own |= save_moments(options, cohort.moments, result.descent.moments, k)
        after = row(result.personalized, k) if is_usable[k] else before
        _save_alone(cohort, k, own | _model_groups((cohort.heads[k], head), (before, after)))


def save_newest(
    trainer: Trainer,
    cohort: Cohort,
    result: CohortResult,
    method: dict[str, Tensors],
    counted: Sequence[int],
    alone: Sequence[int],
) -> None:
    """Store the states of counted participants stacked, with one version of the moments.

    Args:
        trainer: Trainer of the method.
        cohort: The cohort.
        result: Result of its training.
        method: Groups of the method's state, K × ….
        counted: Numbers of the participants whose update is finite.
        alone: Those of them whose reply the server may leave out; if it matters, they also keep every group of the method.
    """
    models, trained = cohort.personalized, result.personalized
    earlier = stack([model or row(cohort.start, k) for k, model in enumerate(models)]) if any(models) else {}
    heads = select(cohort.start, cohort.private), select(result.descent.params, cohort.private)
    groups = save_newest_moments(trainer.options, result.descent.moments) | _model_groups(heads, (earlier, trained))
    newest, own = trainer.merge_state(method), cohort.own
    merged, every = groups | newest, groups | method
    alone = () if newest is method else alone

    def groups_of(k: int) -> dict[str, Tensors]:
        kept = every if k in alone else merged
        return {g: own.at(t, k) if own else row(t, k) for g, t in kept.items() if t}

    if cohort.stays_stacked:
        _save_rows(cohort, merged, counted, {k: groups_of(k) for k in alone})
        return
    for k in counted:
        _save_alone(cohort, k, groups_of(k))


def _save_stacked(
    options: MethodOptions, cohort: Cohort, result: CohortResult, method: dict[str, Tensors], counted: Sequence[int]
) -> None:
    heads = select(cohort.start, cohort.private) if cohort.heads[0] else {}
    personalized = stack(cohort.personalized) if cohort.personalized[0] else {}
    after = select(result.descent.params, cohort.private)
    groups = method | save_moments(options, cohort.moments, result.descent.moments)
    _save_rows(cohort, groups | _model_groups((heads, after), (personalized, result.personalized)), counted, {})


def _model_groups(heads: tuple[Tensors, Tensors], personalized: tuple[Tensors, Tensors]) -> dict[str, Tensors]:
    """Return the groups of private head and personalized model, each before and after the round."""
    return save_group(HEAD, *heads) | save_group(PERSONALIZED, *personalized)


def _save_alone(cohort: Cohort, k: int, groups: dict[str, Tensors]) -> None:
    """Store the state of participant k by itself."""
    _save(cohort.participants[k], {g: t for g, t in groups.items() if t})


def _save_rows(
    cohort: Cohort,
    groups: dict[str, Tensors],
    counted: Sequence[int],
    alone: Mapping[int, dict[str, Tensors]],
) -> None:
    """Store stacked groups, in which these participants have rows; some also have groups of their own."""
    kept = {g: t for g, t in groups.items() if t}
    if cohort.own and kept:
        kept[TOUCHED] = cohort.own.group
        for k in counted:
            _save(cohort.participants[k], StackedRow(kept, k, len(cohort.participants), alone.get(k, {})))
        return
    if len(counted) < len(cohort.participants):
        index = torch.tensor(counted, dtype=torch.int64)
        kept = {g: {n: t[index] for n, t in named.items()} for g, named in kept.items()}
    for place, k in enumerate(counted):
        _save(cohort.participants[k], StackedRow(kept, place, len(counted), alone.get(k, {})) if kept else {})


def _save(participant: Participant, groups: dict[str, Tensors] | StackedRow) -> None:
    participant.store.save(participant.run, ClientMemory(participant.request.round, groups))


def _stack_models(requests: Sequence[TrainRequest], heads: Sequence[Tensors] = ()) -> Tensors:
    """Return each participant's first parameters, K × …."""
    first = requests[0].model
    if any(heads) or any(request.model is not first for request in requests):
        return stack([tensors(r.model) | head for r, head in zip(requests, heads, strict=True)])
    return {n: t.expand(len(requests), *t.shape).contiguous() for n, t in tensors(first).items()}


def settle(trainer: Trainer, state: ClientMemory, request: TrainRequest, shared: Tensors) -> Tensors:
    """Return the control variate at the start of a request."""
    return trainer.settle(state.groups, is_counted(state, request), shared)


def _stack_or_zeros(controls: Sequence[Tensors], start: Tensors) -> Tensors:
    """Stack the control variates, zeros for participants without one; empty if none has one."""
    if not any(controls):
        return {}
    zeros = {n: torch.zeros_like(p[0]) for n, p in start.items()}
    return stack([c or zeros for c in controls])


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
