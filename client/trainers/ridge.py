"""Client side of ridge regression in closed form: statistics of the client's data."""

from client.tasks.learner import HasStatistics
from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.training.participant import Participant
from common.arrays import Arrays
from common.errors import RefusedError
from common.methods import ridge
from common.tasks.registry import closed_form_of
from common.wire.messages import TrainRequest


class RidgeTrainer(FedAvgTrainer):
    """Trainer that measures and trains nothing."""

    measures = True

    def template(self, task: str, request: TrainRequest) -> Arrays:
        """Return zeros of the form of the next statistics."""
        return closed_form_of(task).template(request.statics)

    def statistics(self, participant: Participant) -> Arrays:
        """Return the statistics of the participant's data for the next sum."""
        learner = participant.learner
        if not isinstance(learner, HasStatistics):
            raise RefusedError(f"task '{learner.task}' has no closed form; choose another method")
        return learner.statistics(participant.request.statics)


METHOD = ClientMethod(ridge.METHOD, RidgeTrainer)
