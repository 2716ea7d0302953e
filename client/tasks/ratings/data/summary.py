"""Summary of ratings for their owner."""

from collections.abc import Sequence

import numpy as np

from client.data.summary import DataSummary, find_repeated
from client.data.tables.table import Table
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.split import split_sizes
from client.tasks.ratings.schema import ITEM, USER
from common.tasks.ratings.options import RatingsOptions

REPEATED = "replaced by a later one of the same person and product"

NOUN = ("rating", "ratings")


def summarize(options: RatingsOptions, ratings: Ratings, tables: Sequence[Table]) -> DataSummary:
    """Return ratings of each person, those to train on and those held out."""
    count = np.array([len(rater.items) for rater in ratings.units], np.int64)
    sizes = np.array([split_sizes(rater, options) for rater in ratings.units], np.int64).reshape(-1, 2)
    of = " without a split" if any(rater.splits is not None for rater in ratings.units) else ""
    return DataSummary(
        record=NOUN,
        records=count,
        train=sizes[:, 0],
        test=sizes[:, 1],
        need=f"a rater holds {options.test_share:.0%} of the ratings{of} out, rounded down (tasks.ratings.test-share)",
        totals={"item": len(ratings.vocabulary.items)},
        dropped=tuple(find_repeated(tables, (USER, ITEM), (ITEM,), NOUN, REPEATED)),
    )
