"""Rules as rows, the form of every source of rules before it has a vocabulary, and homes under one."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc

from client.data.tables.account import ROWS, RowAccount
from client.data.tables.schema import Codes, combine_codes, sort_unique
from client.data.tables.table import Table, locate, to_codes, to_flags
from client.tasks.rules.data.homes import (
    ACTION,
    ACTION_AREA,
    ACTION_ID,
    COLUMNS,
    STATE,
    TRIGGER,
    TRIGGER_AREA,
    TRIGGER_ID,
    USER,
    VERB,
    Device,
    Home,
    Homes,
)
from common.arrays import Flags
from common.tasks.rules.vocabulary import SEPARATOR, Edges, RuleCatalogue, relation_name, relation_parts

RULES_AGAIN = "duplicate rule", "duplicate rules"
NONE = -1
"""Code of a relation or device that a row does not name."""

CODED = {"user": "users", "trigger": "devices", "action": "devices", "relation": "relations"}
"""Columns of codes in rows, and the names for which they stand."""

Key = tuple[str, str]
"""Name and type of a device."""

Names = tuple[str, ...]
"""Names of a user and a device, or of a user, two devices and a relation."""


@dataclass(frozen=True, eq=False)
class RuleRows:
    """R rules, or devices of a user without one.

    Args:
        user: R, codes into `users`.
        trigger: R, codes into `devices`.
        action: R, codes into `devices` or `NONE`.
        relation: R, codes into `relations` or `NONE`.
        row: R, numbers of the rows in the account, or `NONE` for devices of a rule that is skipped.
        users: Names.
        devices: Names and types.
        relations: Names of trigger-action pairs.
        local: Names of a user and a device -> its area; those of a rule -> its circumstances, in words.
    """

    user: Codes
    trigger: Codes
    action: Codes
    relation: Codes
    row: Codes
    users: Sequence[str]
    devices: Sequence[Key]
    relations: Sequence[str]
    local: Mapping[Names, str] = field(default_factory=dict)


def to_rows(table: Table) -> RuleRows:
    """Return the rules of a table.

    Raises:
        DataError: A cell that a rule needs is empty, or could not be read back; with file, line and column.
    """
    is_rule = table.filled(STATE) | table.filled(VERB)
    remedy = "fill it, or leave the row out"
    table.where(is_rule).require(*COLUMNS, remedy=remedy)
    table.where(~is_rule & (table.filled(ACTION) | table.filled(ACTION_ID))).require(ACTION, ACTION_ID, remedy=remedy)
    for name in (STATE, VERB):
        separated = to_flags(pc.match_substring(table.columns[name], SEPARATOR))
        if separated.any():
            raise table.error(
                name, separated, f"contains '{SEPARATOR}'", f"run sed 's/{SEPARATOR}/ to /g' '{table.path}' > new.csv"
            )
    return encode_rows(table.columns, table.numbered)


def encode_rows(
    columns: Mapping[str, Any], row: Codes | None = None, local: Mapping[Names, str] | None = None
) -> RuleRows:
    """Return the rows of columns of text, named as in the schema.

    Rows are numbered from 0 by default. Areas are given apart or in columns.
    """
    user, users = to_codes(columns[USER])
    ids, id_names = to_codes(pyarrow.concat_arrays([columns[TRIGGER_ID], columns[ACTION_ID]]))
    kinds, kind_names = to_codes(pyarrow.concat_arrays([columns[TRIGGER], columns[ACTION]]))
    device, devices = _pairs(ids, kinds, id_names, kind_names)
    state, states = to_codes(columns[STATE])
    verb, verbs = to_codes(columns[VERB])
    relation, relations = _pairs(state, verb, states, verbs)
    names = [relation_name(*pair) for pair in relations]
    row = np.arange(len(user)) if row is None else row
    found = dict(local or {})
    for area, name in ((TRIGGER_AREA, TRIGGER_ID), (ACTION_AREA, ACTION_ID)):
        if area in columns and columns[area].null_count < len(columns[area]):
            triples = zip(*(columns[key].to_pylist() for key in (USER, name, area)), strict=True)
            found |= {(one, device): text for one, device, text in triples if device and text}
    return RuleRows(user, device[: len(user)], device[len(user) :], relation, row, users, devices, names, found)


def derive_catalogue(rows: RuleRows) -> RuleCatalogue:
    """Return the vocabulary that the rows use, in alphabetical order.

    Its abilities of a device type are the trigger states and the actions of that type in the rows.
    """
    return RuleCatalogue(
        entities=tuple(sorted({kind for _, kind in rows.devices})),
        relations=tuple(sorted(rows.relations)),
        notices=_abilities(rows, rows.trigger, 0),
        does=_abilities(rows, rows.action, 1),
    )


def _abilities(rows: RuleRows, devices: Codes, side: int) -> dict[str, tuple[str, ...]]:
    """Return, for each device type, the trigger states (side 0) or actions (side 1) of its rules."""
    is_rule = rows.relation != NONE
    pairs = sort_unique(devices[is_rule] * len(rows.relations) + rows.relation[is_rule]).tolist()
    abilities: dict[str, set[str]] = {}
    for device, relation in (divmod(pair, len(rows.relations)) for pair in pairs):
        abilities.setdefault(rows.devices[device][1], set()).add(relation_parts(rows.relations[relation])[side])
    return {kind: tuple(sorted(names)) for kind, names in sorted(abilities.items())}


def within_vocabulary(
    rows: RuleRows, catalogue: RuleCatalogue, account: RowAccount, table: Table | None = None
) -> RuleRows:
    """Return the rows that a catalogue can express; the account gets the others.

    A rule that it cannot express leaves the devices of types that it has. The reason names the first place, not its content.
    """
    entities, relations = set(catalogue.entities), set(catalogue.relations)
    kinds = np.array([*(kind not in entities for _, kind in rows.devices), False])
    pairs = np.array([*(name not in relations for name in rows.relations), False])
    strange = {TRIGGER: kinds[rows.trigger], ACTION: kinds[rows.action], STATE: pairs[rows.relation]}
    wrong: Flags = np.any(list(strange.values()), axis=0)
    if not wrong.any():
        return rows
    first = int(wrong.argmax())
    column = next(name for name, flag in strange.items() if flag[first])
    where = f", first in {locate([table], first)}, column '{column}'" if table else ""
    lacking = f"device types or trigger-action pairs{where}{_hint(rows, first, column, catalogue)}"
    account.leave(rows.row[wrong], ROWS, f"skipped: the vocabulary lacks their {lacking}")
    ends = np.concatenate([rows.trigger[wrong], rows.action[wrong]])
    owners, is_device = np.tile(rows.user[wrong], 2), (ends != NONE) & ~kinds[ends]
    absent = np.full(int(is_device.sum()), NONE)
    left = RuleRows(
        np.concatenate([rows.user[~wrong], owners[is_device]]),
        np.concatenate([rows.trigger[~wrong], ends[is_device]]),
        np.concatenate([rows.action[~wrong], absent]),
        np.concatenate([rows.relation[~wrong], absent]),
        np.concatenate([rows.row[~wrong], absent]),
        rows.users,
        rows.devices,
        rows.relations,
        rows.local,
    )
    return _used(left)


def _hint(rows: RuleRows, row: int, column: str, catalogue: RuleCatalogue) -> str:
    """Return the closest name of the catalogue for the strange name in a row; empty if none is close."""
    if column == STATE:
        text, names = rows.relations[rows.relation[row]], catalogue.relations
    else:
        text, names = rows.devices[(rows.trigger if column == TRIGGER else rows.action)[row]][1], catalogue.entities
    closest = difflib.get_close_matches(text, names, n=1)
    return f" (the closest name is '{closest[0]}')" if closest else ""


def _used(rows: RuleRows) -> RuleRows:
    """Return the same rows with the names that they use alone."""
    users, user = np.unique(rows.user, return_inverse=True)
    devices, device = _recoded(np.concatenate([rows.trigger, rows.action]))
    relations, relation = _recoded(rows.relation)
    return RuleRows(
        user.astype(np.int64),
        device[: len(user)],
        device[len(user) :],
        relation,
        rows.row,
        [rows.users[k] for k in users.tolist()],
        [rows.devices[k] for k in devices],
        [rows.relations[k] for k in relations],
        rows.local,
    )


def _recoded(codes: Codes) -> tuple[list[int], Codes]:
    """Return the codes that occur, without `NONE`, and the codes as positions in them."""
    distinct, index = np.unique(codes, return_inverse=True)
    absent = int((distinct == NONE).any())
    return distinct[absent:].tolist(), index.astype(np.int64) - absent


def _pairs(first: Codes, second: Codes, names: Sequence[str], others: Sequence[str]) -> tuple[Codes, list[Key]]:
    """Return codes of pairs of names, `NONE` where either is, and the pairs."""
    pair = np.where((first < 0) | (second < 0), NONE, first * len(others) + second)
    distinct, index = _recoded(pair)
    return index, [(names[a], others[b]) for a, b in (divmod(code, len(others)) for code in distinct)]


def to_dataset(rows: RuleRows, catalogue: RuleCatalogue, account: RowAccount) -> Homes:
    """Return the homes of rows in any order, by name; the catalogue has their device types and relations."""
    entity = {name: k for k, name in enumerate(catalogue.entities)}
    user, device = _ranks(rows.users), _ranks(rows.devices)
    devices = [Device(name, entity[kind]) for name, kind in sorted(rows.devices)]

    owner = user[rows.user] * len(devices)  # a node is a home and a device: home · devices + device
    trigger, action = owner + device[rows.trigger], owner + device[rows.action]
    nodes = sort_unique(np.concatenate([trigger, action[rows.action != NONE]]))
    starts = np.searchsorted(nodes, len(devices) * np.arange(len(rows.users) + 1))

    is_rule = rows.relation != NONE
    index = {name: k for k, name in enumerate(catalogue.relations)}
    relation = np.array([index[name] for name in rows.relations], np.int64)[rows.relation[is_rule]]
    places = (np.searchsorted(nodes, ends[is_rule]) for ends in (trigger, action))
    rules = np.stack([*places, relation], axis=1)
    distinct = np.unique(combine_codes(*rules.T), return_index=True)[1]
    account.lose(rows.row[is_rule], rows.row[is_rule][distinct], RULES_AGAIN, "dropped", merged=True)
    rules = rules[distinct]
    first = np.searchsorted(rules[:, 0], starts)
    rules[:, :2] -= np.repeat(starts[:-1], np.diff(first))[:, None]

    owned = [devices[k] for k in (nodes % len(devices)).tolist()]
    homes = tuple(
        _home(name, owned[starts[k] : starts[k + 1]], rules[first[k] : first[k + 1]], catalogue, rows.local)
        for k, name in enumerate(sorted(rows.users))
    )
    declared = int((~is_rule & (rows.row != NONE)).sum())
    reading = account.close(len(rules) + declared)
    return Homes(homes, catalogue, account.notes_of(reading), reading=reading)


def _home(
    name: str, devices: Sequence[Device], rules: Edges, catalogue: RuleCatalogue, local: Mapping[Names, str]
) -> Home:
    """Return a home with the areas of its devices and the circumstances of its rules."""
    placed = tuple(
        replace(device, area=area) if (area := local.get((name, device.name))) else device for device in devices
    )
    named = ((devices[i].name, devices[j].name, catalogue.relations[r]) for i, j, r in rules.tolist())
    when = tuple(local.get((name, *rule), "") for rule in named) if local else ()
    return Home(name, placed, rules, when if any(when) else ())


def _ranks(names: Sequence[str] | Sequence[tuple[str, str]]) -> Codes:
    """Return the place of each name in their order."""
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
