"""What every trainer must keep to: alone or stacked, nothing changed, the same randomness gives the same bits."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from client.stacked_tensors import stack
from client.state import MemoryStore
from client.tasks.rules.data.homes import Home
from client.training.cohort import train
from client.training.participant import Participant, generator
from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import FedloomError
from common.models import parameters
from common.wire.messages import TrainReply, TrainRequest
from tests.support.build import learner_of, task_model
from tests.support.toys import CATALOGUE, METHODS, configured, toy_homes

HOMES = toy_homes(7)
PARTS = (HOMES[:1], HOMES[1:3], HOMES[3:7])  # 1, 2 and 4 homes: padded to the largest
VARIANTS: dict[str, RunConfig] = {
    **{method: configured(method) for method in METHODS},
    "fedavg-adam": configured("fedavg", optimizer="adam", lr=0.02),
    "fedprox-strong": configured("fedprox", mu=2.0),
    "fedrule-eq3": configured("fedrule", optimizer="sgd", control="eq3", lr=0.3, clip_norm=0.5),
    "fedrule-paper": configured("fedrule", model="paper"),
}
every_trainer = pytest.mark.parametrize("variant", VARIANTS)


def members(config: RunConfig, parts: tuple[tuple[Home, ...], ...] = PARTS) -> list[Participant]:
    model = parameters(task_model(config, CATALOGUE))
    return [
        Participant(
            client=f"client-{k}",
            run="toy",
            seed=config.seed,
            learner=learner_of(config, CATALOGUE, homes),
            store=MemoryStore(),
            request=TrainRequest(1, "toy:0", model),
            steps=config.method_options.local_steps,
        )
        for k, homes in enumerate(parts)
    ]


def good(replies: list[TrainReply | FedloomError]) -> list[TrainReply]:
    assert all(isinstance(reply, TrainReply) for reply in replies)
    return replies  # type: ignore[return-value]


def source(seed: int, number: int, client: str, phase: str = "local") -> Participant:
    learner = learner_of(configured("fedavg"), CATALOGUE, HOMES[:1])
    return Participant(client, "toy", seed, learner, MemoryStore(), TrainRequest(number, "toy:0", {}, phase=phase), 1)


def again(member: Participant, first: TrainReply) -> Participant:
    """The member in round 2, its first reply counted and the mean of the others unlike it."""
    model = {n: a - 0.5 * first.update[n] for n, a in member.request.model.items()}
    shared = {n: 0.1 * a for n, a in (first.gradient or first.update).items()}
    return replace(member, request=TrainRequest(2, "toy:0", model, shared, 1))


def close(left: TrainReply, right: TrainReply) -> None:
    assert (left.round, left.examples, left.steps) == (right.round, right.examples, right.steps)
    assert left.loss == pytest.approx(right.loss, rel=1e-5)
    for ours, theirs in ((left.update, right.update), (left.gradient, right.gradient)):
        assert ours.keys() == theirs.keys()
        for n in ours:
            np.testing.assert_allclose(ours[n], theirs[n], rtol=2e-4, atol=2e-6, err_msg=n)


@every_trainer
def test_stacked_clients_learn_what_each_learns_alone(variant: str) -> None:
    together, alone = members(VARIANTS[variant]), members(VARIANTS[variant])
    algorithm = VARIANTS[variant].method_options
    first = good(train(algorithm, together))
    for member, reply in zip(alone, first, strict=True):
        close(good(train(algorithm, [member]))[0], reply)
    mean = first[0]
    second = good(train(algorithm, [again(m, mean) for m in together]))
    for member, reply in zip(alone, second, strict=True):
        close(good(train(algorithm, [again(member, mean)]))[0], reply)


@every_trainer
def test_the_same_randomness_gives_the_same_bits(variant: str) -> None:
    runs = [good(train(VARIANTS[variant].method_options, members(VARIANTS[variant]))) for _ in range(2)]
    for left, right in zip(*runs, strict=True):
        assert (sha256(left.update), sha256(left.gradient), left.loss) == (
            sha256(right.update),
            sha256(right.gradient),
            right.loss,
        )


@every_trainer
def test_nothing_handed_in_is_changed(variant: str) -> None:
    [member] = members(VARIANTS[variant], PARTS[2:])
    [first] = good(train(VARIANTS[variant].method_options, [member]))
    second = again(member, first)
    request, kept = copy.deepcopy(second.request), copy.deepcopy(member.store.load("toy"))
    before = member.store.load("toy")
    train(VARIANTS[variant].method_options, [second])
    assert sha256(second.request.model) == sha256(request.model)
    assert sha256(second.request.shared) == sha256(request.shared)
    assert before.groups.keys() == kept.groups.keys()
    for group, named in before.groups.items():
        assert all(torch.equal(t, kept.groups[group][n]) for n, t in named.items())


@every_trainer
def test_a_client_descends(variant: str) -> None:
    [member] = members(VARIANTS[variant], PARTS[2:])
    loss = []
    for number in range(1, 6):
        [reply] = good(train(VARIANTS[variant].method_options, [member]))
        loss.append(reply.loss)
        model = {n: a - reply.update[n] for n, a in member.request.model.items()}
        member = replace(member, request=TrainRequest(number + 1, "toy:0", model))
    assert loss[-1] < loss[0] - 0.01


def test_randomness_is_a_function_of_seed_round_and_client() -> None:
    draws = {
        (s, r, c): torch.rand(3, generator=generator(source(s, r, c)))
        for s in (0, 1)
        for r in (1, 2)
        for c in ("a", "b")
    }
    assert len({tuple(d.tolist()) for d in draws.values()}) == 8
    second = torch.rand(3, generator=generator(source(0, 1, "a", "cluster")))
    assert not torch.equal(draws[0, 1, "a"], second), "a round's second exchange draws anew"
    assert torch.equal(draws[0, 1, "a"], torch.rand(3, generator=generator(source(0, 1, "a"))))


def test_stacking_pads_with_zeros() -> None:
    stacked = stack([{"w": torch.ones(1, 2)}, {"w": torch.ones(2, 1)}])
    assert stacked["w"].tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_client_that_diverges_yields_an_error_and_keeps_its_memory() -> None:
    config = configured("fedrule", optimizer="sgd", control="eq3", lr=1e30)
    [member, other] = members(config, PARTS[:2])
    replies = train(config.method_options, [member, other])
    assert all(isinstance(reply, FedloomError) and "training diverged" in str(reply) for reply in replies)
    assert (member.store.load("toy").round, member.store.load("toy").groups) == (0, {})


def test_the_proximal_term_pulls_towards_the_rounds_model() -> None:
    updates = []
    for mu in (0.0, 0.5, 2.0):
        config = configured("fedprox", mu=mu, lr=0.3)
        [reply] = good(train(config.method_options, members(config, PARTS[2:])))
        updates.append(np.sqrt(sum(float((u**2).sum()) for u in reply.update.values())))
    assert updates[0] > updates[1] > updates[2]
    config = configured("fedavg", lr=0.3)
    [reply] = good(train(config.method_options, members(config, PARTS[2:])))
    assert np.sqrt(sum(float((u**2).sum()) for u in reply.update.values())) == updates[0], "mu = 0 is FedAvg"


@every_trainer
def test_a_round_that_is_asked_for_twice_is_answered_twice_the_same(variant: str) -> None:
    """A server that crashed and resumed asks again; what the first attempt left behind must not show."""
    config = VARIANTS[variant]
    [member] = members(config, PARTS[1:2])
    [first] = good(train(config.method_options, [member]))
    later = again(member, first)
    [once] = good(train(config.method_options, [later]))
    [twice] = good(train(config.method_options, [later]))
    assert sha256(once.update) == sha256(twice.update)
    assert sha256(once.gradient) == sha256(twice.gradient)
