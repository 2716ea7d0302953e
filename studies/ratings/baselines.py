"""Baselines of rating prediction.

Some need no federation; two need the ratings of all users in plaintext.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client.tasks.ratings.baseline import own_mean
from client.tasks.ratings.data.raters import Rated, SplitRater
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.task import LIKED, rating_metrics
from studies.ratings.experiments import OWN

Floats = NDArray[np.float64]

SHRINK = 5.0
"""Weight of the prior bias 0, in ratings."""

SWEEPS = 15


def baselines_of(splits: Sequence[SplitRater], items: int, options: RatingsOptions) -> dict[str, dict[str, float]]:
    """Return key -> metrics on the test ratings; `all-positive` has F1 alone."""
    tested = Flat.of([split.test for split in splits])
    trained = Flat.of([split.train for split in splits])
    middle = float(trained.values.mean())
    own = np.array([own_mean(split.train, options) for split in splits])
    users, goods = biases(trained, len(splits), items)
    guesses = {
        "always-half": np.full(len(tested.values), LIKED),
        "global-mean": np.full(len(tested.values), middle),
        OWN: own[tested.users],
        "item-mean": item_means(trained, items)[tested.items],
        "biases": np.clip(middle + users[tested.users] + goods[tested.items], 0, 1),
    }
    measured = {title: rating_metrics(guess, tested.values)[0] for title, guess in guesses.items()}
    liked, _ = rating_metrics(np.ones(len(tested.values)), tested.values)
    return {**measured, "all-positive": {"f1": liked["f1"]}}


class Flat:
    """Ratings of all users in three columns: user, item, value."""

    def __init__(self, users: NDArray[np.int64], items: NDArray[np.int64], values: Floats) -> None:
        self.users, self.items, self.values = users, items, values

    @classmethod
    def of(cls, people: Sequence[Rated]) -> "Flat":
        """Return the ratings of person k under user k."""
        users = np.repeat(np.arange(len(people)), [len(rated) for rated in people])
        return cls(users, np.concatenate([rated.items for rated in people]), np.concatenate([r.values for r in people]))


def item_means(trained: Flat, items: int) -> Floats:
    """Return (Σr + SHRINK·r̄)/(n + SHRINK), of length I."""
    counts, sums = np.bincount(trained.items, minlength=items), np.bincount(trained.items, trained.values, items)
    return np.asarray((sums + SHRINK * trained.values.mean()) / (counts + SHRINK))


def biases(trained: Flat, people: int, items: int) -> tuple[Floats, Floats]:
    """Return b_u and b_i of r̄ + b_u + b_i by alternating ridge regressions: of length U and I."""
    residual = trained.values - trained.values.mean()
    b_users, b_items = np.zeros(people), np.zeros(items)
    per_user, per_item = np.bincount(trained.users, minlength=people), np.bincount(trained.items, minlength=items)
    for _ in range(SWEEPS):
        left = residual - b_users[trained.users]
        b_items = np.bincount(trained.items, left, items) / (per_item + SHRINK)
        left = residual - b_items[trained.items]
        b_users = np.bincount(trained.users, left, people) / (per_user + SHRINK)
    return b_users, b_items
