"""Training windows that clients hand to the server in clear, for fidelity to the authors' code only (algorithms.md §3.6)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from common.arrays import Array, Arrays
from common.errors import WireError
from common.tasks.traffic.options import TrafficOptions

PREFIX = "sample."


@dataclass(frozen=True, eq=False)
class Sample:
    """N windows of a client, in its own standard deviations.

    Args:
        history: Departures from the base, N × H × D.
        base: What forecasts depart from, N × P × D.
        target: What was read, N × P × D.
        clock: Rows of the property's tables, N × P.
    """

    history: Array
    base: Array
    target: Array
    clock: Array

    def arrays(self) -> Arrays:
        """As they travel, beside a property's parameters."""
        return {f"{PREFIX}{name}": array for name, array in vars(self).items()}

    @classmethod
    def of(cls, told: Arrays, options: TrafficOptions) -> Self:
        """The sample in a reply.

        Raises:
            WireError: It is not there, or its arrays do not fit each other, the run or the property's tables.
        """
        names = [f"{PREFIX}{name}" for name in cls.__dataclass_fields__]
        if not {"low", *names} <= told.keys():
            raise WireError("it hands over no sample of its windows")
        one, rows = cls(*(told[name] for name in names)), len(np.atleast_1d(told["low"]))
        count, steps = one.clock.shape if one.clock.ndim == 2 and one.clock.dtype.kind in "iu" else (0, 0)
        shapes = [(count, length, *one.base.shape[-1:]) for length in (options.history, steps, steps)]
        fits = [one.history.shape, one.base.shape, one.target.shape] == shapes and steps == options.horizon
        if not fits or not all(np.isfinite(a).all() for a in vars(one).values()) or not count:
            raise WireError("its sample does not fit the run, or is not finite")
        if one.clock.min() < 0 or one.clock.max() >= rows:
            raise WireError("its sample is of no time of the week")
        return one
