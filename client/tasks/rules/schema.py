"""Columns of rules, which are those of the Wyze data set: one rule a row."""

from client.data.tables.schema import Column, TableSchema

USER, TRIGGER, TRIGGER_ID, STATE, VERB, ACTION, ACTION_ID = COLUMNS = (
    "user_id",
    "trigger_device",
    "trigger_device_id",
    "trigger_state",
    "action",
    "action_device",
    "action_device_id",
)

SCHEMA = TableSchema(
    columns=(
        Column(USER, "text", ("user", "home", "homeid")),
        Column(TRIGGER, "text"),
        Column(TRIGGER_ID, "text"),
        Column(STATE, "text", ("triggerstateid",), blank="missing"),
        Column(VERB, "text", ("actionid",), blank="missing"),
        Column(ACTION, "text", blank="missing"),
        Column(ACTION_ID, "text", blank="missing"),
    ),
    unit=USER,
)
"""Columns of rules.

A row without state and action declares one or two devices of the user, who may have no rules."""
