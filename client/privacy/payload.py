"""What is about to leave a client: where it is booked, and which of it depends on data."""

import numpy as np

from common.arrays import Arrays, add_prefix
from common.errors import RefusedError
from common.privacy.clipping import Vector
from common.privacy.options import LEAST_CLIP, PrivacyOptions
from common.wire.messages import TrainReply
from common.wire.sparse_rows import ROWS


def at_clip(options: PrivacyOptions, factor: float) -> PrivacyOptions:
    """The options with the clip that a round asks for.

    Raises:
        RefusedError: It is no lower one, or so low that rounding would pass for a gradient.
    """
    if not 0 < factor <= 1:
        raise RefusedError(f"the server asks for a clip of {factor} times the run's; it may only be lowered")
    if options.clip * factor < LEAST_CLIP:
        raise RefusedError(f"the server asks for a clip of {options.clip * factor:.2g}; {LEAST_CLIP:g} is the least")
    return options.model_copy(update={"clip": options.clip * factor})


def payload_of(reply: TrainReply) -> Arrays:
    """All of a reply that depends on data and leaves."""
    return {**add_prefix("update", reply.update), **add_prefix("gradient", reply.gradient)}


def split_row_ids(leaving: Arrays, named: bool) -> tuple[Arrays, Arrays]:
    """What noise goes on, and, in a run that has clients name rows, their ids, which are sent as they are."""
    ids = {name: a for name, a in leaving.items() if named and name.endswith(ROWS)}
    return {name: a for name, a in leaving.items() if name not in ids}, ids


def finite_or_zeros(vector: Vector) -> Vector:
    """The vector, or zeros for one that is not finite: to refuse it would tell that much without noise."""
    return vector if np.isfinite(vector).all() else np.zeros_like(vector)


def sort_bounds(bounds: Arrays) -> Arrays:
    """Noise may turn bounds round."""
    if not bounds:
        return {}
    low, high = bounds["low"], bounds["high"]
    return {**bounds, "low": np.minimum(low, high), "high": np.maximum(low, high)}
