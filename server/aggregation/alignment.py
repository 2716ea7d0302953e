"""Alignment of each client's updates with those of the others, over rounds. Pure, NumPy.

The alignment c of a client in a round is the cosine of its update with the sum of the others' directions Δ_j/‖Δ_j‖, of those
that are not opposed themselves. Two tests are made on means over rounds, at a family-wise level α by Bonferroni, with m
clients and n rounds of a client:

- The mean is below 0: c̄·√n/σ < Φ⁻¹(α/(m·n(n + 1))). σ is the clients' standard deviation of c over rounds, less the
  round's median, of which the median over the clients counts. The
  sum of 1/(n(n + 1)) over all rounds is 1.
- It is an outlier: (c̄ − median)/(1.4826·MAD) < t⁻¹(α/m), median and MAD over the clients; the MAD of m clients is as certain as
  a standard deviation of 0.37·m. Where a model has converged, honest updates cancel out, and many are a little opposed.

Liars that agree among each other are a coalition. They are not in the sum from which others are judged.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Arrays, Flags, Floats, Floats32

LEVEL = 0.01
"""Family-wise level α: probability that a run names a client whose expected alignment is at least 0."""

SUSPICION = 0.1
"""Level of the suspicion in one round, by which a client is not named."""

COALITION, LEAST_DEVIATIONS, LEAST_SHARE = 1e-4, 10.0, 0.05
"""Level of a coalition in one round of many, its least distance, and its least share of the clients.

A few may share data. The distance is in standard deviations.
"""

PAIR = 1.25
"""Factor on the least distance of two clients alone, whose likeness is one coincidence and not two.

Honest pairs that share data reached 12 standard deviations, and larger honest groups 8. Pairs that promote an item reach 16.
"""

MIN_ROUNDS, MIN_CLIENTS = 2, 10
"""Rounds of a client, and clients of a round, from which alignment is judged."""

ROOM, MIN_BUCKETS = 1 << 17, 1024
"""Numbers of all directions in memory, and numbers of one where that is more."""

BLOCK = 1024
"""Clients whose products with all others are in memory."""

TINY = 1e-12
"""Squared norm of a sum of directions that counts as 0."""

NORMAL = statistics.NormalDist()
DEVIATIONS, EFFICIENCY = 1 / NORMAL.inv_cdf(0.75), 0.37
"""Standard deviation of a normal distribution in median absolute deviations, and efficiency of these."""


@dataclass(frozen=True)
class Alignment:
    """Sums over the rounds of a client.

    Args:
        rounds: Number n of rounds.
        total: Σc.
        difference: Σd of the differences d to the round's median over clients, which all clients share.
        squares: Σd².
    """

    rounds: int = 0
    total: float = 0.0
    difference: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """Mean c̄ of the alignment."""
        return self.total / self.rounds

    @property
    def variance(self) -> float:
        """Variance of the differences d over two or more rounds; the median of a χ² scales it."""
        degrees = self.rounds - 1
        spread = max(self.squares - self.difference**2 / self.rounds, 0.0) / degrees
        return spread / (1 - 2 / (9 * degrees)) ** 3

    def add(self, cosine: float, median: float) -> "Alignment":
        """Return the sums after one more round, in which the clients' median was this one."""
        d = cosine - median
        return Alignment(self.rounds + 1, self.total + cosine, self.difference + d, self.squares + d**2)


