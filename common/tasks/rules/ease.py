"""Rules in closed form: EASE (Steck 2019, arXiv 1905.03375) over triples.

A triple is a trigger type, an action type and a relation.

A home has x ∈ {0,1}^V over the V triples that some home uses. With w = x/√|x| and G = Σ w wᵀ over the homes,
P = (G + λI)⁻¹, and the score of triple j is x_j − (Px)_j / P_jj. The server sends the eigenvectors of G,
of which there are at most as many as homes, so that a client can use any λ. A home has length 1 in G, whatever its number
of rules.

Under noise there is one sum: that of w, over all F²·R triples. A triple's score is its sum; the sum of products of so many
pairs would be noise alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from common.arrays import Arrays, Floats, Floats32, Ints
from common.errors import DataError, WireError
from common.tasks.closed_form import (
    Effort,
    Entries,
    RowNames,
    check_ids,
    check_sizes,
    choose_used,
    pairs_of,
    sum_entries,
    symmetric,
)
from common.tasks.rules.vocabulary import RuleCatalogue

USED, GRAM, OWNED, HITS, WEIGHTS = "ease_used", "ease_gram", "ease_owned", "ease_hits", "ease_weights"
"""Statistics of a client: triples, part of G, pairs of types, hits and odds by λ; w with noise."""

SIZES, TRIPLES, HOMES, PAIRS, OWNERS, VALUES, VECTORS, CHOICES, STRENGTH, CALIBRATION = (
    *("ease_sizes", "ease_triples", "ease_homes", "ease_pairs", "ease_owners", "ease_values", "ease_vectors"),
    *("ease_strengths", "ease_strength", "ease_calibration"),
)
"""Solution: F, R, 1 under noise, largest V; ids of the V triples, and the number of homes of each.

Ids of their pairs of device types, and the number of homes with devices of both.

Next, eigenvalues and eigenvectors of G.

Then each λ from which clients choose, the chosen one, and scale and offset of log-odds.
"""

POPULARITY = "ease_popularity"
"""Solution under noise: the sum of w, F²·R."""

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Values of λ from which clients choose if none is given, relative to homes of length 1."""

MIDDLE = 1.0
"""λ of a model whose sum of hits is not known yet."""

TOP = 20
"""Length of the list in which a hidden rule counts as a hit."""

MOST_TRIPLES = 2800
"""Largest number V of triples; of more, those that most homes use.

Their V(V + 1)/2 pairs fit a secure sum, and the solve takes 200 MB.
"""

MOST_POSSIBLE = 50_000_000
"""Largest number F²·R of triples of a vocabulary: their sum takes 400 MB."""

LEAST_EIGENVALUE = 1e-6
"""Eigenvalue below which a direction is one that no home has."""

LEAST_SHARE = 1e-3
"""Least probability, and distance to 1, of a score."""

LEAST_POPULARITY = 1e-4
"""Least share of homes of a triple of the sum."""

OUTSIDE = -10.0
"""Log-odds of rules that no home of the sum uses, before the calibration."""

BIN_EDGES = np.linspace(-8.0, 8.0, 65)
"""Edges of the bins of log-odds; those beyond are in the first and the last one."""

BINS = len(BIN_EDGES) - 1

NEWTON_STEPS = 20

LEAST_SCALE = 0.05
"""Least factor of the calibration, which keeps the order of rules."""


def _lists(solved: Arrays) -> tuple[int, ...]:
    """Return the lengths of the names of a triple: F, F, R."""
    entities, relations = solved[SIZES][:2].tolist()
    return entities, entities, relations


LASTING = {
    **dict.fromkeys((USED, WEIGHTS), RowNames(_lists)),
    GRAM: RowNames(_lists, chosen=TRIPLES, pairs="unordered"),
    OWNED: RowNames(lambda solved: _lists(solved)[:2], chosen=PAIRS),
}
"""Sums that other runs continue."""


