"""Method without rounds of training: each client sends a statistic once, and the server solves for the model."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.training.participant import Participant
from common.arrays import Arrays
from common.methods.base import Capabilities, MethodOptions, MethodSpec
from common.tasks.spec import AnyTask
from common.wire.messages import TrainRequest
from common.wire.sparse_rows import expand

STATISTIC = "labels"
"""Name of the statistic: sums over the client's labels of 1, y and y²; no parameter has its name or shape."""


class LabelMoments(MethodOptions):
    """Moments of all clients' labels."""

    name: ClassVar[str] = "labelmoments"

    def capabilities(self) -> Capabilities:
        return Capabilities(per_step=False, sum_only=True, record_dp="its clients make no gradient steps")


class LabelMomentsTrainer(FedAvgTrainer):
    """Trainer that measures labels."""

    measures = True

    def template(self, task: str, request: TrainRequest) -> Arrays:
        return {STATISTIC: np.zeros(3, np.float32)}

    def statistics(self, participant: Participant) -> Arrays:
        labels = participant.batch()["labels"].flatten().float()
        return {STATISTIC: torch.stack([torch.ones_like(labels).sum(), labels.sum(), labels.square().sum()]).numpy()}


SPEC = MethodSpec(LabelMoments, "Moments of labels, in closed form")
CLIENT = ClientMethod(SPEC, LabelMomentsTrainer)


def solve(task: AnyTask, solved: Arrays, clients: Sequence[Any], sums: int) -> Arrays:
    """Return what the first sums over learners give, from what is known before them."""
    assert task.closed_form is not None
    for _ in range(sums):
        template = task.closed_form.template(solved)
        replies = [expand(client.statistics(solved), template) for client in clients]
        assert all({n: a.shape for n, a in r.items()} == {n: a.shape for n, a in template.items()} for r in replies)
        solved = task.closed_form.solve(solved, {n: np.sum([r[n] for r in replies], axis=0) for n in template}, 0.0)
    return solved
