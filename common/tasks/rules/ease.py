"""Rules in closed form: EASE (Steck 2019, arXiv 1905.03375) over triples.

A triple is a trigger type, an action type and a relation.

A home has x ∈ {0,1}^V over the V triples that some home uses. With w = x/√|x| and G = Σ w wᵀ over the homes,
P = (G + λI)⁻¹, and the score of a triple j that a home lacks is −(Px)_j / P_jj. The server sends the eigenvectors of G,
of which there are at most as many as homes, so that a client can use any λ. A home has length 1 in G, whatever its number
of rules.

Under noise there is one sum: that of w, over all F²·R triples. A triple's score is its sum; the sum of products of so many
pairs would be noise alone.
"""

from dataclasses import dataclass

import numpy as np

from common.arrays import Array, Arrays, Floats, Floats32, Ints
from common.errors import DataError, WireError
from common.tasks.rules.vocabulary import RuleCatalogue

USED, GRAM, HITS, WEIGHTS = "ease_used", "ease_gram", "ease_hits", "ease_weights"
"""Statistics of a client: its triples, its part of G, its hits by λ; w in runs with noise."""

SIZES, TRIPLES, VALUES, VECTORS, STRENGTH = (
    *("ease_sizes", "ease_triples", "ease_values"),
    *("ease_vectors", "ease_strength"),
)
"""Solution: F, R and 1 under noise; ids of the V triples; eigenvalues and eigenvectors of G; λ."""

POPULARITY = "ease_popularity"
"""Solution under noise: the sum of w, F² × R."""

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Values of λ from which clients choose, relative to homes of length 1."""

MIDDLE = 1.0
"""λ of a model whose sum of hits is not known yet."""

TOP = 20
"""Length of the list in which a hidden rule counts as a hit."""

MOST_TRIPLES = 4000
"""Largest number V of triples; of more, those that most homes use. The solve takes 24·V² bytes."""

LEAST_EIGENVALUE = 1e-6
"""Eigenvalue below which a direction is one that no home has."""

LEAST_SHARE = 1e-3
"""Least probability, and distance to 1, of a score."""

OUTSIDE = -10.0
"""Log-odds of rules that no home of the sum uses."""


def start(catalogue: RuleCatalogue, noised: bool) -> Arrays:
    """Return what is known before the first sum."""
    return {SIZES: np.array([len(catalogue.entities), len(catalogue.relations), noised], np.int64)}


def is_solved(solved: Arrays) -> bool:
    """Return True if rules can be scored."""
    return VECTORS in solved or POPULARITY in solved


def check(solved: Arrays, catalogue: RuleCatalogue, *, noised: bool) -> None:
    """Check that what a server has solved belongs to a vocabulary.

    Raises:
        WireError: Sizes differ, or arrays do not fit each other.
    """
    sizes = start(catalogue, noised)[SIZES]
    if SIZES not in solved or not np.array_equal(solved[SIZES], sizes):
        raise WireError("the server's sums are not of this vocabulary")
    triples = solved.get(TRIPLES, np.zeros(0, np.int64))
    vectors, values = solved.get(VECTORS), solved.get(VALUES)
    inside = triples.dtype == np.int64 and triples.ndim == 1 and len(triples) <= MOST_TRIPLES
    inside = inside and bool((np.diff(triples) > 0).all() and (triples >= 0).all())
    if not inside or (triples >= sizes[0] ** 2 * sizes[1]).any():
        raise WireError("the server's triples are out of order, or not of this vocabulary")
    if vectors is not None and (values is None or vectors.shape != (len(values), len(triples))):
        raise WireError("the server's solution does not fit its triples")


def template(solved: Arrays) -> Arrays:
    """Return zeros of a client's next statistics.

    They are F² × R triples, then V × V products, then hits by λ and the number of tries.
    """
    if TRIPLES not in solved:
        entities, relations, noised = solved[SIZES].tolist()
        return {WEIGHTS if noised else USED: np.zeros((entities**2, relations), np.float32)}
    if VECTORS not in solved:
        size = len(solved[TRIPLES])
        return {GRAM: np.zeros((size, size), np.float32)}
    return {HITS: np.zeros(len(STRENGTHS) + 1, np.float32)}


def add_home(total: Arrays, solved: Arrays, possible: Ints, rules: Ints) -> None:
    """Add a home to a client's statistics, in place.

    Args:
        total: Statistics so far, of the form of `template`.
        solved: What is solved.
        possible: Ids of the triples of all rules that the home can have.
        rules: Ids of the triples of its training rules.
    """
    if USED in total:
        total[USED].reshape(-1)[np.unique(rules)] += 1
        return
    if WEIGHTS in total:
        mine = np.unique(rules)
        total[WEIGHTS].reshape(-1)[mine] += np.float32(1 / np.sqrt(max(len(mine), 1)))
        return
    mine = _known(solved, rules)
    if GRAM in total and len(mine):
        total[GRAM][np.ix_(mine, mine)] += np.float32(1 / len(mine))
    elif HITS in total and len(mine) > 1:
        total[HITS] += _count_hits(solved, _known(solved, possible), mine)


def solve(solved: Arrays, sums: Arrays, strength: float) -> Arrays:
    """Return what is solved after the next sums.

    Raises:
        DataError: No home has a rule.
    """
    if WEIGHTS in sums:
        return {**solved, POPULARITY: sums[WEIGHTS].astype(np.float32)}
    if USED in sums:
        return {**solved, TRIPLES: _choose_triples(sums[USED].ravel())}
    if GRAM in sums:
        return {**solved, **_decompose(sums[GRAM]), STRENGTH: np.array([strength or MIDDLE], np.float32)}
    best = STRENGTHS[int(np.argmax(sums[HITS][:-1]))]
    return {**solved, STRENGTH: np.array([best], np.float32)}


def logits(solved: Arrays, possible: Ints, rules: Ints) -> Floats32:
    """Return log-odds of rules; those outside the triples of all homes are the least likely.

    Args:
        solved: The solution.
        possible: Ids of the triples of the rules.
        rules: Ids of the triples of the home's training rules.
    """
    if POPULARITY in solved:
        homes = solved[POPULARITY].reshape(-1)[possible]
        return np.asarray(homes - solved[POPULARITY].max(), np.float32)
    x, positions = np.zeros(len(solved[TRIPLES])), _positions(solved, possible)
    x[_known(solved, rules)] = 1
    scores = Precision.of(solved, float(solved[STRENGTH].item())).scores(x)
    share = np.clip(scores, LEAST_SHARE, 1 - LEAST_SHARE)
    odds = np.log(share / (1 - share)) + scores  # the second term keeps the order where shares are cut
    return np.where(positions >= 0, odds[positions], OUTSIDE).astype(np.float32)


def _choose_triples(homes: Floats) -> Ints:
    """Return the ids of the triples of at least one home, ascending."""
    chosen = np.flatnonzero(homes > 0.5)
    if not len(chosen):
        raise DataError("no home of this run has a rule, so there is nothing to solve; add homes with rules")
    if len(chosen) > MOST_TRIPLES:
        chosen = np.sort(chosen[np.argsort(-homes[chosen], kind="stable")[:MOST_TRIPLES]])
    return chosen.astype(np.int64)


def _decompose(gram: Array) -> Arrays:
    """Return eigenvalues, descending, and eigenvectors, r × V, of a matrix symmetric up to rounding."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    order = np.flatnonzero(values > LEAST_EIGENVALUE)[::-1]
    return {VALUES: values[order].astype(np.float32), VECTORS: vectors[:, order].T.astype(np.float32)}


