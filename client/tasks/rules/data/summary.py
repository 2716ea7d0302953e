"""Summary of homes for their owner."""

from collections.abc import Sequence

import numpy as np

from client.data.partition import floor_share
from client.data.summary import DataSummary, find_repeated
from client.data.tables.table import Table
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.schema import COLUMNS, STATE, VERB
from common.tasks.rules.options import RulesOptions


def summarize(options: RulesOptions, homes: Homes, tables: Sequence[Table]) -> DataSummary:
    """Return rules of each home, those to train on and those held out."""
    rules = np.array([len(home.rules) for home in homes.units], np.int64)
    test = np.array([floor_share(options.test_share, count) for count in rules.tolist()], np.int64)
    noun = "duplicate rule", "duplicate rules"
    return DataSummary(
        record=("rule", "rules"),
        records=rules,
        train=rules - test,
        test=test,
        need=f"a home holds {options.test_share:.0%} of its rules out, rounded down (tasks.rules.test-share)",
        totals={
            "device": sum(len(home.devices) for home in homes.units),
            "device type": len(homes.vocabulary.entities),
            "trigger-action pair": len(homes.vocabulary.relations),
        },
        dropped=tuple(find_repeated(tables, COLUMNS, (STATE, VERB), noun, "dropped")),
    )
