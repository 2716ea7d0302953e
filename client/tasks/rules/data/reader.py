"""Reader of rules in all forms, with the IFTTT rules of Ur et al., and a summary."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow

from client.data.dataset import DataSummary, floor_share
from client.data.tables.account import RowAccount, with_account
from client.data.tables.files import TABLES, find_tables, load, suffix_of
from client.data.tables.reader import read_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect, join_rows
from client.data.tables.table import Table
from client.tasks.rules.data.home_assistant.reader import is_home_assistant, read_home_assistant
from client.tasks.rules.data.home_assistant.registry import broader_type
from client.tasks.rules.data.homes import COLUMNS, SCHEMA, Homes
from client.tasks.rules.data.rows import (
    CODED,
    RuleRows,
    derive_catalogue,
    encode_rows,
    to_dataset,
    to_rows,
    within_vocabulary,
)
from common.errors import DataError, VocabularyError
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.vocabulary import RuleCatalogue, relation_name

Setup = Literal["A", "B"]
"""Grouping of names into relations.

A: whole names, pairs used at least 8 times (53 channels, 139 relations). B: the names' first words, pairs used at
least 5 times (150 channels, 103 relations)."""

SETS = ("trainset", "validationset", "testset")


class RuleType(NamedTuple):
    """Channels and names of a rule's two sides."""

    trigger_channel: str
    state: str
    action_channel: str
    action: str

    @property
    def relation(self) -> str:
        """Name of the trigger-action pair."""
        return relation_name(self.state, self.action)


def is_recrules(folder: Path) -> bool:
    """Return True if a folder holds the data set, gzipped or plain."""
    return all(_file(folder, name) is not None for name in ("rules", *SETS))


def read_recrules(folder: Path, setup: Setup = "A") -> RuleRows:
    """Read the users' rules whose trigger-action pair is frequent enough, each once.

    Raises:
        DataError: A file is missing or malformed, or a rule is of an unknown channel.
    """
    types = dict(_rule_types(folder, setup))
    rules = set(_users_rules(folder, types))
    uses = Counter(kind.relation for _, kind in rules)
    least = {"A": 8, "B": 5}[setup]
    rows = sorted((user, *kind) for user, kind in rules if uses[kind.relation] >= least)
    if not rows:
        raise DataError(f"no trigger-action pair is in {least} rules; is this the whole data set?", folder)
    user, channel, state, target, verb = (pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True))
    return encode_rows(dict(zip(COLUMNS, (user, channel, channel, state, verb, target, target), strict=True)))


def split_channel(name: str) -> tuple[str, str]:
    """Return the longest matching channel of a trigger's or action's name, and the rest of the name.

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
    """Return the 178 channels of the data set, which names alone do not delimit."""
    return frozenset(json.loads(resources.files(__package__).joinpath("ifttt_channels.json").read_text("utf-8")))


def _rule_types(folder: Path, setup: Setup) -> Iterator[tuple[str, RuleType]]:
    for path, line, (rule, text) in _records(folder, "rules", 2):
        trigger, _, action = text.partition(";")
        try:
            channel, state = split_channel(trigger.removeprefix("trigger_"))
            target, verb = split_channel(action.removeprefix("action_"))
            if setup == "B":
                state, verb = state.split("_")[0], verb.split("_")[0]
            relation_name(state, verb)
        except ValueError as error:
            raise DataError(f"{error}; add it to ifttt_channels.json", path, line) from None
        yield rule, RuleType(channel, state, target, verb)


def _users_rules(folder: Path, types: dict[str, RuleType]) -> Iterator[tuple[str, RuleType]]:
    for name in SETS:
        for path, line, (user, rule, _) in _records(folder, name, 3):
            if rule not in types:
                raise DataError(f"rule {rule} is not in the file 'rules'", path, line)
            yield user, types[rule]


def _records(folder: Path, name: str, width: int) -> Iterator[tuple[Path, int, list[str]]]:
    path = _file(folder, name)
    if path is None:
        raise DataError(f"the file '{name}' or '{name}.gz' is missing from the folder", folder)
    for line, text in load(path).lines():
        cells = text.split("\t")
        if len(cells) != width:
            raise DataError(f"{len(cells)} tab-separated cells, expected {width}", path, line)
        yield path, line, cells


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / f"{name}.gz", folder / name) if path.is_file()), None)


def read_homes(
    source: Path | str,
    catalogue: RuleCatalogue | None = None,
    *,
    setup: Setup = "A",
    dialect: Dialect = DEFAULT_DIALECT,
) -> Homes:
    """Read the homes of one source.

    Args:
        source: Table (CSV, TSV, JSON lines or Parquet), folder of tables, folder in the RecRules form, or automations of
            Home Assistant: a file, a configuration folder, or a folder of such folders. Tables but Parquet may be gzipped.
        catalogue: Vocabulary of the federation; rules with other names are skipped and counted in a note. None for the
            names in the data.
        setup: Grouping of names in the RecRules form.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed.
        VocabularyError: The catalogue can express no row.
    """
    dialect = with_account(dialect, SCHEMA)
    account = dialect.account
    path, notes = Path(source), tuple[str, ...]()
    found: list[tuple[RuleRows, Table | None]] = []
    if is_home_assistant(path):
        rows, notes = read_home_assistant(path)
        if catalogue:
            lacks = {kind for _, kind in rows.devices} - {*catalogue.entities}
            devices = [(name, broader_type(kind) if kind in lacks else kind) for name, kind in rows.devices]
            rows = replace(rows, devices=devices)
        found.append((rows, None))
        account = RowAccount()
    else:
        found += _rows(path, setup, dialect)
    usable: list[RuleRows] = []
    for rows, table in found:
        if table is None:
            rows = replace(rows, row=account.open(None, len(rows.row)) + np.arange(len(rows.row)))
        usable.append(within_vocabulary(rows, catalogue or derive_catalogue(rows), account, table))
    local = {key: text for rows in usable for key, text in rows.local.items()}
    rows = replace(join_rows(usable, CODED), local=local)
    if not len(rows.user):
        lost = "; ".join([*notes, *account.notes_of(account.close(0))])
        raise VocabularyError(f"no row can be used: {lost}; rename them, or ask for another vocabulary", path)
    homes = to_dataset(rows, catalogue or derive_catalogue(rows), account)
    has_rows = all(table is not None for _, table in found)
    return replace(homes, notes=(*notes, *homes.notes), reading=homes.reading if has_rows else None)


def _rows(path: Path, setup: Setup, dialect: Dialect) -> Iterator[tuple[RuleRows, Table | None]]:
    """Yield the rows of each file, and its table if it is one."""
    if is_recrules(path):
        yield read_recrules(path, setup), None
        return
    if path.is_file() and suffix_of(path) not in (*TABLES, ".json"):
        form = suffix_of(path) or path.suffix
        raise DataError(f"'{form}' is no known form of table; give one of {', '.join(TABLES)}", path)
    for file in find_tables(path):
        table = read_table(file, SCHEMA, dialect)
        yield to_rows(table), table


def summarize(options: RulesOptions, homes: Homes) -> DataSummary:
    """Return rules of each home, those to train on and those held out."""
    rules = np.array([len(home.rules) for home in homes.units], np.int64)
    test = np.array([floor_share(options.test_share, count) for count in rules.tolist()], np.int64)
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
    )
