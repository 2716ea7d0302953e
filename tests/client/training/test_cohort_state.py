"""States of clients that train together, stacked or one by one."""

from dataclasses import replace

import pytest
import torch

from client.state import ClientMemory, MemoryStore, StackedRow
from client.training.local_round import train, train_together
from client.training.participant import Participant
from common.arrays import sha256
from common.config.run import RunConfig
from common.models import parameters
from common.wire.messages import TrainReply, TrainRequest
from tests.support.build import learner_of, task_model
from tests.support.toys import CATALOGUE, METHODS, configured, toy_homes

HOMES = toy_homes(6)
CONFIGS = {method: configured(method, **({"optimizer": "adam"} if method != "fedrule" else {})) for method in METHODS}
SOURCES = "client.training.state.MOST_SOURCES"


def cohort(config: RunConfig, stores: list[MemoryStore]) -> list[Participant]:
    model = parameters(task_model(config, CATALOGUE))
    request = TrainRequest(1, "toy:0", model)
    learners = [learner_of(config, CATALOGUE, [home]) for home in HOMES[: len(stores)]]
    return [
        Participant(f"client-{k}", "toy", 0, learner, stores[k], request, config.method_options.local_steps)
        for k, learner in enumerate(learners)
    ]


def rounds_of(config: RunConfig, stores: list[MemoryStore], orders: list[list[int]]) -> list[str]:
    """Train the clients of each round in that order; return the hashes of all replies."""
    members, hashes, last = cohort(config, stores), list[str](), dict[int, int]()
    model, shared = members[0].request.model, dict[str, object]()
    for number, order in enumerate(orders, start=1):
        asked = []
        for k in order:
            request = TrainRequest(number, "toy:0", model, shared if last.get(k) else {}, last.get(k, 0))
            asked.append(replace(members[k], request=request))
        replies = train(config.method_options, asked)
        assert all(isinstance(reply, TrainReply) for reply in replies)
        hashes += [sha256({**reply.update, **{f"g/{n}": a for n, a in reply.gradient.items()}}) for reply in replies]
        shared = {n: 0.1 * a for n, a in replies[0].gradient.items()}
        last |= dict.fromkeys(order, number)
    return hashes


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("orders", [[[0, 1, 2, 3]] * 3, [[0, 1, 2, 3], [3, 1], [0, 1, 2, 3], [0, 1, 2, 3]]])
def test_stacked_states_give_the_bits_of_single_ones(
    method: str, orders: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stacked = rounds_of(CONFIGS[method], [MemoryStore() for _ in range(4)], orders)
    monkeypatch.setattr(SOURCES, 0)
    assert stacked == rounds_of(CONFIGS[method], [MemoryStore() for _ in range(4)], orders)


def test_states_of_clients_that_train_together_share_tensors_and_those_of_others_are_copies() -> None:
    stores = [MemoryStore() for _ in range(6)]
    rounds_of(CONFIGS["fedrule"], stores, [[0, 1, 2], [0, 1, 2]])
    first, second = (stores[k].load("toy").groups for k in (0, 1))
    assert isinstance(first, StackedRow)
    assert isinstance(second, StackedRow)
    assert first.stacked is second.stacked
    alone = [MemoryStore() for _ in range(6)]
    rounds_of(CONFIGS["fedrule"], alone, [[0], [1], [2], [0, 1, 2]])
    assert not any(isinstance(alone[k].load("toy").groups, StackedRow) for k in (0, 1, 2))


@pytest.mark.parametrize("with_all", [True, False])
def test_clients_that_left_their_stacks_are_stacked_again_if_all_clients_train(with_all: bool) -> None:
    """Otherwise stacks of which one client is left would stay in memory."""
    config, stores = CONFIGS["fedrule"], [MemoryStore() for _ in range(3)]
    rounds_of(config, stores, [[0], [1], [2]])
    request = TrainRequest(4, "toy:0", parameters(task_model(config, CATALOGUE)))
    asked = [replace(member, request=request) for member in cohort(config, stores)]
    train_together(config.method_options, asked, with_all=with_all).sum_up(0, lambda lengths, losses: [], 1_000)
    assert [isinstance(store.load("toy").groups, StackedRow) for store in stores] == [with_all] * 3
    assert [sorted(store.load("toy").groups) for store in stores] == [["count", "first", "merged", "second"]] * 3


def test_a_repeated_round_starts_from_the_same_stacked_state() -> None:
    stores, config = [MemoryStore() for _ in range(3)], CONFIGS["fedrule"]
    members = cohort(config, stores)
    first = train(config.method_options, members)
    model = members[0].request.model
    request = TrainRequest(2, "toy:0", model, {n: 0.1 * a for n, a in first[0].gradient.items()}, 1)
    asked = [replace(member, request=request) for member in members]
    hashes = [[sha256(r.gradient) for r in train(config.method_options, asked)] for _ in range(2)]
    assert hashes[0] == hashes[1]


def test_a_diverged_client_keeps_its_state_while_the_others_stay_stacked() -> None:
    stores, config = [MemoryStore() for _ in range(3)], CONFIGS["fedrule"]
    rounds_of(config, stores, [[0, 1, 2]])
    before = stores[1].load("toy")
    memory = ClientMemory(
        1, {**before.groups, "delta": {n: t * torch.nan for n, t in before.groups["pending"].items()}}
    )
    stores[1].save("toy", memory)
    model = parameters(task_model(config, CATALOGUE))
    asked = [replace(m, request=TrainRequest(2, "toy:0", model)) for m in cohort(config, stores)]
    replies = train(config.method_options, asked)
    assert [isinstance(reply, TrainReply) for reply in replies] == [True, False, True]
    assert stores[1].load("toy") is memory
    assert [stores[k].load("toy").round for k in range(3)] == [2, 1, 2]
