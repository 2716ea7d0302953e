"""Recommended rules of a home as records; needs the model's scores, and no model."""

from dataclasses import dataclass

import numpy as np

from client.lists.order import two_digits
from client.tasks.rules.data.homes import Home, describe
from client.tasks.rules.lists.abilities import Abilities
from client.tasks.rules.lists.shown import ListOptions, shown
from client.tasks.rules.lists.why import reason, reason_of_none
from common.arrays import Array
from common.tasks.rules.vocabulary import RuleCatalogue, relation_parts


@dataclass(frozen=True)
class Recommendation:
    """A recommended rule; devices, state and action as in the columns of rules data."""

    rule: str
    """The rule as a sentence."""
    score: float
    """Score in [0, 1], to two digits; it ranks, and is no probability."""
    why: str
    """Reason, in one clause."""
    trigger_device: str
    trigger_device_id: str
    trigger_state: str
    action: str
    action_device: str
    action_device_id: str


def list_rules(
    logits: Array, home: Home, catalogue: RuleCatalogue, options: ListOptions, counts: Array | None
) -> tuple[list[Recommendation], str]:
    """Return the rules to add to a home, best first, and why there is none (empty otherwise).

    A rule joins two different devices that both support it, which the home does not have. The list is free of contradictions.
    If the catalogue states the triggers and actions of device types, only these and those of the home's own rules are possible.

    Args:
        logits: Log-odds of rules (trigger device, action device, relation), N × N × R.
        home: The home with its rules.
        catalogue: Vocabulary of the run.
        options: Options of the list.
        counts: Summed counts of the run, 2 × F × R; None if clients released none.
    """
    abilities = Abilities.of(catalogue)
    answers = []
    for i, j, r in shown(logits, home, home.rules, abilities, options).tolist():
        state, action = relation_parts(catalogue.relations[r])
        trigger, target = home.devices[i], home.devices[j]
        answers.append(
            Recommendation(
                describe(home, (i, j, r), catalogue),
                two_digits(float(1 / (1 + np.exp(-logits[i, j, r].astype(np.float64))))),
                reason(home, (i, j, r), catalogue, abilities, counts),
                *(catalogue.entities[trigger.entity], trigger.name, state),
                *(action, catalogue.entities[target.entity], target.name),
            )
        )
    return answers, "" if answers else reason_of_none(home, catalogue, abilities)
