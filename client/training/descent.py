"""Stacked local descent of a cohort, on the rows of tables that its clients' data touch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from client.privacy.dp_sgd import (
    opacus_gradient,
    private_gradient,
    sample_exact_inputs,
    sample_private_inputs,
    secret_generator,
)
from client.tasks.learner import HasStepTargets, TouchesRows, is_unstacked, targets_of
from client.trainers.base import Cohort, CohortResult, Trainer, require_forms
from client.training.participant import Participant, build_generator
from client.training.stacks import OwnRows, Tensors, at, device_of, move, row, stack
from client.training.steps import (
    Descent,
    GradientAndLoss,
    alone,
    build_step,
    descend,
    initialize_moments,
    one_gradient,
    plain_gradient,
)
from common.tasks.networks import SEED


def stack_on_rows(
    participants: Sequence[Participant], params: Tensors, plain: GradientAndLoss, short: OwnRows | None = None
) -> tuple[Tensors, GradientAndLoss]:
    """Return the clients' stacked data, and their gradient function on the rows that they touch.

    Whole tables remain if a client trains alone, has noise in its steps, or its learner does not name rows. `short` are the
    rows of short tables in the parameters K × …; None if they are whole.
    """
    learners = _find_learners(participants)
    if not learners:
        return stack([p.batch() for p in participants]), plain
    tables = frozenset(learners[0].tables)
    rows = short.ids if short else _find_rows(learners, params[next(iter(tables))].shape[1])
    batch = stack(
        [each.batch_on(p.request, rows[k]) for k, (each, p) in enumerate(zip(learners, participants, strict=True))]
    )
    if short:
        return batch, _on_short_tables(plain, short)
    rows = move(rows, device_of(params))
    client = torch.arange(len(rows), device=rows.device).unsqueeze(1)

    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        gathered = {n: p[client, rows] if n in tables else p for n, p in params.items()}
        gradient, loss = plain(gathered, batch, inputs)
        for table in tables:
            whole = torch.zeros_like(params[table])
            whole[client, rows] = gradient[table]
            gradient[table] = whole
        return gradient, loss

    return batch, gradient_and_loss


def find_own_rows(participants: Sequence[Participant]) -> OwnRows | None:
    """Return the rows of their tables that stacked clients touch; None if that makes no table shorter."""
    learners = _find_learners(participants)
    if not learners:
        return None
    tables = frozenset(learners[0].tables)
    total = len(participants[0].request.model[next(iter(tables))])
    ids = _find_rows(learners, total)
    is_shorter = ids.numel() + total < len(learners) * total
    return OwnRows(tables, ids, total) if is_shorter else None


def _find_learners(participants: Sequence[Participant]) -> list[TouchesRows]:
    """Return the learners of clients that train on touched rows; empty if they train on whole tables."""
    first = participants[0]
    if len(participants) == 1 or first.noise is not None or not isinstance(first.learner, TouchesRows):
        return []
    return [cast(TouchesRows, p.learner) for p in participants]


def _on_short_tables(plain: GradientAndLoss, short: OwnRows) -> GradientAndLoss:
    def gradient_and_loss(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
        gradient, loss = plain(short.take(params), batch, inputs)
        return short.fill(gradient, params), loss

    return gradient_and_loss


def _find_rows(learners: Sequence[TouchesRows], total: int) -> Tensor:
    """Return ids of rows, K × T: those that a client touches, ascending, then others."""
    is_touched = np.zeros((len(learners), total), bool)
    for k, learner in enumerate(learners):
        is_touched[k, learner.touched] = True
    most = int(is_touched.sum(axis=1).max())
    return torch.from_numpy(np.argsort(~is_touched, axis=1, kind="stable")[:, :most].copy())


def descend_stacked(trainer: Trainer, cohort: Cohort) -> CohortResult:
    """Train all participants of a cohort at once, mapped over stacked parameters."""
    start, participants = cohort.start, cohort.participants
    names, phase = start.keys(), participants[0].request.phase
    inputs = [_sample_inputs(p, start, k, trainer.samples_per_step) for k, p in enumerate(participants)]
    batch, gradient = stack_on_rows(participants, start, _gradient_and_loss(participants[0]), cohort.own_rows)
    descend_from = partial(
        descend,
        trainer.objective(_with_targets(gradient, participants)),
        batch=move(batch, device_of(start)),
        inputs=move(stack(inputs), device_of(start)),
        steps=participants[0].steps,
        step=build_step(trainer.options),
        clip_norm=trainer.options.clip_norm,
        frozen=lambda t: trainer.frozen_parameters(t, phase, cohort.private, names),
    )

    def correct(gradient: Tensors, params: Tensors) -> Tensors:
        direction = trainer.correct(gradient, params, start, cohort.control)
        return require_forms(trainer.options.name, "correct", direction, gradient)

    descent = descend_from(start, moments=cohort.moments, correct=correct)
    return CohortResult(descent, _train_personalized(trainer, cohort, descent.params, descend_from))


def _gradient_and_loss(participant: Participant) -> GradientAndLoss:
    """Return the gradient function of the cohort: plain, or the noisy gradient of DP-SGD."""
    learner = participant.learner
    if participant.noise is None:
        return plain_gradient(learner)
    if is_unstacked(learner):
        return alone(learner, opacus_gradient(one_gradient(learner.loss), learner.shared))
    return vmap(private_gradient(learner.loss, learner.shared))


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
    if is_unstacked(learner):
        inputs[SEED] = torch.randint(2**62, (samples * steps,), generator=generator)
    inputs = inputs if samples == 1 else {n: t.reshape(steps, samples, *t.shape[1:]) for n, t in inputs.items()}
    if noise is None:
        return inputs
    sample = sample_exact_inputs if is_unstacked(learner) else sample_private_inputs
    return {**inputs, **sample(at(start, k), learner.rows, learner.examples, steps, noise)}


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
