"""The IFTTT rules of Ur et al. in the RecRules form: a folder of `rules`, `trainset`, `validationset`, `testset`.

A rule type is `trigger_<channel>_<name>;action_<channel>_<name>`. A channel is an entity, the pair of names a relation.
The data know no devices: a user has one node per channel. The three set files are read as one.
"""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from client.data.tables.reader import opened
from client.tasks.rules.data.rows import Row
from common.errors import DataError

Setup = Literal["A", "B"]
"""A: whole names, pairs used at least 8 times (53 channels, 139 relations). B: the names' first words, pairs used at
least 5 times (150 channels, 103 relations)."""

SETS = ("trainset", "validationset", "testset")


def is_recrules(folder: Path) -> bool:
    """Whether a folder holds the data set, gzipped or plain."""
    return all(_file(folder, name) is not None for name in ("rules", *SETS))


def read_recrules(folder: Path, setup: Setup = "A") -> list[Row]:
    """The users' rules whose trigger-action pair is frequent enough, each once.

    Raises:
        DataError: A file is missing or malformed, or a rule is of an unknown channel.
    """
    types = dict(_rule_types(folder))
    rows = {_shortened(row) if setup == "B" else row for row in _users_rules(folder, types)}
    uses = Counter(row.relation for row in rows)
    least = {"A": 8, "B": 5}[setup]
    return sorted(row for row in rows if uses[row.relation] >= least)


def split_channel(name: str) -> tuple[str, str]:
    """Channel and rest of a trigger's or action's name; the longest channel that fits.

    Raises:
        ValueError: No known channel.
    """
    words = name.split("_")
    for length in range(len(words) - 1, 0, -1):
        channel = "_".join(words[:length])
        if channel in channels():
            return channel, "_".join(words[length:])
    raise ValueError(f"'{name}' begins with no known channel")


@cache
def channels() -> frozenset[str]:
    """The 178 channels of the data set, a list kept beside this file: names alone do not tell where a channel ends."""
    return frozenset(json.loads(resources.files(__package__).joinpath("ifttt_channels.json").read_text("utf-8")))


def _rule_types(folder: Path) -> Iterator[tuple[str, Row]]:
    for path, line, (rule, text) in _records(folder, "rules", 2):
        trigger, _, action = text.partition(";")
        try:
            trigger_channel, state = split_channel(trigger.removeprefix("trigger_"))
            action_channel, verb = split_channel(action.removeprefix("action_"))
        except ValueError as error:
            raise DataError(f"{error}; add it to ifttt_channels.json", path, line) from None
        yield rule, Row("", trigger_channel, trigger_channel, state, verb, action_channel, action_channel)


def _users_rules(folder: Path, types: dict[str, Row]) -> Iterator[Row]:
    for name in SETS:
        for path, line, (user, rule, _) in _records(folder, name, 3):
            if rule not in types:
                raise DataError(f"rule {rule} is not in the file 'rules'", path, line)
            yield types[rule]._replace(user=user)


def _shortened(row: Row) -> Row:
    return row._replace(trigger_state=row.trigger_state.split("_")[0], action=row.action.split("_")[0])


def _records(folder: Path, name: str, width: int) -> Iterator[tuple[Path, int, list[str]]]:
    path = _file(folder, name)
    if path is None:
        raise DataError(f"the file '{name}' or '{name}.gz' is missing from the folder", folder)
    with opened(path) as file:
        for line, text in enumerate(file, start=1):
            cells = text.rstrip("\n").split("\t")
            if len(cells) != width:
                raise DataError(f"{len(cells)} tab-separated cells, expected {width}", path, line)
            yield path, line, cells


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / f"{name}.gz", folder / name) if path.is_file()), None)
