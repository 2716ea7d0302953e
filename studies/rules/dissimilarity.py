"""Gradient dissimilarity of homes: how far their gradients lie apart at one model."""

from collections.abc import Iterable

import torch
from torch.func import grad

from client.tasks.rules.data.homes import Homes
from client.tasks.rules.learner import RulesLearner
from client.training.stacks import Tensors
from common.models import tensors
from common.tasks.rules.task import TASK
from common.wire.messages import TrainRequest
from studies.harness.bench import FinishedRun
from studies.harness.row import Trial
from studies.rules.drift import DISSIMILARITY


def of_run(run: FinishedRun) -> Trial:
    """Return B² of all homes at the run's last model, without dropout."""
    params, task_run = tensors(run.folder.load_model()[0]), run.config.task_run(TASK, run.dataset.vocabulary)
    homes = [RulesLearner(task_run, Homes((home,), run.dataset.vocabulary)) for home in run.dataset.units]
    return Trial({DISSIMILARITY: dissimilarity(_gradient(home, params) for home in homes if home.examples)})


def dissimilarity(gradients: Iterable[torch.Tensor]) -> float:
    """Return B² = mean ‖g_k‖² / ‖mean g_k‖² of gradients of one size; 1 if all are equal."""
    stacked = torch.stack(list(gradients)).double()
    return float(stacked.square().sum(1).mean() / stacked.mean(0).square().sum())


def _gradient(home: RulesLearner, params: Tensors) -> torch.Tensor:
    """Return ∇L_k as one vector."""
    batch = home.batch(TrainRequest(round=1, enrolment="", model={}))
    found = grad(home.loss)(params, batch, {"keep": torch.ones(())})
    return torch.cat([found[name].flatten() for name in sorted(found)])
