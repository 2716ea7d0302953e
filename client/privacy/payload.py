"""Checks and corrections of values before and after a release."""

import numpy as np

from common.arrays import Arrays, Floats
from common.errors import RefusedError
from common.privacy.options import MIN_CLIP, PrivacyOptions


def with_clip(options: PrivacyOptions, factor: float) -> PrivacyOptions:
    """Return the options with the clip norm of a round.

    Raises:
        RefusedError: The factor is above 1 or not positive, or the clip norm is so low that rounding defeats clipping.
    """
    if not 0 < factor <= 1:
        raise RefusedError(f"requested clip factor {factor} is not in (0, 1]; the clip norm can only be lowered")
    if options.clip * factor < MIN_CLIP:
        raise RefusedError(f"requested clip norm {options.clip * factor:.2g} is below the minimum {MIN_CLIP:g}")
    return options.model_copy(update={"clip": options.clip * factor})


def finite_or_zeros(vector: Floats) -> Floats:
    """Return the vector, or zeros if it is not finite: a refusal would reveal that without noise."""
    return vector if np.isfinite(vector).all() else np.zeros_like(vector)


def sort_bounds(bounds: Arrays) -> Arrays:
    """Swap lower and upper bounds that noise has put in the wrong order."""
    changed: Arrays = {}
    for below, above in (("low", "high"), ("lower", "upper")):
        if below in bounds:
            low, high = bounds[below], bounds[above]
            changed |= {below: np.minimum(low, high), above: np.maximum(low, high)}
    return {**bounds, **changed}
