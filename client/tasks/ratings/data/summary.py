"""Summary of ratings for their owner."""

from collections.abc import Sequence

import numpy as np

from client.data.partition import floor_share
from client.data.summary import DataSummary, find_repeated
from client.data.tables.table import Table
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.schema import ITEM, USER
from common.tasks.ratings.options import RatingsOptions

REPEATED = "replaced by a later one of the same person and product"

NOUN = ("rating", "ratings")


def summarize(options: RatingsOptions, ratings: Ratings, tables: Sequence[Table]) -> DataSummary:
    """Return ratings of each person, those to train on and those held out."""
    count = np.array([len(rater.items) for rater in ratings.units], np.int64)
    test = np.array([floor_share(options.test_share, number) for number in count.tolist()], np.int64)
    return DataSummary(
        record=NOUN,
        records=count,
        train=count - test,
        test=test,
        need=f"a rater holds {options.test_share:.0%} of the ratings out, rounded down (tasks.ratings.test-share)",
        totals={"item": len(ratings.vocabulary.items)},
        dropped=tuple(find_repeated(tables, (USER, ITEM), (ITEM,), NOUN, REPEATED)),
    )
