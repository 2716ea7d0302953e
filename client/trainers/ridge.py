"""Client side of ridge regression in closed form: statistics of the client's data."""

from client.tasks.learner import HasStatistics
from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.training.participant import Participant
from common.arrays import Arrays
from common.errors import RefusedError
from common.methods import ridge
from common.methods.ridge import Ridge
from common.tasks.closed_form import count_clients, widen
from common.tasks.registry import closed_form_of
from common.wire.messages import TrainRequest


class RidgeTrainer(FedAvgTrainer):
    """Trainer that measures and trains nothing."""

    measures = True

    def __init__(self, options: Ridge) -> None:
        super().__init__(options)
        self._counts_clients = options.min_count > 0

    def template(self, task: str, request: TrainRequest) -> Arrays:
        """Return zeros of the form of the next statistics."""
        template = closed_form_of(task).template(request.statics)
        return widen(template) if self._counts_clients else template

    def statistics(self, participant: Participant) -> Arrays:
        """Return the statistics of the participant's data for the next sum."""
        learner = participant.learner
        if not isinstance(learner, HasStatistics):
            raise RefusedError(f"task '{learner.task}' has no closed form; choose another method")
        found = learner.statistics(participant.request.statics)
        return count_clients(found) if self._counts_clients else found


METHOD = ClientMethod(ridge.METHOD, RidgeTrainer)
