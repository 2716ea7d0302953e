"""Training of a hub's clients in several processes."""

from collections.abc import Iterator, Sequence

from client.hub_cohorts import Cohort
from client.training.cohort import train
from common.errors import FedloomError
from common.methods.spec import MethodOptions
from common.wire.messages import TrainReply
from deploy.population import STATE_VECTORS
from deploy.trained_block import TrainedBlock
from deploy.workers import Workers


class HubWorkers:
    """Copies of a hub's process, made anew for each request; the results do not depend on their number.

    Args:
        count: Number of processes.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(
        self, options: MethodOptions, cohorts: Sequence[Cohort]
    ) -> Iterator[Sequence[TrainReply | FedloomError]]:
        """Train all cohorts, then return the outcomes of each.

        When outcomes are taken, the states of their clients are in this process.

        Raises:
            RunError: A copy has ended without a result; no state has changed.
        """
        participants = [[participant for _, participant in cohort] for cohort in cohorts]
        for participant in (one for cohort in participants for one in cohort):
            participant.store.load(participant.run)  # a copy must not be the first to open a file,
            participant.batch()  # and what it computed once for all rounds would end with it

        def train_block(number: int) -> TrainedBlock:
            replies = train(options, participants[number])
            return TrainedBlock(replies, [0] * len(replies), {})

        model = sum(a.nbytes for a in participants[0][0].request.model.values())
        # new memory for each request: states of the last one stay whole if a copy ends early
        trained = Workers(self._count).train_each(participants, train_block, STATE_VECTORS * model)
        return (block.replies for block in trained)
