"""Numbers that must be positive and finite, since a server may ask for any."""

import math

from common.errors import RefusedError


def positive(**amounts: float) -> None:
    """Check amounts by name.

    Raises:
        RefusedError: Naming the first that is zero, negative, NaN or infinite.
    """
    for name, amount in amounts.items():
        if not (math.isfinite(amount) and amount > 0):
            raise RefusedError(f"privacy: {name} must be a positive number, not {amount}")
