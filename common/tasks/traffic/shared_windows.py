"""Training windows that clients send in plaintext to reproduce the authors' code (algorithms.md §3.6)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from common.arrays import Array, Arrays
from common.errors import WireError
from common.tasks.traffic.options import TrafficOptions

PREFIX = "sample."


@dataclass(frozen=True, eq=False)
class Sample:
    """Sample of N training windows of a client, in its own standard deviations.

    Args:
        history: Residuals of the base, N × H × D.
        base: Reference of the forecasts, N × P × D.
        target: True readings, N × P × D.
        clock: Rows of the property's tables, N × P.
    """

    history: Array
    base: Array
    target: Array
    clock: Array

    def arrays(self) -> Arrays:
        """Return the arrays of a message, next to a property's parameters."""
        return {f"{PREFIX}{name}": array for name, array in vars(self).items()}

    @classmethod
    def of(cls, arrays: Arrays, options: TrafficOptions) -> Self:
        """Return the sample in a reply's arrays.

        Raises:
            WireError: The sample is missing, or its arrays do not fit each other, the run or the property's tables.
        """
        names = [f"{PREFIX}{name}" for name in cls.__dataclass_fields__]
        if not {"low", *names} <= arrays.keys():
            raise WireError("the reply has no sample of training windows")
        sample, rows = cls(*(arrays[name] for name in names)), len(np.atleast_1d(arrays["low"]))
        count, steps = sample.clock.shape if sample.clock.ndim == 2 and sample.clock.dtype.kind in "iu" else (0, 0)
        shapes = [(count, length, *sample.base.shape[-1:]) for length in (options.history, steps, steps)]
        fits = [sample.history.shape, sample.base.shape, sample.target.shape] == shapes and steps == options.horizon
        if not fits or not all(np.isfinite(a).all() for a in vars(sample).values()) or not count:
            raise WireError("the sample of training windows does not fit the run or is non-finite")
        if sample.clock.min() < 0 or sample.clock.max() >= rows:
            raise WireError("the sample of training windows has times outside the week")
        return sample
