"""Reason of a recommended rule, in one clause; own rules first, then released counts."""

import numpy as np

from client.lists.reasons import LEARNT, about
from client.tasks.rules.data.homes import Home, describe_shortly
from client.tasks.rules.lists.abilities import Abilities
from common.arrays import Array, Flags, Ints
from common.tasks.rules.vocabulary import RuleCatalogue, relation_parts

Rule = tuple[int, int, int]


def reason(home: Home, rule: Rule, catalogue: RuleCatalogue, abilities: Abilities, counts: Array | None) -> str:
    """Return the reason of a rule.

    Args:
        home: The home with its own rules.
        rule: Trigger device, action device and relation.
        catalogue: Vocabulary of the run.
        abilities: The same vocabulary as arrays.
        counts: Summed counts of the run, 2 × F × R, as clients released them; None if there are none.
    """
    if own := _nearest_own(home, rule, catalogue, abilities):
        return own
    if counts is not None and (text := _of_others(home, rule, catalogue, counts)):
        return text
    return LEARNT


def reason_of_none(home: Home, catalogue: RuleCatalogue, abilities: Abilities) -> str:
    """Return the reason why no rule can be recommended to a home."""
    devices = f"{len(home.devices)} device{'s' * (len(home.devices) != 1)}"
    if len(home.devices) < 2:
        return f"no possible rule is left: {devices}, and a rule needs two"
    types = np.array([device.entity for device in home.devices], np.int64)
    triggers, actions = abilities.widen(types, home.rules)
    without = sum(not (triggers[kind] | actions[kind]).any() for kind in types.tolist())
    return f"no possible rule is left: {devices}" + (f", {without} of types that nobody has rules for" * bool(without))


def _nearest_own(home: Home, rule: Rule, catalogue: RuleCatalogue, abilities: Abilities) -> str:
    """Return a clause about the home's most similar rule; empty if none is similar.

    Similar rules have the types of both devices, the same event, or the same action.
    """
    if not len(home.rules):
        return ""
    types = np.array([device.entity for device in home.devices])
    (i, j, r), (own_i, own_j, own_r) = rule, home.rules.T
    same_types: Ints = (types[own_i] == types[i]).astype(np.int64) + (types[own_j] == types[j])
    same_state, same_action = (
        abilities.state[own_r] == abilities.state[r],
        abilities.action[own_r] == abilities.action[r],
    )
    event: Flags = (own_i == i) & same_state
    act: Flags = (own_j == j) & same_action
    both: Flags = same_types == 2
    likeness = 2 * same_types + same_state + same_action + (own_i == i) + (own_j == j)
    for clause, fits in (
        ("like your rule", both),
        ("same event as in your rule", event),
        ("same action as in your rule", act),
    ):
        if fits.any():
            nearest = home.rules[int(np.where(fits, likeness, -1).argmax())].tolist()
            return f"{clause} '{describe_shortly(home, tuple(nearest), catalogue)}'"
    return ""


def _of_others(home: Home, rule: Rule, catalogue: RuleCatalogue, counts: Array) -> str:
    """Return a clause about rules of the federation with the type and relation of the rarer side."""
    i, j, r = rule
    side, device = min(((0, i), (1, j)), key=lambda part: float(counts[part[0], home.devices[part[1]].entity, r]))
    entity = home.devices[device].entity
    number = about(float(counts[side, entity, r]))  # these counts are sent in plaintext, without noise
    state, action = relation_parts(catalogue.relations[r])
    role = "with the trigger" if side == 0 else "that act on"
    return (
        f"{number} rules of the federation '{state} → {action}' {role} {catalogue.entities[entity]}" if number else ""
    )
