"""Columns of click logs, and of tables that hold a whole session a row."""

from client.data.tables.schema import Column, TableSchema

USER, ITEM, ITEMS, TIME, SESSION, SPLIT = ("user", "item", "items", "timestamp", "session", "split")

SCHEMA = TableSchema(
    columns=(
        Column(USER, "text", ("userid", "visitor", "visitorid"), required=False, blank="missing"),
        Column(ITEM, "text", ("itemid", "product"), required=False, blank="missing"),
        Column(ITEMS, "text", ("itemidlist",), required=False, blank="missing", many=True),
        Column(TIME, "time", ("time", "datetime", "date", "ts"), required=False, blank="missing"),
        Column(SESSION, "text", ("sessionid",), required=False, blank="missing"),
        Column(SPLIT, "text", required=False, blank="missing"),
    ),
    layouts=((ITEM, SESSION), (ITEM, USER, TIME), (ITEMS, USER)),
    unit=USER,
)
"""A row with a user and nothing else declares a user, who may have no clicks."""
