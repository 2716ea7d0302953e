"""Stacked local descent of a cohort."""

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor
from torch.func import vmap

from client.privacy.dp_sgd import private_gradient, sample_private_inputs
from client.privacy.dp_sgd_noise import secret_generator
from client.stacked_tensors import Tensors, at, row, stack
from client.tasks.step_targets import HasStepTargets, targets_of
from client.trainers.gradient_descent import Descent, GradientAndLoss, descend, plain_gradient
from client.trainers.optimizers import build_step, initialize_moments
from client.trainers.spec import Cohort, CohortResult, Trainer
from client.training.participant import Participant, build_generator
from client.training.rows_of_block import stack_on_rows


def descend_stacked(trainer: Trainer, cohort: Cohort) -> CohortResult:
    """Train all participants of a cohort at once, mapped over stacked parameters."""
    start, participants = cohort.start, cohort.participants
    names, phase = start.keys(), participants[0].request.phase
    inputs = [_sample_inputs(p, start, k, trainer.samples_per_step) for k, p in enumerate(participants)]
    batch, gradient = stack_on_rows(participants, start, _gradient_and_loss(participants[0]), cohort.own)
    descend_from = partial(
        descend,
        trainer.objective(_with_targets(gradient, participants)),
        batch=batch,
        inputs=stack(inputs),
        steps=participants[0].steps,
        step=build_step(trainer.options),
        clip_norm=trainer.options.clip_norm,
        frozen=lambda t: trainer.frozen_parameters(t, phase, cohort.private, names),
    )
    descent = descend_from(
        start, moments=cohort.moments, correct=lambda g, params: trainer.correct(g, params, start, cohort.control)
    )
    return CohortResult(descent, _train_personalized(trainer, cohort, descent.params, descend_from))


def _gradient_and_loss(participant: Participant) -> GradientAndLoss:
    """Return the gradient function of the cohort: plain, or the noisy gradient of DP-SGD."""
    learner = participant.learner
    return vmap(private_gradient(learner.loss, learner.shared)) if participant.noise else plain_gradient(learner)


def _with_targets(gradient_and_loss: GradientAndLoss, participants: Sequence[Participant]) -> GradientAndLoss:
    """Return the gradient function with the targets of each step among its inputs."""
    if not isinstance(participants[0].learner, HasStepTargets):
        return gradient_and_loss
    found = [targets_of(p.learner, p.request) for p in participants]
    targets = [each for each in found if each is not None]
    if not targets:
        return gradient_and_loss

    def with_targets(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        constants = [each(at(params, k), at(batch, k), at(inputs, k)) for k, each in enumerate(targets)]
        return gradient_and_loss(params, batch, {**inputs, **stack(constants)})

    return with_targets


def _sample_inputs(participant: Participant, start: Tensors, k: int, samples: int) -> Tensors:
    """Sample the step inputs of a participant, `samples` per step; under DP-SGD with its noise."""
    learner, steps, noise = participant.learner, participant.steps, participant.noise
    generator = build_generator(participant) if noise is None else secret_generator(noise)
    inputs = learner.step_inputs(samples * steps, generator)
    inputs = inputs if samples == 1 else {n: t.reshape(steps, samples, *t.shape[1:]) for n, t in inputs.items()}
    if noise is None:
        return inputs
    return {**inputs, **sample_private_inputs(at(start, k), learner.rows, learner.examples, steps, noise)}


def _train_personalized(
    trainer: Trainer, cohort: Cohort, trained: Tensors, descend_from: Callable[..., Descent]
) -> Tensors:
    """Return the personalized models after the round, K × …; empty if the method has none."""
    kind, start = trainer.options.capabilities().own_model, cohort.start
    if kind != "beside":
        return trained if kind == "trained" else {}
    models = stack([model or row(start, k) for k, model in enumerate(cohort.personalized)])
    moments = initialize_moments(trainer.options, models)
    descent = descend_from(models, moments=moments, correct=lambda g, params: trainer.pull(g, params, start))
    return descent.params
