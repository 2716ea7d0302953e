"""Titles of items in lists: id of an item -> its title."""

from collections.abc import Mapping

from client.data.tables.schema import Column

Titles = Mapping[str, str]
"""Id of an item -> its title; items without a title are absent."""

NO_TITLES: Titles = {}

ITEM, TITLE = "item", "title"

COLUMNS = (
    Column(ITEM, "text", ("itemid", "asin")),
    Column(TITLE, "text", ("movietitle", "itemname", "name"), required=False, blank="missing", many=True),
)
"""Columns of a table of items."""


def title_of(item: str, titles: Titles) -> str:
    """Return the title of an item, or its id without one."""
    return titles.get(item, item)


def label_of(item: str, titles: Titles) -> str:
    """Return id and title of an item."""
    return f"{item} {titles.get(item, '')}".rstrip()
