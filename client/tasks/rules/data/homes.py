"""Home as a graph of devices and rules; its table with one rule a row, and its split (§1.3).

Training and held-out rules depend on (seed, user) alone.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from client.data.dataset import Dataset, floor_share, own_rng
from client.data.tables.files import write_private_csv
from client.data.tables.schema import Column, TableSchema
from common.arrays import Ints
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.vocabulary import SEPARATOR, Edges, RuleCatalogue, relation_parts

USER, TRIGGER, TRIGGER_ID, STATE, VERB, ACTION, ACTION_ID = COLUMNS = (
    "user_id",
    "trigger_device",
    "trigger_device_id",
    "trigger_state",
    "action",
    "action_device",
    "action_device_id",
)

TRIGGER_AREA, ACTION_AREA = AREAS = ("trigger_area", "action_area")
"""Columns of the areas of both devices, which a table may have."""

SCHEMA = TableSchema(
    columns=(
        Column(USER, "text", ("user", "home", "homeid")),
        Column(TRIGGER, "text"),
        Column(TRIGGER_ID, "text"),
        Column(STATE, "text", ("triggerstateid",), blank="missing"),
        Column(VERB, "text", ("actionid",), blank="missing"),
        Column(ACTION, "text", blank="missing"),
        Column(ACTION_ID, "text", blank="missing"),
        *(Column(name, "text", required=False, blank="missing") for name in AREAS),
    ),
    unit=USER,
)
"""Columns of rules.

A row without state and action declares one or two devices of the user, who may have no rules."""


ENTITY_ID = re.compile(r"[a-z_]+\.[a-z0-9_]+")
"""Name of a device in Home Assistant, such as `light.hall`."""


FLOOR_MARK = " / "
"""Text between floor and area in `Device.area`, where the floor is known."""


@dataclass(frozen=True)
class Device:
    """One device of a home."""

    name: str
    """Its id in the data, unique among the home's devices of one type."""
    entity: int
    """Its type, an index into `Catalogue.entities`; the node's one-hot feature."""
    area: str | None = None
    """Its area, `floor / area` where the floor is known; it never leaves the client."""


@dataclass(frozen=True, eq=False)
class Home:
    """One user's devices and rules."""

    name: str
    devices: tuple[Device, ...]
    """The nodes, ordered by name, then type."""
    rules: Edges
    """Distinct rules in ascending order, so that a home does not depend on the order of its file."""
    when: tuple[str, ...] = ()
    """Circumstances of each rule in words, such as `in the dark`, which never leave; none: of no rule."""

    def circumstances(self, rule: tuple[int, ...]) -> str:
        """Return the circumstances of all own rules with the same types and relation; empty without any."""
        types = np.array([device.entity for device in self.devices])
        alike = (types[self.rules[:, :2]] == types[list(rule[:2])]).all(1) & (self.rules[:, 2] == rule[2])
        found = {self.when[k] for k in np.flatnonzero(alike).tolist()} if self.when else set()
        return found.pop() if len(found) == 1 else ""


Homes = Dataset[RuleCatalogue, Home]


def as_edges(rules: Iterable[tuple[int, int, int]]) -> Edges:
    """Distinct (trigger node, action node, relation), ascending, as an (E, 3) array."""
    return np.array(sorted(set(rules)), dtype=np.int64).reshape(-1, 3)


def describe(home: Home, rule: tuple[int, int, int], catalogue: RuleCatalogue) -> str:
    """Return a rule as a sentence: `when Front door contact sensor opens, turn on Hall light`."""
    event, act = _event_and_action(home, rule, catalogue)
    return f"when {event}, {act}"


def describe_shortly(home: Home, rule: tuple[int, int, int], catalogue: RuleCatalogue) -> str:
    """Return a rule as event and action: `Front door contact sensor opens → turn on Hall light`."""
    return SEPARATOR.join(_event_and_action(home, rule, catalogue))


def _event_and_action(home: Home, rule: tuple[int, int, int], catalogue: RuleCatalogue) -> tuple[str, str]:
    trigger, action, relation = rule
    state, verb = relation_parts(catalogue.relations[relation])
    event, act = (
        f"{_label(home.devices[trigger], catalogue)} {state}",
        f"{verb} {_label(home.devices[action], catalogue)}",
    )
    return event.replace("_", " "), act.replace("_", " ")


def _label(device: Device, catalogue: RuleCatalogue) -> str:
    """Return a device's name if that contains its type, else type and name.

    Of an entity id, the part after the point is the name.
    """
    kind, name = catalogue.entities[device.entity], device.name
    name = name.partition(".")[2] if ENTITY_ID.fullmatch(name) else name
    return name if kind.casefold() in name.casefold() else f"{kind} {name}"


def write_homes(path: Path, dataset: Homes) -> None:
    """Write homes as CSV, readable by the owner only; `read_homes` with the vocabulary inverts it.

    Columns of areas are there if a device has one.
    """
    width = len(COLUMNS) + len(AREAS) * any(device.area for home in dataset.units for device in home.devices)
    rows = (row for home in dataset.units for row in _rows(home, dataset.vocabulary))
    write_private_csv(path, (*COLUMNS, *AREAS)[:width], (row[:width] for row in rows))


