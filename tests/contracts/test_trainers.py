"""Contract of every trainer: stacking, unchanged arguments, deterministic bits."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from client.state import MemoryStore
from client.tasks.rules.data.homes import Home
from client.training.local_round import train
from client.training.participant import Participant, build_generator
from client.training.stacks import stack
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


def participants(config: RunConfig, parts: tuple[tuple[Home, ...], ...] = PARTS) -> list[Participant]:
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


def again(participant: Participant, first: TrainReply) -> Participant:
    """Return the participant in round 2, with an aggregated first reply and a different mean."""
    model = {n: a - 0.5 * first.update[n] for n, a in participant.request.model.items()}
    shared = {n: 0.1 * a for n, a in (first.gradient or first.update).items()}
    return replace(participant, request=TrainRequest(2, "toy:0", model, shared, 1))


def close(left: TrainReply, right: TrainReply) -> None:
    assert (left.round, left.examples, left.steps) == (right.round, right.examples, right.steps)
    assert left.loss == pytest.approx(right.loss, rel=1e-5)
    for ours, theirs in ((left.update, right.update), (left.gradient, right.gradient)):
        assert ours.keys() == theirs.keys()
        for n in ours:
            np.testing.assert_allclose(ours[n], theirs[n], rtol=2e-4, atol=2e-6, err_msg=n)


@every_trainer
def test_stacked_clients_equal_single_clients(variant: str) -> None:
    together, single = participants(VARIANTS[variant]), participants(VARIANTS[variant])
    options = VARIANTS[variant].method_options
    first = good(train(options, together))
    for participant, reply in zip(single, first, strict=True):
        close(good(train(options, [participant]))[0], reply)
    mean = first[0]
    second = good(train(options, [again(m, mean) for m in together]))
    for participant, reply in zip(single, second, strict=True):
        close(good(train(options, [again(participant, mean)]))[0], reply)


@every_trainer
def test_equal_seeds_have_equal_bits(variant: str) -> None:
    runs = [good(train(VARIANTS[variant].method_options, participants(VARIANTS[variant]))) for _ in range(2)]
    for left, right in zip(*runs, strict=True):
        assert (sha256(left.update), sha256(left.gradient), left.loss) == (
            sha256(right.update),
            sha256(right.gradient),
            right.loss,
        )


@every_trainer
def test_arguments_are_not_changed(variant: str) -> None:
    [participant] = participants(VARIANTS[variant], PARTS[2:])
    [first] = good(train(VARIANTS[variant].method_options, [participant]))
    second = again(participant, first)
    request, copied = copy.deepcopy(second.request), copy.deepcopy(participant.store.load("toy"))
    before = participant.store.load("toy")
    train(VARIANTS[variant].method_options, [second])
    assert sha256(second.request.model) == sha256(request.model)
    assert sha256(second.request.shared) == sha256(request.shared)
    assert before.groups.keys() == copied.groups.keys()
    for group, named in before.groups.items():
        assert all(torch.equal(t, copied.groups[group][n]) for n, t in named.items())


@every_trainer
def test_the_loss_of_a_client_decreases(variant: str) -> None:
    [participant] = participants(VARIANTS[variant], PARTS[2:])
    loss = []
    for number in range(1, 6):
        [reply] = good(train(VARIANTS[variant].method_options, [participant]))
        loss.append(reply.loss)
        model = {n: a - reply.update[n] for n, a in participant.request.model.items()}
        participant = replace(participant, request=TrainRequest(number + 1, "toy:0", model))
    assert loss[-1] < loss[0] - 0.01


def test_the_generator_depends_on_seed_round_and_client() -> None:
    draws = {
        (s, r, c): torch.rand(3, generator=build_generator(source(s, r, c)))
        for s in (0, 1)
        for r in (1, 2)
        for c in ("a", "b")
    }
    assert len({tuple(d.tolist()) for d in draws.values()}) == 8
    second = torch.rand(3, generator=build_generator(source(0, 1, "a", "cluster")))
    assert not torch.equal(draws[0, 1, "a"], second), "a round's second exchange draws anew"
    assert torch.equal(draws[0, 1, "a"], torch.rand(3, generator=build_generator(source(0, 1, "a"))))


def test_stacking_pads_with_zeros() -> None:
    stacked = stack([{"w": torch.ones(1, 2)}, {"w": torch.ones(2, 1)}])
    assert stacked["w"].tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_diverged_client_is_an_error_and_keeps_its_state() -> None:
    config = configured("fedrule", optimizer="sgd", control="eq3", lr=1e30)
    [participant, second_participant] = participants(config, PARTS[:2])
    replies = train(config.method_options, [participant, second_participant])
    assert all(isinstance(reply, FedloomError) and "training diverged" in str(reply) for reply in replies)
    assert (participant.store.load("toy").round, participant.store.load("toy").groups) == (0, {})


def test_the_proximal_term_reduces_the_displacement() -> None:
    updates = []
    for mu in (0.0, 0.5, 2.0):
        config = configured("fedprox", mu=mu, lr=0.3)
        [reply] = good(train(config.method_options, participants(config, PARTS[2:])))
        updates.append(np.sqrt(sum(float((u**2).sum()) for u in reply.update.values())))
    assert updates[0] > updates[1] > updates[2]
    config = configured("fedavg", lr=0.3)
    [reply] = good(train(config.method_options, participants(config, PARTS[2:])))
    assert np.sqrt(sum(float((u**2).sum()) for u in reply.update.values())) == updates[0], "mu = 0 is FedAvg"


@every_trainer
def test_a_repeated_round_has_equal_replies(variant: str) -> None:
    """A server that crashed and resumed repeats its request; the first attempt must not change the reply."""
    config = VARIANTS[variant]
    [participant] = participants(config, PARTS[1:2])
    [first] = good(train(config.method_options, [participant]))
    later = again(participant, first)
    [once] = good(train(config.method_options, [later]))
    [twice] = good(train(config.method_options, [later]))
    assert sha256(once.update) == sha256(twice.update)
    assert sha256(once.gradient) == sha256(twice.gradient)
