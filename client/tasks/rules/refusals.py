"""Pairs of event and action that no list shows, by words of devices (`refused.toml`)."""

import re
import tomllib
from collections.abc import Collection
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import numpy as np

from client.tasks.rules.data.homes import Home
from common.arrays import Flags
from common.errors import ConfigError
from common.tasks.rules.vocabulary import RuleCatalogue, relation_parts
from common.text import meant


@cache
def table() -> dict[str, Any]:
    """Return the table: patterns of events and actions, and refused pairs."""
    return tomllib.loads(resources.files(__package__).joinpath("refused.toml").read_text("utf-8"))


def check_allowed(names: Collection[str]) -> None:
    """Check that refused pairs have these names.

    Raises:
        ConfigError: A name is unknown.
    """
    known_names = [pair["name"] for pair in table()["pair"]]
    for name in names:
        if name not in known_names:
            raise ConfigError(f"allow-harm: unknown '{name}'{meant(name, known_names)}")


def refused(home: Home, catalogue: RuleCatalogue, allowed: Collection[str] = ()) -> Flags:
    """Return the mask of refused rules of a home, N × N × R.

    Args:
        home: The home; names of its devices count, such as `switch.oven`.
        catalogue: Vocabulary of the run.
        allowed: Names of pairs that the owner's policy allows.
    """
    halves = _halves(catalogue)
    texts = [f"{catalogue.entities[device.entity]} {device.name}" for device in home.devices]
    mask = np.zeros((len(texts), len(texts), len(halves[0])), bool)
    if not texts:
        return mask
    events, actions = (np.array([_kinds(text, halves[side], side) for text in texts]) for side in (0, 1))
    for pair in table()["pair"]:
        if pair["name"] not in allowed and (does := actions[..., _column("actions", pair["action"])]).any():
            mask |= _is_refused(pair, events)[:, None] & does[None]
    return mask


def reason_of(trigger: str, state: str, action: str, device: str) -> str:
    """Return the reason why a rule is refused; empty if it is not.

    Args:
        trigger: Type and name of the trigger device.
        state: State that it enters.
        action: Action.
        device: Type and name of the device it is done to.
    """
    events, does = np.array(_kinds_of(trigger, state, 0)), _kinds_of(device, action, 1)
    for pair in table()["pair"]:
        if does[_column("actions", pair["action"])] and _is_refused(pair, events):
            return str(pair["reason"])
    return ""


def _is_refused(pair: dict[str, Any], events: Flags) -> Flags:
    """Return True for the events on which a pair is refused; their last dimension is kinds."""
    some, none = (events[..., [_column("events", name) for name in pair.get(key, ())]].any(-1) for key in ("on", "but"))
    return np.asarray((some if "on" in pair else True) & ~none)


@lru_cache(maxsize=4)
def _halves(catalogue: RuleCatalogue) -> tuple[tuple[str, ...], ...]:
    return tuple(zip(*map(relation_parts, catalogue.relations), strict=True)) or ((), ())


@lru_cache(maxsize=4096)
def _kinds(text: str, names: tuple[str, ...], side: int) -> Flags:
    """Return the kinds of the states or actions of a device, R × kinds."""
    found = {name: _kinds_of(text, name, side) for name in {*names}}
    return np.array([found[name] for name in names], bool).reshape(len(names), len(table()[SIDES[side]]))


SIDES = "events", "actions"


@lru_cache(maxsize=2**16)
def _kinds_of(text: str, name: str, side: int) -> tuple[bool, ...]:
    words = f"{_plain(text)}: {_plain(name)}"
    return tuple(bool(pattern.search(words)) for pattern in _patterns(side))


@cache
def _patterns(side: int) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, table()[SIDES[side]].values()))


@cache
def _column(side: str, name: str) -> int:
    return [*table()[side]].index(name)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold()))
