"""Checks of numbers that a server chose."""

import math

from common.errors import RefusedError


def check_positive(**amounts: float) -> None:
    """Accept amounts that are positive and finite.

    Raises:
        RefusedError: An amount is zero, negative, NaN or infinite; the first such amount is named.
    """
    for name, amount in amounts.items():
        if not (math.isfinite(amount) and amount > 0):
            raise RefusedError(f"privacy: {name} must be a positive number, not {amount}")
