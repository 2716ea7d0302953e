"""Own mean, report and prediction of a rater, the private part of the default ratings model.

Design S of explore-ratings.md §3. Only the report leaves the client.
"""

import math

import numpy as np
from numpy.typing import NDArray

from client.tasks.ratings.data.raters import Rated
from common.arrays import Floats, Ints
from common.privacy.mechanisms import build_account, build_mechanism, select_spec
from common.privacy.options import PrivacyOptions
from common.tasks.ratings.options import RatingsOptions

TYPICAL = 40
"""Typical number of ratings of a report; its L1 norm is √40 times its L2 norm, for Laplace noise."""

COHORT = 1000
"""Number of clients whose local noise `slope_noise` was fitted to.

The noise of two helpers counts as one client's share of it.
"""


def own_mean(train: Rated, options: RatingsOptions) -> float:
    """Compute (Σr + w·prior)/(n + w), the local baseline of the ratings task."""
    w = options.prior_weight
    return float((train.values.sum() + w * options.prior) / (len(train) + w))


def report(train: Rated, items: int, options: RatingsOptions) -> Floats:
    """Compute the report x_u, of length I and norm 1.

    Before scaling it is a·n/(n + w) + r − own mean on the n rated products and 0 elsewhere. A constant a > 0 adds a signal of
    popularity. The report of a rater without ratings is 0. Reports of norm 1 need no clipping.
    """
    x = np.zeros(items)
    constant = options.offset * len(train) / (len(train) + options.offset_weight) if len(train) else 0.0
    x[train.items] = constant + train.values - own_mean(train, options)
    return normalize(x)


def normalize(x: Floats) -> Floats:
    """Return the vector divided by its norm; norms up to 1e-9 give zero."""
    norm = float(np.linalg.norm(x))
    return x / norm if norm > 1e-9 else np.zeros_like(x)


def normal_scores(scores: NDArray[np.floating]) -> Floats:
    """Compute z, of length I: normal scores Φ⁻¹((rank − ½)/I) of the products; ties share their mean rank.

    z does not depend on shift and scale of the scores. Compared with scores of unit variance, its error is equal under noise
    and far lower without noise. Sums over clients have heavy tails, since few products have most ratings.
    """
    from scipy.special import ndtri  # most runs need none

    _, level, equal = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(equal) - (equal - 1) / 2)[level]
    return np.asarray(ndtri((ranks - 0.5) / len(scores)))


def adjust_to_noise(options: RatingsOptions, privacy: PrivacyOptions, rounds: int, items: int) -> RatingsOptions:
    """Return the options with the slope reduced for noisy scores: slope·c, of weight w/c².

    c = 1/√(1 + (σ/σ₀)²) models the correlation of noisy and exact scores; σ₀ is `slope_noise`. σ is the noise per coordinate
    of the mean of a client's reports of norm 1, if all rounds cost the same. All of it is public.
    """
    c = 1 / math.hypot(1.0, _noise_std(privacy, rounds, items) / options.slope_noise)
    return options.model_copy(update={"slope": options.slope * c, "slope_weight": options.slope_weight / c**2})


def _noise_std(privacy: PrivacyOptions, rounds: int, items: int) -> float:
    if privacy.unit == "none":
        return 0.0
    total = build_account(privacy).total(privacy.epsilon, privacy.delta)
    if privacy.resolved_trust == "helpers" and privacy.unit == "client":
        summed = select_spec(privacy).calibrate(privacy, total / rounds, items)
        return math.sqrt(2 / COHORT / rounds) * summed.noise / (summed.sensitivity / 2)
    mechanism = build_mechanism(privacy, total / rounds, items)
    return mechanism.standard_deviation(TYPICAL) / (privacy.clip * math.sqrt(rounds))


def predict(z: Floats, train: Rated, items: Ints, options: RatingsOptions) -> Floats:
    """Predict a rater's ratings m + s·(z_i − z̄) of the items, clipped to [0, 1].

    m is the own mean. z̄ is the mean of z over the rated products, with `prior_weight` further products of z = 0. The slope s
    fits the own ratings by ridge regression towards the public slope: s = (Σ(z − z̄)(r − m) + w·slope)/(Σ(z − z̄)² + w).

    Args:
        z: Normal scores of all products, I.
        train: Training ratings of the rater.
        items: Products to predict, n.
        options: Options, adjusted to the noise of the scores.
    """
    m = own_mean(train, options)
    center = z[train.items].sum() / (len(train) + options.prior_weight)
    away, w = z[train.items] - center, options.slope_weight
    s = (away @ (train.values - m) + w * options.slope) / (away @ away + w)
    return np.asarray(np.clip(m + s * (z[items] - center), 0, 1))
