"""Client states of a cohort: stacked where its clients trained together before, else one by one."""

from collections.abc import Mapping, Sequence

import torch

from client.own_rows import TOUCHED
from client.stacked_tensors import Tensors, at, row, select, stack
from client.state import ClientMemory, StackedRow
from client.trainers.spec import Cohort, CohortResult, Trainer
from client.training.client_state import (
    HEAD,
    PERSONALIZED,
    load_group,
    load_moments,
    save_group,
    save_moments,
    save_newest_moments,
    stacked_moments,
)
from client.training.participant import Participant
from client.training.stored_stacks import count_sources, find_stacked, is_counted
from common.methods.spec import MethodOptions
from common.models import tensors
from common.wire.messages import TrainRequest

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
