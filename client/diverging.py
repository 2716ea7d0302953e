"""Training that came to nothing, and what a client answers then in a run with noise."""

import logging
from collections.abc import Callable

import numpy as np

from common.arrays import Arrays
from common.errors import FedloomError
from common.wire.messages import TrainReply

log = logging.getLogger("fedloom.client")


class DivergedError(FedloomError):
    """The parameters are no longer finite.

    Args:
        reply: An answer of the shape that was due; all its numbers count as zero.
    """

    def __init__(self, reply: TrainReply) -> None:
        super().__init__("training diverged (NaN or infinite parameters); lower lr, or set clip-norm")
        self.nothing = TrainReply(reply.round, _zeros(reply.update), _zeros(reply.gradient), 0.0, 1, reply.steps)


def trained_or_nothing(work: Callable[[], TrainReply]) -> TrainReply:
    """What training came to, and nothing if it diverged, for noise to be put on.

    Whether it diverges may depend on the data, so a refusal would tell something of them for free, as often as a server asks.
    """
    try:
        return work()
    except DivergedError as error:
        log.warning("%s; what leaves is noise alone", error)
        return error.nothing


def _zeros(arrays: Arrays) -> Arrays:
    return {name: np.zeros_like(a) for name, a in arrays.items()}
