"""Protocol of learners that compute constants of the loss before each gradient."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from client.stacked_tensors import Tensors
from common.wire.messages import TrainRequest

StepTargets = Callable[[Tensors, Tensors, Tensors], Tensors]
"""(parameters, batch, step inputs) of one client -> further inputs of the step."""


@runtime_checkable
class HasStepTargets(Protocol):
    """Learner whose loss compares outputs with constants that depend on the parameters of the step."""

    def step_targets(self, request: TrainRequest) -> StepTargets | None:
        """Return the function that computes the constants; None without any."""


def targets_of(learner: object, request: TrainRequest) -> StepTargets | None:
    """Return the function that computes a learner's constants; None without any."""
    return learner.step_targets(request) if isinstance(learner, HasStepTargets) else None
