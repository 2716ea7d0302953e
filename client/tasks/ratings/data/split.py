"""Split of a rater into training and held-out ratings, and their order, by (seed, name) alone."""

from dataclasses import dataclass

import numpy as np

from client.data.partition import floor_share, own_rng
from client.tasks.ratings.data.raters import FREE, TEST, TRAIN, VALIDATION, Rater
from common.arrays import Floats, Ints
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.vocabulary import ProductCatalogue


@dataclass(frozen=True, eq=False)
class Rated:
    """Some of a person's ratings.

    Args:
        items: n indices into the vocabulary.
        values: n shares of the scale, in [0, 1].
    """

    items: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.items)

    def first(self, count: int) -> "Rated":
        """Return the first of them."""
        return Rated(self.items[:count], self.values[:count])


@dataclass(frozen=True)
class SplitRater:
    """A person's ratings to train on, in the order of arrival, and those held out."""

    rater: Rater
    train: Rated
    validation: Rated
    test: Rated

    def held_out(self, split: str) -> Rated:
        """Return the ratings of a split."""
        return self.test if split == "test" else self.validation


def split_rater(rater: Rater, products: ProductCatalogue, options: RatingsOptions, seed: int) -> SplitRater:
    """Hold out the ratings of the data's own splits, and shares of free ratings drawn at random.

    The first share is for test, the next, of the rest, for validation, unless the data name validation ratings. Shares are
    rounded down, so one free rating is always left for training; the test ratings do not depend on the validation share.
    The order in which the others arrive is random too, as in the paper.
    """
    order = own_rng(seed, rater.name).permutation(len(rater.items))
    split = np.full(len(order), FREE) if rater.splits is None else rater.splits[order]
    free, given = order[split == FREE], order[split == VALIDATION]
    tested = floor_share(options.test_share, len(free))
    rest = np.concatenate([free[tested:], order[split == TRAIN]])
    validated = 0 if len(given) else floor_share(options.validation_share, len(rest))
    held, tests = (np.concatenate(k) for k in ((rest[:validated], given), (free[:tested], order[split == TEST])))
    values = np.asarray(products.scaled(rater.ratings), np.float64)
    train, validation, test = (Rated(rater.items[k], values[k]) for k in (rest[validated:], held, tests))
    return SplitRater(rater, train, validation, test)


def split_sizes(rater: Rater, options: RatingsOptions) -> tuple[int, int]:
    """Return the number of ratings to train on if a run validates on none of its own choice, and for test."""
    splits = np.full(len(rater.items), FREE) if rater.splits is None else rater.splits
    test = int((splits == TEST).sum()) + floor_share(options.test_share, int((splits == FREE).sum()))
    return len(splits) - test - int((splits == VALIDATION).sum()), test


def arrived(count: int, round_number: int, rounds: int) -> int:
    """Return how many of `count` training ratings have arrived in a round: half at first, all in the last."""
    half = -(-count // 2)
    return half + (count - half) * min(round_number, rounds) // rounds
