"""Stacked local training of a cohort."""

from collections.abc import Callable
from functools import partial

from torch.func import grad_and_value

from client.privacy.dp_sgd import private_gradient, sample_private_inputs
from client.privacy.dp_sgd_noise import secret_generator
from client.stacked_tensors import Tensors, row, stack
from client.trainers.gradient_descent import Descent, GradientAndLoss, descend
from client.trainers.optimizers import build_step, fresh_moments
from client.trainers.spec import Cohort, CohortResult, Trainer
from client.training.participant import Participant, generator


def descend_stacked(trainer: Trainer, cohort: Cohort) -> CohortResult:
    """Train all participants of a cohort at once, mapped over stacked parameters."""
    start, participants = cohort.start, cohort.participants
    names, phase = start.keys(), participants[0].request.phase
    batches = [one.learner.batch(one.request) for one in participants]
    inputs = [
        _sample(one, row(start, k), batch, trainer.draws)
        for k, (one, batch) in enumerate(zip(participants, batches, strict=True))
    ]
    descend_from = partial(
        descend,
        trainer.objective(_gradient_and_loss(participants[0])),
        batch=stack(batches),
        noise=stack(inputs),
        steps=participants[0].steps,
        step=build_step(trainer.options),
        clip_norm=trainer.options.clip_norm,
        frozen=lambda t: trainer.frozen(t, phase, cohort.private, names),
    )
    descent = descend_from(
        start,
        moments=cohort.moments,
        correct=lambda g, params: trainer.correct(g, params, start, cohort.control),
    )
    return CohortResult(descent, _own_models(trainer, cohort, descent.params, descend_from))


def _gradient_and_loss(member: Participant) -> GradientAndLoss:
    """Of one client: plain, or under DP-SGD of clipped records with noise."""
    learner = member.learner
    return private_gradient(learner.loss, learner.shared) if member.noise else grad_and_value(learner.loss)


def _sample(member: Participant, params: Tensors, batch: Tensors, each: int) -> Tensors:
    """Sample the random inputs of a client's steps, `each` of them a step."""
    noise = member.noise
    chance = generator(member) if noise is None else secret_generator(noise)
    masks = member.learner.step_inputs(each * member.steps, chance)
    masks = masks if each == 1 else {n: m.reshape(member.steps, each, *m.shape[1:]) for n, m in masks.items()}
    if noise is None:
        return masks
    learner = member.learner
    return {**masks, **sample_private_inputs(params, learner.rows, learner.examples, member.steps, noise)}


def _own_models(trainer: Trainer, cohort: Cohort, trained: Tensors, descend_from: Callable[..., Descent]) -> Tensors:
    """Return each participant's personalized model after the round, stacked; empty where the method has none."""
    kind, start = trainer.options.capabilities().own_model, cohort.start
    if kind != "beside":
        return trained if kind == "trained" else {}
    own = stack([model or row(start, k) for k, model in enumerate(cohort.own)])
    moments = fresh_moments(trainer.options, own)
    descent = descend_from(own, moments=moments, correct=lambda g, params: trainer.pull(g, params, start))
    return descent.params
