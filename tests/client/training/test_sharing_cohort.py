"""Clients that share the rows that they do not touch, against clients with whole tables."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from client.state import MemoryStore, StackedRow
from client.training import state as cohort
from client.training.local_round import TrainedCohort, train_together
from client.training.participant import Participant
from client.training.snapshot import dump_stores, load_stores
from client.training.stacks import TOUCHED
from common.arrays import Arrays
from common.config.run import RunConfig
from common.contribution import BlockReply
from common.errors import FedloomError
from common.models import parameters
from common.wire.messages import TrainReply, TrainRequest
from tests.client.training.test_gradient_descent import WIDE
from tests.support.build import learner_of, task_model
from tests.support.toys import CATALOGUE, configured, toy_homes

CLIENTS = 16
"""Number of clients that leaves no numbers after the last whole vector, in whole tables either."""

EVERYONE = tuple(range(CLIENTS))

Replies = list[TrainReply | FedloomError]


def members(config: RunConfig) -> list[Participant]:
    request = TrainRequest(1, "toy:0", parameters(task_model(config, WIDE)))
    learners = [learner_of(config, WIDE, [home]) for home in toy_homes(CLIENTS)]
    steps = config.method_options.local_steps
    return [Participant(f"c{k:02}", "toy", 0, own, MemoryStore(), request, steps) for k, own in enumerate(learners)]


def train_round(
    config: RunConfig,
    clients: Sequence[Participant],
    number: int,
    chosen: Sequence[int] = EVERYONE,
    alone: Sequence[int] = (),
    last: int = -1,
    *,
    with_all: bool = False,
) -> tuple[TrainedCohort, Replies]:
    """Train the chosen clients in a round after others; the model and d̄ change from round to round."""
    first = clients[0].request.model
    model = {n: (a * (1 + number / 8)).astype(np.float32) for n, a in first.items()}
    shared = {n: 0.01 * a for n, a in first.items()} if number > 1 else {}
    request = TrainRequest(number, "toy:0", model, shared, number - 1 if last < 0 else last)
    asked = [replace(clients[k], request=request) for k in chosen]
    with_all = with_all or len(chosen) == len(clients)
    trained = train_together(config.method_options, asked, with_all=with_all)
    return trained, trained.sum_up(0, lambda lengths, losses: alone, 1_000)[0]


def sums_of(replies: Replies) -> Arrays:
    return next(reply.block.sums.to_arrays() for reply in replies if isinstance(reply, BlockReply))


def states_of(clients: Sequence[Participant]) -> dict[str, np.ndarray]:
    memories = {p.client: p.store.load(p.run) for p in clients}
    named = {(c, g, n): t for c, m in memories.items() for g, own in m.groups.items() for n, t in own.items()}
    return {"/".join(key): t.numpy() for key, t in named.items()} | {c: np.array(m.round) for c, m in memories.items()}


def assert_same_bits(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, a in one.items():
        assert (a.dtype, a.shape, a.tobytes()) == (other[name].dtype, other[name].shape, other[name].tobytes()), name


def is_short(client: Participant) -> bool:
    groups = client.store.load(client.run).groups
    return isinstance(groups, StackedRow) and TOUCHED in groups.stacked


ROUNDS: dict[str, list[dict[str, Sequence[int] | int]]] = {
    "all": [{}] * 4,
    "a lost round": [{}, {}, {"last": 1}, {"last": 3}],
    "a reply that the server may leave out": [{}, {"alone": [3]}, {}, {}],
    "some clients": [{}, {"chosen": [4, 2, 9]}, {}, {"chosen": EVERYONE[:8]}],
}


@pytest.mark.parametrize("rounds", ROUNDS.values(), ids=ROUNDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lam": 0.0},
        {"lam": 1.9, "lam_predictor": 0.5},
        {"moments": "reset"},
        {"optimizer": "sgd", "control": "eq3"},
    ],
    ids=str,
)
def test_sums_and_states_have_the_bits_of_whole_tables(
    options: dict[str, float | str], rounds: list[dict[str, Sequence[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(**options)
    short, long = members(config), members(config)
    for number, given in enumerate(rounds, start=1):
        trained, ours = train_round(config, short, number, **given)
        assert number > 1 or all(map(is_short, short))
        with monkeypatch.context() as patch:
            patch.setattr(cohort, "find_own_rows", lambda participants: None)
            whole, theirs = train_round(config, long, number, **given)
        assert not any(map(is_short, long))
        assert_same_bits(sums_of(ours), sums_of(theirs))
        assert_same_bits(trained.lengths, whole.lengths)
        assert_same_bits(states_of(short), states_of(long))
    assert [reply.loss for reply in ours] == [reply.loss for reply in theirs]


def test_a_client_that_diverges_keeps_its_state_and_the_others_train_on(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured()
    clients = members(config)
    train_round(config, clients, 1)
    before = clients[5].store.load("toy")
    spoilt = replace(clients[5], learner=learner_of(config, WIDE, [toy_homes(CLIENTS)[5]]))
    batch = spoilt.learner.batch
    monkeypatch.setattr(
        spoilt.learner, "batch", lambda request: {**batch(request), "labels": batch(request)["labels"] * torch.nan}
    )
    _, failed = train_round(config, [*clients[:5], spoilt, *clients[6:]], 2)
    assert [k for k, reply in enumerate(failed) if isinstance(reply, Exception)] == [5]
    assert clients[5].store.load("toy") is before
    assert all(client.store.load("toy").round == 2 for client in clients if client.client != "c05")
    _, after = train_round(config, clients, 3)
    assert not any(isinstance(reply, Exception) for reply in after)


@pytest.mark.parametrize("kept", [EVERYONE, EVERYONE[3:]])
def test_a_snapshot_continues_with_the_same_bits(kept: Sequence[int]) -> None:
    config = configured()
    clients = members(config)
    for number in (1, 2):
        train_round(config, clients, number)
    again = [replace(client, store=MemoryStore()) for client in clients]
    state = dump_stores([clients[k].store for k in kept], "toy")
    load_stores(state, [again[k].store for k in kept], "toy")
    assert all(is_short(again[k]) for k in kept)
    sums = [sums_of(train_round(config, own, 3, kept)[1]) for own in (clients, again)]
    assert_same_bits(*sums)
    chosen = [[own[k] for k in kept] for own in (clients, again)]
    assert_same_bits(states_of(chosen[0]), states_of(chosen[1]))


@pytest.mark.parametrize("method", ["fedavg", "ditto", "fedrep"])
def test_tables_stay_whole_for_methods_that_do_not_say_that_they_act_on_numbers(method: str) -> None:
    config = configured(method, optimizer="adam")
    clients = members(config)
    train_round(config, clients, 1)
    assert not any(map(is_short, clients))


def test_tables_stay_whole_where_a_norm_over_them_is_clipped_or_all_rows_are_touched() -> None:
    clipped = configured(clip_norm=1.0)
    clients = members(clipped)
    train_round(clipped, clients, 1)
    assert not any(map(is_short, clients))
    config = configured()
    few = [
        replace(p, learner=learner_of(config, CATALOGUE, [home]))
        for p, home in zip(clients, toy_homes(CLIENTS), strict=True)
    ]
    model = parameters(task_model(config, CATALOGUE))
    request = TrainRequest(1, "toy:0", model)
    asked = [replace(client, request=request, store=MemoryStore()) for client in few]
    train_together(config.method_options, asked, with_all=True).sum_up(0, lambda lengths, losses: [], 1_000)
    assert not any(map(is_short, asked))


def test_state_takes_the_memory_of_touched_rows() -> None:
    config = configured()
    clients = members(config)
    train_round(config, clients, 1)
    groups = clients[0].store.load("toy").groups
    assert isinstance(groups, StackedRow)
    short = sum(t.nbytes for named in groups.stacked.values() for t in named.values())
    assert short < 0.9 * CLIENTS * sum(t.nbytes for named in groups.values() for t in named.values())
