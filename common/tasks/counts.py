"""Sums of counts over clients, checked against the task's vocabulary."""

from typing import assert_never

import numpy as np

from common.arrays import Arrays, add, check_like
from common.errors import WireError
from common.tasks.markets.counts import add_pairs, check_pairs
from common.tasks.markets.options import MarketCatalogue
from common.tasks.ratings.options import ProductCatalogue
from common.tasks.rules.counts import COUNTS
from common.tasks.rules.options import RuleCatalogue
from common.tasks.sessions.counts import add_rules, check_rules
from common.tasks.sessions.options import Items
from common.tasks.traffic.counts import check_lags
from common.tasks.traffic.options import SensorVariables
from common.tasks.vocabularies import Names


def add_counts(total: Arrays, counts: Arrays, vocabulary: Names) -> Arrays:
    """The sum with one more client's counts; an empty total is the start.

    Raises:
        WireError: These are no counts under that vocabulary.
    """
    match vocabulary:
        case RuleCatalogue():
            shape = (2, len(vocabulary.entities), len(vocabulary.relations))
            check_like(counts, {COUNTS: np.zeros(shape, np.float32)}, "counts")
            return add(total, counts) if total else counts
        case Items():
            check_rules(counts, len(vocabulary.items))
            return add_rules([total, counts] if total else [counts])
        case MarketCatalogue():
            check_pairs(counts, len(vocabulary.items))
            return add_pairs([total, counts] if total else [counts])
        case SensorVariables():
            check_lags(counts, len(vocabulary.variables))
            check_like(counts, total or counts, "counts")
            return add(total, counts) if total else counts
        case ProductCatalogue():
            raise WireError("this task starts from no sums")
        case _:
            assert_never(vocabulary)
