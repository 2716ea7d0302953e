"""Recommended rules with reasons, by a trained model or by the home's baseline.

Importing it must not import torch.
"""

from dataclasses import dataclass

import numpy as np

from client.tasks.lists import LEARNT, about, two_digits
from client.tasks.rules.data.homes import Examples, Home, Homes, SplitHome, as_edges, describe, describe_shortly
from client.tasks.rules.lists import Abilities, ListOptions, shown
from common.arrays import Array, Arrays, Flags, Ints
from common.config.run import RunConfig
from common.tasks.rules.counts import COUNTS, offset_of
from common.tasks.rules.task import TASK
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
    if similar := _nearest_own(home, rule, catalogue, abilities):
        return similar
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


NONE_OWN = "no other pair of devices can take a rule that the home has"


def recommend(
    config: RunConfig,
    catalogue: RuleCatalogue,
    trained: Arrays,
    home: Home,
    options: ListOptions,
    baseline: str = "",
) -> tuple[list[Recommendation], str]:
    """Return the rules to add to a home, and why there is none; see `list_rules`.

    `baseline` names a baseline that answers in place of the model. Relation frequency shows relations of the home's own rules
    alone.
    """
    from client.inference.model_choice import split_statics
    from client.tasks.rules.learner import RulesLearner
    from common.models import tensors

    none = as_edges([])
    whole = SplitHome(home, Examples(home.rules, none), Examples(none, none), Examples(none, none))
    learner = RulesLearner(config.task_run(TASK, catalogue), Homes((), catalogue))
    [model], statics = split_statics(trained, {name for name, _ in learner.module.named_parameters()})
    if baseline == next(iter(TASK.baselines)):
        has = np.isin(np.arange(len(catalogue.relations)), home.rules[:, 2])
        rules, _ = list_rules(np.where(has, learner.own_scores(whole), np.nan), home, catalogue, options, None)
        return rules, "" if rules else NONE_OWN
    logits = (
        learner.predictors(statics)[baseline](whole) if baseline else learner.scores(tensors(model), statics, whole)
    )
    return list_rules(logits, home, catalogue, options, statics.get(COUNTS))


def network_inputs(home: Home, catalogue: RuleCatalogue, statics: Arrays) -> Arrays:
    """Return types and in-edges of a home's devices, and the offset; see `RuleRecommender.forward`."""
    n = len(home.devices)
    x, adj = np.zeros((1, n, len(catalogue.entities)), np.float32), np.zeros((1, n, n), np.float32)
    x[0, np.arange(n), [device.entity for device in home.devices]] = 1
    trigger, action, _ = home.rules.T
    np.add.at(adj[0], (action, trigger), 1)
    return {"x": x, "adj": adj, "offset": offset_of(statics, catalogue)}
