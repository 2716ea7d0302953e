"""Columns of ratings."""

from client.data.tables.schema import Column, TableSchema

USER, ITEM, RATING, TIME = POSITIONS = ("user", "item", "rating", "timestamp")
SPLIT = "split"

SCHEMA = TableSchema(
    columns=(
        Column(USER, "text", ("userid", "reviewer", "reviewerid", "rater")),
        Column(ITEM, "text", ("itemid", "movie", "movieid", "product", "productid", "asin"), blank="missing"),
        Column(RATING, "number", ("stars", "score", "overall"), blank="missing"),
        Column(TIME, "time", ("time", "datetime", "unixreviewtime", "date"), required=False, blank="missing"),
        Column(SPLIT, "text", required=False, blank="missing"),
    ),
    positions=POSITIONS,
    unit=USER,
)
"""A row with a user and nothing else declares a person, who may have no rating."""

PEOPLE = TableSchema(columns=(Column("user", "text"), Column("neighbour", "text")))
"""FilmTrust's trust network."""