def _positions(solved: Arrays, ids: Ints) -> Ints:
    """Return the position of each triple in the solution; −1 if it is not in it."""
    triples = solved[TRIPLES]
    nearest = np.searchsorted(triples, ids).clip(max=len(triples) - 1)
    return np.where(triples[nearest] == ids, nearest, -1)


def _known(solved: Arrays, ids: Ints) -> Ints:
    """Return the positions of those triples that are in the solution, ascending, each once."""
    positions = _positions(solved, ids)
    return np.unique(positions[positions >= 0])


def _count_hits(solved: Arrays, possible: Ints, mine: Ints) -> Floats:
    """Return the hits by λ if each of a home's triples is hidden in turn, and the number of tries.

    The home is not in the sum from which it is judged. Only its other triples are left out of the list.
    """
    hits = np.zeros(len(STRENGTHS) + 1)
    hits[-1] = len(mine)
    rivals = np.setdiff1d(possible, mine)
    for k, strength in enumerate(STRENGTHS):
        scores = Precision.of(solved, strength).hidden_scores(mine)
        hidden = scores[np.arange(len(mine)), mine]
        hits[k] = ((scores[:, rivals] > hidden[:, None]).sum(1) < TOP).sum()
    return hits


@dataclass(frozen=True, eq=False)
class Precision:
    """P = (G + λI)⁻¹ in the form I/λ + Uᵀ·diag(s)·U.

    Args:
        strength: λ.
        vectors: U, r × V.
        spread: s, 1/(value + λ) − 1/λ for each eigenvalue of G, r.
        diagonal: Diagonal of P, V.
    """

    strength: float
    vectors: Floats
    spread: Floats
    diagonal: Floats

    @classmethod
    def of(cls, solved: Arrays, strength: float) -> "Precision":
        """Return P of a solution and λ."""
        vectors = solved[VECTORS].astype(np.float64)
        spread = 1 / (solved[VALUES].astype(np.float64) + strength) - 1 / strength
        return cls(strength, vectors, spread, 1 / strength + spread @ vectors**2)

    def times(self, x: Floats) -> Floats:
        """Return xP for rows x, … × V."""
        product: Floats = x / self.strength + ((x @ self.vectors.T) * self.spread) @ self.vectors
        return product

    def scores(self, x: Floats) -> Floats:
        """Return the scores of all triples for a home, V; those of triples that it has mean nothing."""
        scores: Floats = -self.times(x) / self.diagonal
        return scores

    def hidden_scores(self, mine: Ints) -> Floats:
        """Return the scores if one own triple at a time is hidden, and the home is not in the sum.

        G − wwᵀ is inverted by Sherman and Morrison's formula.

        Args:
            mine: Positions of the home's triples, at least 2.

        Returns:
            Row k: scores of all triples for the home without `mine[k]`.
        """
        unit, root = np.zeros((len(mine), self.vectors.shape[1])), np.sqrt(len(mine))
        unit[np.arange(len(mine)), mine] = 1
        rows = self.times(unit)
        u = rows.sum(0) / root
        factor = 1 / (1 - u[mine].sum() / root)
        others = rows.sum(0) - rows
        along = others[:, mine].sum(1, keepdims=True) / root
        hidden: Floats = -(others + factor * along * u) / (self.diagonal + factor * u**2)
        return hidden
