"""Audit of a helper's noise: the claim holds, and half of the noise breaks it."""

import pytest

from benchmarks.secure.audit import EPSILON, lower_bound

RELEASES = 500


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (0.5, False)])
def test_one_honest_helpers_noise_keeps_the_claim_and_half_of_it_does_not(share: float, *, holds: bool) -> None:
    estimated = lower_bound(share, RELEASES)
    assert estimated > 0.1
    assert (estimated <= EPSILON) is holds, estimated
