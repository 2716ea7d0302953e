"""Training loss of a model, for comparison of models."""

import torch

from client.tasks.learner import Learner
from client.tasks.step_targets import targets_of
from common.arrays import Arrays
from common.models import tensors
from common.wire.messages import TrainRequest


def training_loss(learner: Learner, model: Arrays, statics: Arrays) -> float:
    """Return L_k of a model on the training data: the mean over 8 steps whose inputs have seed 0."""
    steps, request, losses = 8, TrainRequest(0, "", model, statics=statics), []
    params, batch = tensors(model), learner.batch(request)
    inputs, targets = learner.step_inputs(steps, torch.Generator().manual_seed(0)), targets_of(learner, request)
    with torch.no_grad():
        for t in range(steps):
            step = {n: x[t] for n, x in inputs.items()}
            losses.append(learner.loss(params, batch, step | targets(params, batch, step) if targets else step))
    return float(torch.stack(losses).mean())
