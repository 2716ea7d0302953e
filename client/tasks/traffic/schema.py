"""Columns of readings in long form: a time, perhaps a site, and what was measured."""

from client.data.tables.formats import TABLES
from client.data.tables.schema import Column, TableSchema

SUFFIXES = (*TABLES, ".vol")
"""Suffixes of tables and of FHWA's station volumes."""

TIME, SITE = "timestamp", "site"

SCHEMA = TableSchema(
    columns=(
        Column(TIME, "time", ("time", "datetime", "date")),
        Column(SITE, "text", ("siteid", "sensor", "sensorid", "station", "stationid", "detector"), required=False),
    ),
    rest="numbers",
    clock="wall",
    unit=SITE,
)
