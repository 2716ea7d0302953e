"""Mean over unequal numbers of local steps."""

import numpy as np
import pytest
from server.aggregation.results import mean_update

from common.arrays import mean, sha256

U = {"w": np.array([3.0, 6.0])}
V = {"w": np.array([1.0, -1.0])}


def test_equal_steps_are_the_plain_mean_bit_for_bit() -> None:
    assert sha256(mean_update([U, V], [4, 4], [1, 2])) == sha256(mean([U, V], [1, 2]))


def test_unequal_steps_by_hand() -> None:
    """D = U/3, V/1 = (1, 2), (1, −1); mean d = (1, 0.5); mean τ = 2; Δ̄ = (2, 1)."""
    assert mean_update([U, V], [3, 1], [1, 1])["w"].tolist() == [2.0, 1.0]


def test_weights_enter_both_means() -> None:
    """P = 1/4, 3/4: τ̄ = 3/4 + 3/4 = 1.5; Σ p d = (1, 2)/4 + 3(1, −1)/4 = (1, −0.25); Δ̄ = (1.5, −0.375)."""
    assert mean_update([U, V], [3, 1], [1, 3])["w"].tolist() == pytest.approx([1.5, -0.375])


def test_clients_with_more_steps_do_not_outweigh_the_rest() -> None:
    """Δ_k = τ_k·g gives τ̄·g: whoever steps more does not tilt the direction."""
    g = np.array([1.0, 2.0])
    assert mean_update([{"w": 1 * g}, {"w": 9 * g}], [1, 9], [1, 1])["w"] == pytest.approx(5 * g)
