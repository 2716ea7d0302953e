"""From rows to homes under a vocabulary; the half that all readers share."""

from collections.abc import Sequence

import numpy as np

from client.data.tables.values import Codes, combine_codes, sort_unique
from client.tasks.rules.data.homes import Device, Home, Homes
from client.tasks.rules.data.rows import NONE, RuleRows
from common.tasks.rules.vocabulary import RuleCatalogue


def to_dataset(rows: RuleRows, catalogue: RuleCatalogue) -> Homes:
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
    rules = rules[np.unique(combine_codes(*rules.T), return_index=True)[1]]
    first = np.searchsorted(rules[:, 0], starts)
    rules[:, :2] -= np.repeat(starts[:-1], np.diff(first))[:, None]

    owned = [devices[k] for k in (nodes % len(devices)).tolist()]
    homes = tuple(
        Home(name, tuple(owned[starts[k] : starts[k + 1]]), rules[first[k] : first[k + 1]])
        for k, name in enumerate(sorted(rows.users))
    )
    duplicates = int(is_rule.sum()) - len(rules)
    notes = (f"{duplicates} duplicate rule{'s' * (duplicates != 1)} dropped",) if duplicates else ()
    return Homes(homes, catalogue, notes)


def _ranks(names: Sequence[str] | Sequence[tuple[str, str]]) -> Codes:
    """Return the place of each name in their order."""
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