ENTRIES = {**dict.fromkeys((USED, GRAM, OWNED), Entries(0, 1)), HITS: Entries()}
"""Ranges of statistics; see `ClosedForm.entries`."""


def sizes(catalogue: RuleCatalogue, noised: bool) -> Arrays:
    """Return what is known before the first sum.

    Raises:
        DataError: The vocabulary has too many triples.
    """
    entities, relations = len(catalogue.entities), len(catalogue.relations)
    if (triples := entities**2 * relations) > MOST_POSSIBLE:
        raise DataError(
            f"{entities:,} device types and {relations:,} relations have {triples:,} triples, of which a sum has at most"
            f" {MOST_POSSIBLE:,}; merge device types or relations of the vocabulary, or train with another method"
        )
    return {SIZES: np.array([entities, relations, noised, MOST_TRIPLES], np.int64)}


def effort(solved: Arrays) -> Effort:
    """Return the effort of the next solve: all eigenvectors of G."""
    size = len(solved[TRIPLES]) if TRIPLES in solved and VECTORS not in solved else 0
    return Effort(32 * size**2, 10 * size**3)


def is_solved(solved: Arrays) -> bool:
    """Return True if rules can be scored."""
    return VECTORS in solved or POPULARITY in solved


def check(solved: Arrays, catalogue: RuleCatalogue, *, noised: bool) -> None:
    """Check that what a server has solved belongs to a vocabulary.

    Raises:
        WireError: Sizes differ, or arrays do not fit each other.
    """
    expected = sizes(catalogue, noised)[SIZES]
    check_sizes(solved.get(SIZES, np.zeros(0)), expected)
    triples = solved.get(TRIPLES, np.zeros(0, np.int64))
    vectors, values = solved.get(VECTORS), solved.get(VALUES)
    if len(solved.get(HOMES, triples)) != len(triples):
        raise WireError("the server's numbers of homes do not fit its triples")
    check_ids(triples, MOST_TRIPLES, expected[0] ** 2 * expected[1], "triples")
    if not np.array_equal(solved.get(PAIRS, triples[:0]), np.unique(triples // expected[1])):
        raise WireError("the server's pairs of device types are not those of its triples")
    if vectors is not None and (values is None or vectors.shape != (len(values), len(triples))):
        raise WireError("the server's solution does not fit its triples")
    choices = solved.get(CHOICES, np.ones(1))
    if choices.ndim != 1 or len(choices) > len(STRENGTHS) or (choices <= 0).any():
        raise WireError("the server's strengths are not positive numbers")
    calibration = solved.get(CALIBRATION, np.ones(2))
    if calibration.shape != (2,) or not np.isfinite(calibration).all() or calibration[0] <= 0:
        raise WireError("the server's calibration is no scale with an offset")


def template(solved: Arrays) -> Arrays:
    """Return zeros of a client's next statistics.

    They are F²·R triples, then the V(V + 1)/2 pairs of V triples, and their pairs of device types. Last, for each λ, hits
    and the numbers of hidden and of other rules by log-odds. The others are tables of one column, of which a client sends
    the rows that it has.
    """
    if TRIPLES not in solved:
        entities, relations, noised, _ = solved[SIZES].tolist()
        return {WEIGHTS if noised else USED: np.zeros((entities**2 * relations, 1), np.float32)}
    if VECTORS not in solved:
        size = len(solved[TRIPLES])
        pairs = np.zeros((size * (size + 1) // 2, 1), np.float32)
        return {GRAM: pairs, OWNED: np.zeros((len(solved[PAIRS]), 1), np.float32)}
    return {HITS: np.zeros(len(solved[CHOICES]) * (1 + 2 * BINS), np.float32)}


def statistics(solved: Arrays, homes: Iterable[tuple[Ints, Ints]]) -> Arrays:
    """Return a client's next statistics, of the form of `template`; tables as the rows of its homes.

    Args:
        solved: What is solved.
        homes: Of each home, the ids of the triples of all rules between its devices, N × N × R, and those of its training
            rules.
    """
    if TRIPLES not in solved:
        triples = [np.unique(rules) for _, rules in homes]
        if solved[SIZES][2]:
            return sum_entries(WEIGHTS, [(home, 1 / np.sqrt(len(home))) for home in triples if len(home)])
        return sum_entries(USED, [(home, 1.0) for home in triples])
    if VECTORS not in solved:
        found = [(_positions_of(solved[TRIPLES], rules), _owned(solved, possible)) for possible, rules in homes]
        return {
            **sum_entries(GRAM, [(pairs_of(home), 1 / len(home)) for home, _ in found if len(home)]),
            **sum_entries(OWNED, [(pairs, 1.0) for home, pairs in found if len(home)]),
        }
    hits = np.zeros((len(solved[CHOICES]), 1 + 2 * BINS))
    for possible, rules in homes:
        hits += _count_hits(solved, possible, rules)
    return {HITS: hits.ravel().astype(np.float32)}


def solve(solved: Arrays, sums: Arrays, strength: float) -> Arrays:
    """Return what is solved after the next sums.

    Raises:
        DataError: No home has a rule.
    """
    if WEIGHTS in sums:
        return {**solved, POPULARITY: sums[WEIGHTS].ravel().astype(np.float32)}
    if USED in sums:
        homes = sums[USED].ravel()
        chosen = choose_used(homes, int(solved[SIZES][3]), "home", "rule")
        pairs = np.unique(chosen // solved[SIZES][1])
        return {**solved, TRIPLES: chosen, HOMES: homes[chosen].astype(np.float32), PAIRS: pairs}
    if GRAM in sums:
        return {
            **solved,
            **_decompose(symmetric(sums[GRAM].ravel())),
            OWNERS: sums[OWNED].ravel().astype(np.float32),
            CHOICES: np.array([strength] if strength else STRENGTHS, np.float32),
            STRENGTH: np.array([strength or MIDDLE], np.float32),
        }
    by_strength = sums[HITS].reshape(len(solved[CHOICES]), -1)
    best = int(np.argmax(by_strength[:, 0]))
    calibration = _calibrate(*np.split(np.maximum(by_strength[best, 1:], 0), 2))
    return {**solved, STRENGTH: solved[CHOICES][[best]], CALIBRATION: calibration}


def logits(solved: Arrays, possible: Ints, rules: Ints) -> Floats32:
    """Return log-odds of rules; those outside the triples of all homes are the least likely.

    Args:
        solved: The solution.
        possible: Ids of the triples of the rules.
        rules: Ids of the triples of the home's training rules.
    """
    if POPULARITY in solved:
        homes = solved[POPULARITY][possible]
        return np.asarray(homes - solved[POPULARITY].max(), np.float32)
    columns = _positions_of(solved[TRIPLES], possible)
    triples = solved[TRIPLES][columns]
    precision = Precision.of(solved, float(solved[STRENGTH].item()), columns)
    return _calibrated(solved, triples, _odds(precision.scores(_positions_of(triples, rules))), possible)


def hidden_logits(solved: Arrays, rules: Ints, others: Ints) -> tuple[Floats32, Floats32]:
    """Return log-odds of a home's own rules, each as if it were hidden, and of other rules.

    The home is then not in the sum either. Other rules have the mean over the hidden ones. In runs with noise, the sum has no
    rules of a single home.

    Args:
        solved: The solution.
        rules: Ids of the triples of the home's training rules.
        others: Ids of the triples of other rules.
    """
    if POPULARITY in solved:
        return logits(solved, rules, rules), logits(solved, others, rules)
    columns = _positions_of(solved[TRIPLES], np.concatenate([rules, others]))
    triples = solved[TRIPLES][columns]
    mine, odds = _positions_of(triples, rules), _odds(np.zeros(len(triples)))
    if len(mine) > 1:
        hidden = _odds(Precision.of(solved, float(solved[STRENGTH].item()), columns).hidden_scores(mine))
        odds = hidden.mean(0)
        odds[mine] = hidden[np.arange(len(mine)), mine]
    return _calibrated(solved, triples, odds, rules), _calibrated(solved, triples, odds, others)


def _calibrated(solved: Arrays, triples: Ints, odds: Floats, wanted: Ints) -> Floats32:
    """Return the calibrated log-odds of wanted triples, by those of `triples`, ascending."""
    found, is_inside = np.full(wanted.shape, OUTSIDE), np.isin(wanted, triples)
    found[is_inside] = odds[np.searchsorted(triples, wanted[is_inside])]
    scale, offset = solved.get(CALIBRATION, np.array([1.0, 0.0])).tolist()
    return np.asarray(scale * found + offset, np.float32)


def _odds(scores: Floats) -> Floats:
    """Return log-odds of scores; the second term keeps the order where shares are cut."""
    share = np.clip(scores, LEAST_SHARE, 1 - LEAST_SHARE)
    odds: Floats = np.log(share / (1 - share)) + scores
    return odds


def _calibrate(right: Floats, wrong: Floats) -> Floats32:
    """Return scale and offset of log-odds by logistic regression on the numbers of rules by bin.

    Args:
        right: Hidden rules of homes.
        wrong: Other rules, as many.
    """
    x = np.stack([(BIN_EDGES[1:] + BIN_EDGES[:-1]) / 2, np.ones(BINS)])
    w, before, total = np.zeros(2), np.array([1.0, 0.0]), right + wrong
    for _ in range(NEWTON_STEPS):  # the prior, of one rule's weight, is no calibration
        share = 1 / (1 + np.exp(-(w @ x)))
        slope = x @ (total * share - right) + (w - before)
        w = w - np.linalg.solve((x * (total * share * (1 - share))) @ x.T + np.eye(2), slope)
    return np.array([max(w[0], LEAST_SCALE), w[1]], np.float32)


def popularity(solved: Arrays, possible: Ints) -> Floats:
    """Return the log share of homes of each triple, diag(G)/tr(G); a home of |x| triples counts 1/|x|.

    Args:
        solved: The solution, without noise.
        possible: Ids of the triples.
    """
    columns = _positions_of(solved[TRIPLES], possible)
    weights, triples = solved[VALUES] @ solved[VECTORS][:, columns] ** 2, solved[TRIPLES][columns]
    found, is_inside = np.full(possible.shape, OUTSIDE), np.isin(possible, triples)
    logs = np.log(np.maximum(weights / solved[VALUES].sum(), LEAST_POPULARITY))
    found[is_inside] = logs[np.searchsorted(triples, possible[is_inside])]
    return found


def homes_with(solved: Arrays, trigger: int, action: int, relation: int) -> tuple[float, float]:
    """Return the numbers of homes with a triple, and with devices of both types; 0 if they are not known."""
    if OWNERS not in solved:
        return 0.0, 0.0
    entities, relations = solved[SIZES][:2].tolist()
    pair = trigger * entities + action
    found, is_pair = solved[TRIPLES] == pair * relations + relation, solved[PAIRS] == pair
    return float(solved[HOMES][found].sum()), float(solved[OWNERS][is_pair].sum())


def number_of_homes(solved: Arrays) -> float:
    """Return the number of homes with a rule, the trace of G; 0 if it is not known."""
    return float(np.round(solved[VALUES].sum())) if VALUES in solved else 0.0


def _decompose(gram: Floats) -> Arrays:
    """Return eigenvalues, descending, and eigenvectors, r × V, of a symmetric matrix."""
    values, vectors = np.linalg.eigh(gram)
    order = np.flatnonzero(values > LEAST_EIGENVALUE)[::-1]
    return {VALUES: values[order].astype(np.float32), VECTORS: vectors[:, order].T.astype(np.float32)}


def _positions_of(ids: Ints, wanted: Ints) -> Ints:
    """Return the positions in `ids`, ascending, of those wanted ids that are in it."""
    return np.flatnonzero(np.isin(ids, wanted))


def _owned(solved: Arrays, possible: Ints) -> Ints:
    """Return the positions in `PAIRS` of the pairs of types that two devices of a home have."""
    pairs = possible[..., 0][~np.eye(len(possible), dtype=bool)] // solved[SIZES][1]
    return _positions_of(solved[PAIRS], pairs)


def _count_hits(solved: Arrays, possible: Ints, rules: Ints) -> Floats:
    """Return the hits by λ if each of a home's triples is hidden in turn; numbers of triples by log-odds.

    These are the hidden triples, and those that the home lacks, as many in sum. The home is not in the sum from which it is
    judged. Only its other triples are left out of the list.
    """
    found = np.zeros((len(solved[CHOICES]), 1 + 2 * BINS))
    columns = _positions_of(solved[TRIPLES], possible)
    mine = _positions_of(solved[TRIPLES][columns], rules)
    if len(mine) < 2:
        return found
    rivals = np.setdiff1d(np.arange(len(columns)), mine)
    for k, strength in enumerate(solved[CHOICES].tolist()):
        scores = Precision.of(solved, strength, columns).hidden_scores(mine)
        hidden = scores[np.arange(len(mine)), mine]
        right, wrong = (
            np.bincount(np.digitize(_odds(each.ravel()), BIN_EDGES[1:-1]), minlength=BINS)
            for each in (hidden, scores[:, rivals])
        )
        hits = ((scores[:, rivals] > hidden[:, None]).sum(1) < TOP).sum()
        found[k] = np.concatenate([[hits], right, wrong / max(len(rivals), 1)])
    return found


@dataclass(frozen=True, eq=False)
class Precision:
    """Rows and columns of P = (G + λI)⁻¹ for C of the V triples, in the form I/λ + Uᵀ·diag(s)·U.

    Args:
        strength: λ.
        vectors: U, r × C.
        spread: s, 1/(value + λ) − 1/λ for each eigenvalue of G, r.
        diagonal: Diagonal of P, C.
    """

    strength: float
    vectors: Floats
    spread: Floats
    diagonal: Floats

    @classmethod
    def of(cls, solved: Arrays, strength: float, columns: Ints) -> "Precision":
        """Return P of a solution and λ for the triples at these positions, such as all that a home can have."""
        vectors = solved[VECTORS][:, columns].astype(np.float64)
        spread = 1 / (solved[VALUES].astype(np.float64) + strength) - 1 / strength
        return cls(strength, vectors, spread, 1 / strength + spread @ vectors**2)

    def rows(self, mine: Ints) -> Floats:
        """Return the rows of P at these positions, |mine| × C."""
        rows: Floats = (self.vectors[:, mine].T * self.spread) @ self.vectors
        rows[np.arange(len(mine)), mine] += 1 / self.strength
        return rows

    def scores(self, mine: Ints) -> Floats:
        """Return the scores for a home with triples at these positions, C.

        That of an own triple is by the others alone; another pair of devices can have it.
        """
        scores: Floats = -self.rows(mine).sum(0) / self.diagonal
        scores[mine] += 1
        return scores

    def hidden_scores(self, mine: Ints) -> Floats:
        """Return the scores if one own triple at a time is hidden, and the home is not in the sum.

        G − wwᵀ is inverted by Sherman and Morrison's formula.

        Args:
            mine: Positions of the home's triples, at least 2.

        Returns:
            Row k: scores of the C triples for the home without `mine[k]`.
        """
        rows, root = self.rows(mine), np.sqrt(len(mine))
        u = rows.sum(0) / root
        factor = 1 / (1 - u[mine].sum() / root)
        others = rows.sum(0) - rows
        along = others[:, mine].sum(1, keepdims=True) / root
        hidden: Floats = -(others + factor * along * u) / (self.diagonal + factor * u**2)
        return hidden
