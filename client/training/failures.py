"""Work that came to nothing, and what a client answers then in a run with noise.

Whether work fails may depend on the data, and a server chooses the model, the sums and the options that it is done with. So a
failure would tell something of the data for free, as often as it asks.

Under noise on records nothing can stand in: the noise is that of the local steps. There only training that diverged, which
follows from steps with noise in them, counts as nothing, and other failures are told, as every statement says (`failures`).
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from common.errors import FedloomError, StateError

log = logging.getLogger("fedloom.client")

T = TypeVar("T")


class DivergedError(FedloomError):
    """The parameters are no longer finite."""

    def __init__(self) -> None:
        super().__init__("training diverged (NaN or infinite parameters); lower lr, or set clip-norm")


def run_or_zeros(work: Callable[[], T], nothing: Callable[[], T], failures: type[Exception] = Exception) -> T:
    """What work came to, and `nothing`, of the same shape, if it failed so: for noise to be put on, or to tell nothing.

    Raises:
        StateError, OSError: This machine cannot keep what it must, whatever the data are.
    """
    try:
        return work()
    except (StateError, OSError):
        raise
    except failures as error:
        log.warning("%s: %s; it counts as nothing", type(error).__name__, error)
        return nothing()
