"""Runs in which clients show which items they rated."""

from common.config import RunConfig


def sends_item_ids(config: RunConfig) -> bool:
    """Whether updates name rows by what a client rated (`tasks.ratings.items`), which no noise covers."""
    return config.task == "ratings" and config.tasks.ratings.items == "paper"
