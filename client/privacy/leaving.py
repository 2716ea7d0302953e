"""What is about to leave a client: where it is booked, and which of it depends on data."""

import numpy as np

from client.privacy.rows import Slot
from common.arrays import Arrays, prefixed
from common.errors import RefusedError
from common.privacy.options import PrivacyOptions
from common.wire.messages import TrainReply, TrainRequest
from common.wire.rows import ROWS


def slot_of(request: TrainRequest) -> Slot:
    """Where a round's answer is booked."""
    return Slot(run_of(request.enrolment), request.round, request.phase)


def run_of(enrolment: str) -> str:
    """The run that an enrolment is in."""
    return enrolment.partition(":")[0]


def at_clip(options: PrivacyOptions, factor: float) -> PrivacyOptions:
    """The options with the clip that a round asks for.

    Raises:
        RefusedError: It is no lower one.
    """
    if not 0 < factor <= 1:
        raise RefusedError(f"the server asks for a clip of {factor} times the run's; it may only be lowered")
    return options.model_copy(update={"clip": options.clip * factor})


def leaving(reply: TrainReply) -> Arrays:
    """All of a reply that depends on data and leaves."""
    return {**prefixed("update", reply.update), **prefixed("gradient", reply.gradient)}


def parted(leaving: Arrays, named: bool) -> tuple[Arrays, Arrays]:
    """What noise goes on, and, in a run that has clients name rows, their ids, which are sent as they are."""
    ids = {name: a for name, a in leaving.items() if named and name.endswith(ROWS)}
    return {name: a for name, a in leaving.items() if name not in ids}, ids


def in_order(bounds: Arrays) -> Arrays:
    """Noise may turn bounds round."""
    if not bounds:
        return {}
    low, high = bounds["low"], bounds["high"]
    return {**bounds, "low": np.minimum(low, high), "high": np.maximum(low, high)}
