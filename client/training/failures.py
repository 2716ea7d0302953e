"""Replace the result of failed local training by zeros in runs with differential privacy.

A failure can depend on the data, and the server chooses the model, the sums and the options of the training.
A reported failure would therefore reveal something about the data without noise, as often as the server asks.

Under noise on records nothing can replace the result: its noise is drawn in the local steps. There, only diverged training
becomes zeros, since divergence follows from steps that contain noise. Other failures are reported to the server; every
statement lists that channel (`failures`).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from client.privacy.transforms import Work
from common.errors import FedloomError, StateError

log = logging.getLogger("fedloom.client")

ResultT = TypeVar("ResultT")


class DivergedError(FedloomError):
    """The parameters are not finite."""

    def __init__(self) -> None:
        super().__init__("local training diverged (non-finite parameters); lower lr or set clip-norm")


@dataclass(frozen=True)
class ZerosOnFailure:
    """Select step: return zeros of the same shapes if the work fails.

    Args:
        zeros: Work whose values are zeros.
        failures: Type of the failures that it replaces.
    """

    zeros: Work
    failures: type[Exception] = Exception

    def __call__(self, work: Work) -> Work:
        """Return work that cannot fail in that way."""
        return partial(run_or_zeros, work, self.zeros, self.failures)


def run_or_zeros(
    work: Callable[[], ResultT], zeros: Callable[[], ResultT], failures: type[Exception] = Exception
) -> ResultT:
    """Return the result of the work; if it fails with one of `failures`, that of `zeros`.

    Raises:
        StateError, OSError: This machine cannot store client state, whatever the data are.
    """
    try:
        return work()
    except (StateError, OSError):
        raise
    except failures as error:
        log.warning("%s: %s; result discarded", type(error).__name__, error)
        return zeros()
