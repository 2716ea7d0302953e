"""States of a cohort's clients: optimizer moments, private head, personalized model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch
from safetensors.torch import load, save

from client.state import ClientMemory, StackedRow, Store
from client.trainers.base import Cohort, CohortResult, Trainer
from client.training.descent import find_own_rows
from client.training.participant import Participant, build_generator
from client.training.stacks import TOUCHED, OwnRows, Tensors, are_finite, at, own_rows_of, row, select, stack
from client.training.steps import Moments, build_step, descend, initialize_moments, plain_gradient
from common.methods.base import MethodOptions
from common.models import tensors
from common.wire.messages import LOCAL, TrainRequest

HEAD, PERSONALIZED, DELIVERED = "head", "own", "delivered"
"""Groups of client state: private head, personalized model, and the head of a delivered earlier round."""


MOMENTS = ("first", "second", "count")
"""Groups of the moments of the optimizer."""

MOST_SOURCES = 2
"""Number of former cohorts from which on each client's state is copied.

A stacked state stays in memory until all of its clients have left it, as after one of them failed.
"""


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


def _has_persistent_moments(options: MethodOptions) -> bool:
    return options.optimizer == "adam" and options.moments == "persist"


def _to_groups(moments: Moments) -> dict[str, Tensors]:
    return dict(zip(MOMENTS, (moments.first, moments.second, {"count": moments.count}), strict=True))


def _to_moments(groups: Mapping[str, Tensors]) -> Moments:
    return Moments(groups["count"]["count"], groups["first"], groups["second"])


def count_sources(memories: Sequence[ClientMemory]) -> int:
    """Return the number of stacked or single states that the memories belong to."""
    groups = [memory.groups for memory in memories]
    return len({id(g.stacked) if isinstance(g, StackedRow) else id(g) if g else 0 for g in groups})


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


def _find_together(
    memories: Sequence[ClientMemory], requests: Sequence[TrainRequest], touched: OwnRows | None
) -> tuple[ClientMemory | None, OwnRows | None]:
    """Return the stacked state of these clients in order, and the rows by which its tables are short.

    `touched` are the rows that the clients touch, if their tables may be short; a stored state may have further ones.
    """
    if len({_key(request) for request in requests}) != 1:
        return None, None
    if touched and not any(memory.groups for memory in memories):
        return ClientMemory(), touched
    last = memories[0].round
    rows = [memory.groups for memory in memories if isinstance(memory.groups, StackedRow) and memory.round == last]
    is_one = len(rows) == len(memories) and all(row.stacked is rows[0].stacked for row in rows)
    if not is_one or not all(_has_row(memory, request) for memory, request in zip(memories, requests, strict=True)):
        return None, None
    found, places = ClientMemory(last, rows[0].stacked), [row.index for row in rows]
    stored = own_rows_of(found.groups)
    if stored is None:
        return (found if places == [*range(rows[0].clients)] else None), None
    if touched is None:
        return None, None
    if places != [*range(len(stored.ids))]:
        found = replace(found, groups=stored.select(found.groups, places))
        stored = replace(stored, ids=stored.ids[places])
    is_same = touched.tables == stored.tables and touched.ids.equal(stored.ids[:, : touched.ids.shape[1]])
    return (found, stored) if is_same else (None, None)


def build_cohort(
    trainer: Trainer, participants: Sequence[Participant], private: Collection[str], *, with_all: bool = False
) -> Cohort:
    """Load the client states and stack the initial parameters.

    Tables are short if the method treats all numbers alike, and the clients have had all rounds in common. With `with_all`,
    every client with a state is in this round, so that no former stack outlives it.
    """
    options, clients, persists = trainer.options, len(participants), _has_persistent_moments(trainer.options)
    memories, requests = [p.store.load(p.run) for p in participants], [p.request for p in participants]
    is_alike = trainer.acts_on_numbers and options.clip_norm == 0 and options.capabilities().own_model == "none"
    touched = find_own_rows(participants) if with_all and is_alike and not private else None
    together, short = _find_together(memories, requests, touched)
    stays = clients > 1 and (with_all or count_sources(memories) <= MOST_SOURCES)
    if together is not None:
        request, shorten = requests[0], short.shorten if short else dict
        head, stacked = load_group(together, request, HEAD), load_group(together, request, PERSONALIZED)
        start = _repeat(shorten(tensors(request.model)), clients, short.tables if short else ()) | head
        control = settle(trainer, together, request, shorten(tensors(request.shared)))
        stored = {group: load_group(together, request, group) for group in MOMENTS}
        is_stored = persists and bool(stored["count"])
        moments = _to_moments(stored) if is_stored else initialize_moments(options, start, clients)
        heads, personalized = [at(head, k) for k in range(clients)], [at(stacked, k) for k in range(clients)]
        return Cohort(participants, start, moments, control, personalized, heads, private, stays, short)
    pairs = list(zip(memories, requests, strict=True))
    heads, personalized = ([load_group(*pair, group) for pair in pairs] for group in (HEAD, PERSONALIZED))
    start = _stack_models(requests, heads)
    shared = {id(request.shared): tensors(request.shared) for request in requests}
    controls = [settle(trainer, memory, request, shared[id(request.shared)]) for memory, request in pairs]
    moments = initialize_moments(options, start, clients)
    rows = [{group: load_group(*pair, group) for group in MOMENTS} for pair in pairs]
    if persists and any(stored["count"] for stored in rows):
        initial = _to_groups(moments)
        full = [s if s["count"] else {g: row(initial[g], k) for g in MOMENTS} for k, s in enumerate(rows)]
        moments = _to_moments({group: stack([stored[group] for stored in full]) for group in MOMENTS})
    return Cohort(participants, start, moments, _stack_or_zeros(controls, start), personalized, heads, private, stays)


def save_states(
    trainer: Trainer,
    cohort: Cohort,
    result: CohortResult,
    method: dict[str, Tensors],
    counted: Sequence[int],
    is_usable: Sequence[bool],
    *,
    newest: bool = False,
    doubtful: Collection[int] = (),
) -> None:
    """Store the states of the counted participants: rows of one stack, or each by itself.

    Args:
        trainer: Trainer of the method.
        cohort: The cohort.
        result: Result of its training.
        method: Groups of the method's state, K × ….
        counted: Numbers of the participants whose update is finite.
        is_usable: True for each participant whose personalized model is finite.
        newest: True if no round is repeated: the moments have one version, and the method's groups its merged form.
        doubtful: Those of them whose reply the server may leave out; if it matters, they keep every group of the method.
    """
    before, after = _to_groups(cohort.moments), _to_groups(result.descent.moments)
    moments = (
        after if newest else {g: t for key in MOMENTS for g, t in save_group(key, before[key], after[key]).items()}
    )
    groups = moments if _has_persistent_moments(trainer.options) else {}
    heads = select(cohort.start, cohort.private) if any(cohort.heads) else {}
    groups |= save_group(HEAD, heads, select(result.descent.params, cohort.private))
    is_first = not any(cohort.personalized)
    earlier = {} if is_first else stack([model or row(cohort.start, k) for k, model in enumerate(cohort.personalized)])
    groups |= save_group(PERSONALIZED, earlier, result.personalized)
    merged = trainer.merge_state(method) if newest else method
    doubtful = () if merged is method else doubtful

    def groups_of(k: int) -> dict[str, Tensors]:
        whole = groups | (method if k in doubtful else merged)
        states = {g: cohort.own_rows.at(t, k) if cohort.own_rows else row(t, k) for g, t in whole.items() if t}
        if not is_usable[k]:
            states[f"{PERSONALIZED}.after"] = cohort.personalized[k]
        had = {f"{HEAD}.before": cohort.heads[k], f"{PERSONALIZED}.before": cohort.personalized[k]}
        return {g: t for g, t in states.items() if t and had.get(g, t)}

    versions = (cohort.heads, cohort.personalized)
    is_uniform = all(is_usable[k] for k in counted) and (newest or all(len({*map(bool, g)}) == 1 for g in versions))
    if cohort.stays_stacked and is_uniform:
        _save_rows(cohort, groups | merged, counted, {k: groups_of(k) for k in doubtful})
        return
    for k in counted:
        _save(cohort.participants[k], groups_of(k))


def _save_rows(
    cohort: Cohort, groups: dict[str, Tensors], counted: Sequence[int], alone: Mapping[int, dict[str, Tensors]]
) -> None:
    """Store stacked groups, in which these participants have rows; some also have groups of their own."""
    stacked, rows = {g: t for g, t in groups.items() if t}, {k: number for number, k in enumerate(counted)}
    if cohort.own_rows and stacked:
        stacked[TOUCHED], rows = cohort.own_rows.group, {k: k for k in counted}
    elif len(counted) < len(cohort.participants):
        index = torch.tensor(counted, dtype=torch.int64)
        stacked = {g: {n: t[index] for n, t in named.items()} for g, named in stacked.items()}
    clients = len(cohort.participants) if cohort.own_rows else len(counted)
    for k, number in rows.items():
        _save(cohort.participants[k], StackedRow(stacked, number, clients, alone.get(k, {})) if stacked else {})


def _save(participant: Participant, groups: Mapping[str, Tensors]) -> None:
    participant.store.save(participant.run, ClientMemory(participant.request.round, groups))


def _stack_models(requests: Sequence[TrainRequest], heads: Sequence[Tensors]) -> Tensors:
    """Return each participant's first parameters, K × …."""
    first = requests[0].model
    if any(heads) or any(request.model is not first for request in requests):
        return stack([tensors(r.model) | head for r, head in zip(requests, heads, strict=True)])
    return _repeat(tensors(first), len(requests))


