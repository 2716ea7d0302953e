"""Audit of one helper's noise: sums of two neighbouring inputs while all other parties are corrupt.

Masks and noise of the other helper are those of an attacker, who takes them away; so they are left out.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from scipy.stats import beta

from client.helper.book import book_in_memory
from client.helper.desk import Desk
from common.arrays import Ints
from common.privacy.zcdp import epsilon_of, rho_of
from common.secure.cards import HelperCard, HelperRoster, make_card
from common.secure.masking import box_context, dtype_of, seal, total_mask
from common.secure.quantise import centre, integer_clip, noise_scale
from common.secure.terms import SumTerms
from common.wire.sums import HelperRequest, OpenRequest, PrepareRequest

EPSILON, DELTA, SIZE = 8.0, 1e-5, 3
RELEASES, CONFIDENCE = 20_000, 0.95
RUN, ROUNDS = "audit", 1_000
"""Name of a run, and its number of rounds."""


def lower_bound(share: float, releases: int = RELEASES) -> float:
    """Return a lower bound of ε at δ, with 95 % confidence, of one client's vector at distance 2c.

    The sign of a release separates the inputs. By data processing, ρ is at least the divergence of the rates of
    that, whose bounds are those of Clopper and Pearson.

    Args:
        share: Noise that the helper adds, as a share of what the claim needs.
        releases: Number of opened sums, half of them of each input.
    """
    each, tail = releases // 2, 1 - CONFIDENCE
    above = {sign: sum(number > 0 for number in _open_sums(share, sign, each)) for sign in (1, -1)}
    low = float(beta.ppf(tail, above[1], each - above[1] + 1))
    high = float(beta.ppf(1 - tail, above[-1] + 1, each - above[-1]))
    divergence = low * math.log(low / high) + (1 - low) * math.log((1 - low) / (1 - high)) if low > high else 0.0
    return epsilon_of(divergence, DELTA)


def _open_sums(share: float, sign: int, number: int) -> Iterator[int]:
    """Yield the first number of each opened sum of an input."""
    for first in range(0, number, ROUNDS):
        source = f"{share} {sign} {first}"
        honest, corrupt = (ec.derive_private_key(number, ec.SECP384R1()) for number in (2, 3))
        desk = Desk("honest", honest, book_in_memory(), noise_key=partial(_noise_key, source))
        card = make_card("corrupt", RUN, corrupt, X25519PrivateKey.generate())
        roster = HelperRoster((card, HelperCard.from_json(desk.card(HelperRequest(RUN, "{}")).card)))
        rng, terms = np.random.default_rng([sign + 1, first]), _terms(share, roster)
        vectors = {"attacker": np.zeros(SIZE, np.int64), "victim": np.array([sign * terms.bound] + [0] * (SIZE - 1))}
        for round_ in range(1, min(ROUNDS, number - first) + 1):
            yield _open_sum(desk, replace(terms, round=round_), roster, vectors, rng)


def _open_sum(
    desk: Desk, terms: SumTerms, roster: HelperRoster, vectors: dict[str, Ints], rng: np.random.Generator
) -> int:
    card = roster.cards[-1]
    seeds = {client: rng.bytes(32) for client in vectors}
    places = {
        client: (terms.run, terms.round, terms.channel, client, card.name, terms.digest, roster.digest)
        for client in vectors
    }
    sealed = [seal(seeds[client], card.helper_key, box_context(*places[client])) for client in vectors]
    masked = np.sum(list(vectors.values()), axis=0).astype(dtype_of(terms.bits))
    masked += total_mask(seeds.values(), terms.size, terms.bits)
    desk.prepare(PrepareRequest(terms.to_json(), list(vectors), sealed))
    opened = desk.open(OpenRequest(terms.to_json(), list(vectors))).opened["sum"]
    return int(centre(masked - opened)[0])


def _noise_key(source: str, terms: SumTerms) -> bytes:
    return hashlib.sha256(f"{source} {terms.round}".encode()).digest()


def _terms(share: float, roster: HelperRoster) -> SumTerms:
    bound, rho = integer_clip(SIZE), rho_of(EPSILON, DELTA)
    return SumTerms(
        run=RUN,
        round=1,
        channel="train",
        size=SIZE,
        bits=32,
        bound=bound,
        clip=1.0,
        sign="signed",
        rho=rho,
        noise=round(share * noise_scale(rho, bound, "signed")),
        most=64,
        min_sum=2,
        layout=(("update", SIZE),),
        roster=roster.digest,
    )