def _rows(home: Home, catalogue: RuleCatalogue) -> Iterator[tuple[str, ...]]:
    names = [(catalogue.entities[device.entity], device.name) for device in home.devices]
    areas = [device.area or "" for device in home.devices]
    for u, v, relation in home.rules.tolist():
        yield (home.name, *names[u], *relation_parts(catalogue.relations[relation]), *names[v], areas[u], areas[v])
    for idle in sorted(set(range(len(names))) - set(home.rules[:, :2].ravel().tolist())):
        yield (home.name, *names[idle], "", "", "", "", areas[idle], "")


class NonRules:
    """Triples of a home that are no rules; its pools are drawn from them.

    Args:
        home: The home.
        relations: Number R of relations.
    """

    def __init__(self, home: Home, relations: int) -> None:
        nodes, self._relations = len(home.devices), relations
        self._nodes = max(nodes, 1)
        pairs = home.rules[:, 0] * nodes + home.rules[:, 1]
        is_empty = np.ones(nodes * nodes, bool)
        is_empty[:: nodes + 1] = False
        is_empty[pairs] = False
        empty = np.flatnonzero(is_empty)
        first = np.searchsorted(pairs, pairs)  # rules ascend, and so do their pairs
        count = np.bincount(first, minlength=len(pairs))[first]
        nth = np.arange(len(pairs)) - first
        lower = np.full((int(count.max(initial=0)), len(pairs)), relations)
        lower[nth, first] = home.rules[:, 2] - nth  # number of absent relations below each present one
        is_open = count < relations
        self._lower = lower[:, first[is_open]]
        self._lowest = np.concatenate([empty, pairs[is_open]]) * relations
        self._choices = np.concatenate([np.full(len(empty), relations), relations - count[is_open]])

    def sample(self, rng: np.random.Generator) -> Ints:
        """Sample one pool of negatives, numbers of distinct triples for `triples`; none without rules.

        (a) Every ordered pair of different nodes without a rule, with a random relation; (b) for every rule, its pair with
        a random relation not on that pair. A pair that holds all relations adds nothing.
        """
        if not len(self._lower):
            return self._lowest[:0]
        drawn = rng.integers(self._choices)
        of_rules = drawn[len(drawn) - self._lower.shape[1] :]
        of_rules += np.add.reduce(self._lower <= of_rules)
        drawn += self._lowest
        drawn.sort()
        if len(self._lower) > 1:  # only a pair with several rules can have a triple twice
            is_new = np.ones(len(drawn), bool)
            np.not_equal(drawn[1:], drawn[:-1], out=is_new[1:])
            drawn = drawn[is_new]
        return rng.permutation(drawn)

    def triples(self, numbers: Ints) -> Edges:
        """Return the triples with these numbers, E × 3."""
        found = np.empty((len(numbers), 3), np.int64)
        pairs, found[:, 2] = np.divmod(numbers, self._relations)
        found[:, 0], found[:, 1] = np.divmod(pairs, self._nodes)
        return found


@dataclass(frozen=True, eq=False)
class Examples:
    """Rules and sampled non-rules of one home."""

    positives: Edges
    negatives: Edges


@dataclass(frozen=True, eq=False)
class SplitHome:
    """A home's examples; messages pass along `train.positives` only."""

    home: Home
    train: Examples
    """Its negatives are those of all pools."""
    validation: Examples
    test: Examples


def split_homes(homes: Iterable[Home], relations: int, options: RulesOptions, seed: int) -> tuple[SplitHome, ...]:
    """Split every home; omit complete graphs and, depending on `small_users`, homes without a test rule."""
    splits = (split_home(home, relations, options, seed) for home in homes)
    return tuple(
        split
        for split in splits
        if not (_is_complete(split) or (options.small_users == "drop" and not len(split.test.positives)))
    )


def split_home(home: Home, relations: int, options: RulesOptions, seed: int) -> SplitHome:
    """Shuffle, then take the first share for test, the next for validation, the rest for training.

    Held-out negatives come from the first pool alone, and before anything that depends on the number of pools or the
    validation share is drawn: a home's test examples are the same whatever these are.
    """
    rng = own_rng(seed, home.name)
    rules, unlike = rng.permutation(home.rules), NonRules(home, relations)
    pool = unlike.sample(rng)[: len(home.rules)]
    test = floor_share(options.test_share, len(rules))
    held = test + floor_share(options.validation_share, len(rules) - test)

    pools, rest = (unlike.sample(rng) for _ in range(options.negatives - 1)), len(rules) - held
    more = ((one[~(one[:, None] == pool[:held]).any(1)] if held else one)[:rest] for one in pools)
    negatives, first, last = unlike.triples(np.concatenate([pool, *more])), *(min(k, len(pool)) for k in (test, held))
    return SplitHome(
        home,
        train=Examples(rules[held:], negatives[last:]),
        validation=Examples(rules[test:held], negatives[first:last]),
        test=Examples(rules[:test], negatives[:first]),
    )


def _is_complete(split: SplitHome) -> bool:
    return bool(len(split.home.rules)) and not sum(
        len(p.negatives) for p in (split.train, split.validation, split.test)
    )
