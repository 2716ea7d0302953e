"""Limits of a round."""

import pytest

from server.exchange.grid import RoundLimits


def test_invalid_limits_are_refused() -> None:
    for limits in ((0, 1.0, 0.0), (1, 0.0, 0.0), (1, 1.0, -1.0)):
        with pytest.raises(ValueError, match="min_replies"):
            RoundLimits(*limits)
