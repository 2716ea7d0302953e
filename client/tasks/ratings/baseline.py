"""What a client makes of its own ratings and of the products' scores: its own mean, its report, its prediction.

The default model's personal half (explore-ratings.md §3, design S). Nothing of it leaves the client but the report.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from client.tasks.ratings.data.split import Rated
from common.privacy.mechanisms.registry import build_account, build_mechanism
from common.privacy.options import PrivacyOptions
from common.tasks.ratings.options import RatingsOptions

Floats = NDArray[np.float64]

TYPICAL = 40
"""Ratings of a report whose L1 norm is compared with its L2 norm, √40 of it, where Laplace noise goes by the former."""


def own_mean(train: Rated, options: RatingsOptions) -> float:
    """(Σr + w·prior)/(n + w): the local line of the ratings task."""
    w = options.prior_weight
    return float((train.values.sum() + w * options.prior) / (len(train) + w))


def report(train: Rated, items: int, options: RatingsOptions) -> Floats:
    """x_u, of length I: a·n/(n + w) + r − own mean on the n products the person rated, 0 elsewhere, of norm 1.

    It is all 0 of a person without ratings. a > 0 lets popularity carry signal. The norm is the same for everybody, so that
    nothing is left to clip.
    """
    x = np.zeros(items)
    there = options.offset * len(train) / (len(train) + options.offset_weight) if len(train) else 0.0
    x[train.items] = there + train.values - own_mean(train, options)
    return unit(x)


def unit(x: Floats) -> Floats:
    """A vector's direction; zero stays zero."""
    norm = float(np.linalg.norm(x))
    return x / norm if norm > 1e-9 else np.zeros_like(x)


def standing(scores: NDArray[np.floating]) -> Floats:
    """z, of length I: normal scores Φ⁻¹((rank − ½)/I) of the products, equals sharing their mean rank.

    Neither shift nor scale of the scores matters. Beside scores scaled to unit variance it is as good under noise, and
    without noise far better: sums over clients have heavy tails, since few products have most of the ratings.
    """
    return np.asarray(ndtri((rankdata(scores) - 0.5) / len(scores)))


def expecting(options: RatingsOptions, privacy: PrivacyOptions, rounds: int, items: int) -> RatingsOptions:
    """The options with what may be expected of scores of which a part is noise: slope·c, and of weight w/c².

    c = 1/√(1 + (σ/σ₀)²) is how far noisy scores go with exact ones. σ₀ is `slope_noise`; σ the deviation that the mechanism
    puts on one number of the mean of a client's reports, each of norm 1, where all rounds cost the same. All of it is public.
    """
    c = 1 / math.hypot(1.0, _noise(privacy, rounds, items) / options.slope_noise)
    return options.model_copy(update={"slope": options.slope * c, "slope_weight": options.slope_weight / c**2})


def _noise(privacy: PrivacyOptions, rounds: int, items: int) -> float:
    if privacy.unit == "none":
        return 0.0
    total = build_account(privacy).total(privacy.epsilon, privacy.delta)
    mechanism = build_mechanism(privacy, total / rounds, items)
    return mechanism.standard_deviation(TYPICAL) / (privacy.clip * math.sqrt(rounds))


def predicted(z: Floats, train: Rated, items: NDArray[np.int64], options: RatingsOptions) -> Floats:
    """A person's ratings m + s·(z_i − z̄) of the items, in [0, 1].

    m is the own mean; z̄ the mean standing of what it is the mean of, as many ratings of standing 0 being in it as the prior
    is worth; s the slope that fits the own ratings, by ridge regression towards the public one:
    s = (Σ(z − z̄)(r − m) + w·slope)/(Σ(z − z̄)² + w).
    """
    m = own_mean(train, options)
    centre = z[train.items].sum() / (len(train) + options.prior_weight)
    away, w = z[train.items] - centre, options.slope_weight
    s = (away @ (train.values - m) + w * options.slope) / (away @ away + w)
    return np.asarray(np.clip(m + s * (z[items] - centre), 0, 1))
