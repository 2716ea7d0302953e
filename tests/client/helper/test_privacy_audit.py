"""Estimated privacy loss of sums opened by a desk, for two neighbouring inputs.

All else is in the attacker's hands: the second client, and masks and noise of the other helpers, which are left out here.
"""

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from client.helper.book import book_in_memory
from client.helper.desk import Desk
from common.privacy.zcdp import epsilon_of, rho_of
from common.secure.cards import HelperCard, HelperRoster
from common.secure.quantise import integer_clip, noise_scale
from common.secure.terms import SumTerms
from common.wire.sums import HelperRequest
from tests.support.desks import Upload, open_sum, prepare, total
from tests.support.helpers import node_keys, terms

EPSILON, DELTA = 8.0, 1e-5
RELEASES = 250


def noise_key(terms: SumTerms) -> bytes:
    return hashlib.sha256(f"{terms.round}".encode()).digest()


def largest_epsilon(noise: int, size: int = 3) -> float:
    """Return a lower bound of ε at δ, with 95 % confidence, of one client's vector at distance 2c.

    Whether a release is above 0 tells the inputs apart. By data processing, ρ is at least the divergence of both rates of that.
    """
    desk = Desk("helper-0", node_keys(1)[0], book_in_memory(), noise_key=noise_key)
    roster = HelperRoster((HelperCard.from_json(desk.card(HelperRequest("toy", "{}")).card),))
    about = terms(size=size, layout=(("update", size),), noise=noise, roster=roster.digest)
    above = {}
    for sign in (1, -1):
        vectors = [np.array([sign * about.bound] + [0] * (size - 1)), np.zeros(size, np.int64)]
        first = 0 if sign == 1 else RELEASES
        opened = [open_one(desk, replace(about, round=first + n + 1), vectors, roster) for n in range(RELEASES)]
        above[sign] = sum(value > 0 for value in opened)
    low = float(beta.ppf(0.05, above[1], RELEASES - above[1] + 1))
    high = float(beta.ppf(0.95, above[-1] + 1, RELEASES - above[-1]))
    divergence = low * math.log(low / high) + (1 - low) * math.log((1 - low) / (1 - high)) if low > high else 0.0
    return epsilon_of(divergence, DELTA)


def open_one(desk: Desk, about: SumTerms, vectors: list[np.ndarray], roster: HelperRoster) -> int:
    """Return the first number of an opened sum."""
    uploads = [Upload(f"client-{n}", vector, about, roster) for n, vector in enumerate(vectors)]
    prepare(desk, about, uploads)
    return int(total(uploads, [open_sum(desk, about, uploads)])[0])


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (0.5, False)])
def test_one_honest_helpers_noise_keeps_the_claim_and_half_of_it_does_not(share: float, *, holds: bool) -> None:
    noise = noise_scale(rho_of(EPSILON, DELTA), integer_clip(3), "signed")
    estimated = largest_epsilon(round(share * noise))
    assert estimated > 0.1
    assert (estimated <= EPSILON) is holds, estimated