def _repeat(model: Tensors, clients: int, short: Collection[str] = ()) -> Tensors:
    """Return the model K times, K × …, but for short tables, which have all clients already."""
    return {n: t if n in short else t.expand(clients, *t.shape).contiguous() for n, t in model.items()}


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
    stored = store.read(run, _document(number)) if 0 < number < state.round else b""
    if stored:
        return replace(state, groups={**state.groups, DELIVERED: load(stored)})
    if DELIVERED in state.groups:
        return replace(state, groups={name: group for name, group in state.groups.items() if name != DELIVERED})
    return state


def _document(number: int) -> str:
    return f"round-{number}.safetensors"


def adapt_model(participant: Participant, options: MethodOptions, lr: float) -> ClientMemory:
    """Return the client state with a model adapted by the participant's steps w ← w − lr·∇L_k(w).

    The steps start from the shared model. A diverged model is left out; the shared model is used instead. The method's
    optimizer is not used.
    """
    state, learner, request = participant.store.load(participant.run), participant.learner, participant.request
    start = stack([tensors(request.model) | state.groups.get(f"{HEAD}.after", {})])
    descent_options = options.model_copy(update={"optimizer": "sgd", "lr": lr, "lr_predictor": 0.0})
    descent = descend(
        plain_gradient(learner),
        start,
        batch=stack([learner.batch(request)]),
        inputs=stack([learner.step_inputs(participant.steps, build_generator(participant))]),
        steps=participant.steps,
        step=build_step(descent_options),
        moments=initialize_moments(descent_options, start),
        clip_norm=descent_options.clip_norm,
    )
    groups = {name: group for name, group in state.groups.items() if not name.startswith(PERSONALIZED)}
    adapted = {f"{PERSONALIZED}.after": row(descent.params, 0)} if are_finite(descent.params)[0] else {}
    return replace(state, groups={**groups, **adapted})
