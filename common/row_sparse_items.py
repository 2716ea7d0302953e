"""Runs in which clients show which items they rated."""

from collections.abc import Mapping

from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.errors import WireError
from common.wire.sparse_rows import rows_of


def sends_item_ids(config: RunConfig) -> bool:
    """Whether updates name rows by what a client rated (`tasks.ratings.items`), which no noise covers."""
    return config.task == "ratings" and config.tasks.ratings.items == "paper"


def named_rows(update: Mapping[str, Array]) -> Arrays:
    """The ids that an update of such a run names, of its one table of items.

    Raises:
        WireError: It names none, or rows of more than one table.
    """
    rows = rows_of(update)
    if len(rows) != 1:
        raise WireError(f"rows of {len(rows)} tables, expected those of the table of items alone")
    return rows
