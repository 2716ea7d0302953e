"""Local training of a cohort: its clients side by side, or one after the other where a method cannot stack them."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import cast

from torch.func import grad_and_value

from client.privacy.dp_sgd import draws, private_gradient
from client.privacy.dp_sgd_noise import secret_generator
from client.stacked_tensors import Tensors, row, stack
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.gradient_descent import Descent, GradientAndLoss, descend
from client.trainers.optimizers import Moments, build_step, fresh_moments
from client.trainers.pfgnn import PFGNNTrainer
from client.trainers.pfgnn_objective import ENCODER, MarketTensors
from client.training.participant import Participant, generator


def trained(
    trainer: FedAvgTrainer,
    members: Sequence[Participant],
    start: Tensors,
    moments: Moments,
    *,
    control: Tensors,
    own: Sequence[Tensors],
    heads: Sequence[Tensors],
    private: Collection[str],
) -> tuple[Descent, Tensors]:
    """Where the members' models end, and each one's own model, stacked; the latter empty where the method leaves none.

    Args:
        trainer: The method.
        members: The cohort.
        start: θ^c with each one's private head, K × ….
        moments: Of the optimiser.
        control: Control variates, K × …, or nothing.
        own: Models of their own from the round before, empty at first.
        heads: Private heads from the round before, empty at first.
        private: Names of the parameters that stay with the clients.
    """
    if isinstance(trainer, PFGNNTrainer) and ENCODER in start:
        markets = [
            cast(MarketTensors, m.learner) for m in members
        ]  # a configuration lets this method run on markets only
        sources, fresh = [generator(m) for m in members], [not head for head in heads]
        descent = trainer.train(markets, start, moments, sources, fresh, members[0].steps)
        return descent, descent.params
    names, phase = start.keys(), members[0].request.phase
    batches = [m.learner.batch(m.request) for m in members]
    descend_from = partial(
        descend,
        trainer.objective(_gradient_and_loss(members[0])),
        batch=stack(batches),
        noise=stack(
            [
                _drawn(m, row(start, k), batch, trainer.draws)
                for k, (m, batch) in enumerate(zip(members, batches, strict=True))
            ]
        ),
        steps=members[0].steps,
        step=build_step(trainer.options),
        clip_norm=trainer.options.clip_norm,
        frozen=lambda t: trainer.frozen(t, phase, private, names),
    )
    descent = descend_from(start, moments=moments, correct=lambda g, params: trainer.correct(g, params, start, control))
    return descent, _own_models(trainer, own, start, descent.params, descend_from)


def _gradient_and_loss(member: Participant) -> GradientAndLoss:
    """Of one client: plain, or under DP-SGD of clipped records with noise."""
    learner = member.learner
    return private_gradient(learner.loss, learner.shared) if member.noise else grad_and_value(learner.loss)


def _drawn(member: Participant, params: Tensors, batch: Tensors, each: int) -> Tensors:
    """All that is random in a client's steps, of `each` draws."""
    noise = member.noise
    chance = generator(member) if noise is None else secret_generator(noise)
    masks = member.learner.step_inputs(each * member.steps, chance)
    masks = masks if each == 1 else {n: m.reshape(member.steps, each, *m.shape[1:]) for n, m in masks.items()}
    if noise is None:
        return masks
    drawn = draws(
        params,
        member.learner.rows,
        member.learner.examples,
        member.steps,
        clip=noise.clip,
        multiplier=noise.multiplier,
        sample=noise.sample,
        generator=noise.generator(),
    )
    return {**masks, **drawn}


def _own_models(
    trainer: FedAvgTrainer,
    before: Sequence[Tensors],
    start: Tensors,
    trained: Tensors,
    descend_from: Callable[..., Descent],
) -> Tensors:
    """Each member's own model after the round, stacked; empty where the method leaves it none."""
    if trainer.own != "beside":
        return trained if trainer.own == "trained" else {}
    own = stack([one or row(start, k) for k, one in enumerate(before)])
    moments = fresh_moments(trainer.options, own)
    descent = descend_from(own, moments=moments, correct=lambda g, params: trainer.pull(g, params, start))
    return descent.params