def directions(updates: Mapping[str, Callable[[], Arrays]]) -> tuple[list[str], Floats32]:
    """Return the clients with an update, and their directions Δ_k/‖Δ_k‖ as rows.

    Updates are read one at a time. Where they do not fit into `ROOM`, their numbers are added up with random signs in as many
    buckets as there is room for. Cosines are then true but for 1/√buckets (Charikar et al. 2002, count sketch).
    """
    most = max(ROOM // max(len(updates), 1), MIN_BUCKETS)
    names, rows, signs = list[str](), list[Floats32](), np.zeros(0, np.int8)
    for client, load in updates.items():
        if not (update := load()):  # the method sends none
            continue
        vector = np.concatenate([update[name].ravel() for name in sorted(update)], dtype=np.float32)
        if len(vector) > most:
            if len(signs) != len(vector):
                signs = np.random.default_rng(len(vector)).integers(0, 2, len(vector), np.int8) * 2 - 1
            vector *= signs
            whole = len(vector) // most * most
            folded = vector[:whole].reshape(-1, most).sum(axis=0)
            folded[: len(vector) - whole] += vector[whole:]
            vector = folded
        length = float(np.linalg.norm(vector))
        if 0 < length < math.inf:
            names.append(client)
            rows.append(vector / np.float32(length))
    return names, np.array(rows, np.float32)


def find_coalition(rows: Floats32) -> Flags:
    """Return which clients, from a twentieth to half of all, agree more than honest ones do.

    They are outliers in arctanh of the cosine with the nearest other client, at `COALITION` by Bonferroni. That liars agree
    more than honest clients is of Fung et al. 2020 (FoolsGold, arXiv 1808.04866). Cosines are of differences from the mean
    direction, which all clients share.

    Args:
        rows: Directions Δ_k/‖Δ_k‖, m × numbers; of fewer than ten, none is found.
    """
    count = len(rows)
    if count < MIN_CLIENTS:
        return np.zeros(count, bool)
    rows, nearest = rows - rows.mean(axis=0), np.zeros(count)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    for start in range(0, count, BLOCK):  # all products of 10,000 clients take 400 MB
        products = rows[start : start + BLOCK] @ rows.T
        np.fill_diagonal(products[:, start:], -1)
        nearest[start : start + BLOCK] = products.max(axis=1)
    nearest = np.arctanh(np.clip(nearest, -1 + TINY, 1 - TINY))
    distance, least = _deviations(nearest), max(_limit(count, COALITION), LEAST_DEVIATIONS)
    found = distance > least
    if found.sum() == 2:
        found = distance > PAIR * least
    return found & bool(max(2, LEAST_SHARE * count) <= found.sum() < count / 2)


def _deviations(values: Floats) -> Floats:
    """Return the distances to the median, in standard deviations by the MAD."""
    distance = values - np.median(values)
    return np.asarray(distance / max(DEVIATIONS * float(np.median(np.abs(distance))), TINY))


def _limit(clients: int, level: float) -> float:
    """Return the distance in standard deviations beyond which one of these clients is an outlier."""
    from scipy.special import stdtrit

    return -float(stdtrit(EFFICIENCY * (clients - 1), level / clients))


def cosines(names: Sequence[str], rows: Floats32, coalition: Flags) -> dict[str, float]:
    """Return client -> alignment with those outside the coalition, then not opposed either."""
    found, is_in = np.zeros(len(names)), ~coalition
    for _ in range(2 if len(names) > 1 else 0):
        total = rows[is_in].sum(axis=0, dtype=np.float64)
        products = rows @ total
        squares = total @ total - is_in * (2 * products - 1)
        found = (products - is_in) / np.sqrt(np.maximum(squares, TINY))
        is_in = ~coalition & (found >= 0)
    return dict(zip(names, found.tolist(), strict=True))


def outliers(means: Mapping[str, float], level: float) -> set[str]:
    """Return the clients that are opposed to the others and an outlier among them; none of fewer than ten."""
    if len(means) < MIN_CLIENTS:
        return set()
    values = np.array([*means.values()])
    is_far = (values < 0) & (_deviations(values) < -_limit(len(means), level))
    return {client for client, far in zip(means, is_far.tolist(), strict=True) if far}


def find_opposed(memory: Mapping[str, Alignment], clients: Sequence[str]) -> dict[str, str]:
    """Return client -> reason for clients of a round whose alignment is persistently negative."""
    judged = {client: one for client, one in memory.items() if one.rounds >= MIN_ROUNDS}
    if len(judged) < MIN_CLIENTS:
        return {}
    deviation = math.sqrt(statistics.median(one.variance for one in judged.values()))
    middle, found = statistics.median(one.mean for one in judged.values()), {}
    for client in sorted(outliers({client: one.mean for client, one in judged.items()}, LEVEL) & {*clients}):
        one = judged[client]
        share = LEVEL / (len(judged) * one.rounds * (one.rounds + 1))
        if one.mean * math.sqrt(one.rounds) < NORMAL.inv_cdf(share) * deviation:
            text = f"opposed to the others in {one.rounds} rounds: mean cosine {one.mean:.2f}, typical {middle:.2f}"
            found[client] = text
    return found


VOTES = 0.05
"""Level of the sign test on the votes of clients in one round, by which a client is not named."""


def has_majority(against: int, votes: int, level: float = VOTES, chance: float = 0.5) -> bool:
    """Return True if so many votes are against a client, by a binomial test at this level.

    `chance` is the probability of a vote against an honest client.
    """
    at_least = sum(math.comb(votes, k) * chance**k * (1 - chance) ** (votes - k) for k in range(against, votes + 1))
    return at_least <= level


def find_in_impossible(votes: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Return client -> reason for clients that are in more impossible groups than chance explains.

    Args:
        votes: Client -> number of impossible groups that it was in, and number of its rounds that had one.
    """
    impossible, rounds = (sum(column) for column in zip(*votes.values(), strict=True))
    chance, found = impossible / rounds, {}
    for client, (number, of) in votes.items():
        if has_majority(number, of, LEVEL / (len(votes) * of * (of + 1)), chance):
            found[client] = f"in {number} impossible groups in {of} rounds; groups drawn at random have {chance:.0%}"
    return found
