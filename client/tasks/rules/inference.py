"""Recommended rules with reasons, by a trained model or by the home's baseline.

Importing it must not import torch.
"""

from dataclasses import dataclass, replace

import numpy as np

from client.tasks.lists import LEARNT, about, two_digits
from client.tasks.rules.data.homes import Examples, Home, Homes, SplitHome, as_edges, describe, describe_shortly
from client.tasks.rules.lists import Abilities, ListOptions, gained, least_of, shown
from client.tasks.rules.refusals import check_allowed
from common.arrays import Array, Arrays, Flags, Ints
from common.config.run import RunConfig
from common.tasks.rules import ease
from common.tasks.rules.task import TASK
from common.tasks.rules.vocabulary import SEPARATOR, RuleCatalogue, relation_parts
from common.text import count

Rule = tuple[int, int, int]


def reason(home: Home, rule: Rule, abilities: Abilities, statics: Arrays) -> str:
    """Return the reason of a rule: an own rule of the home, or the number of homes with its kind.

    Args:
        home: The home with its own rules.
        rule: Trigger device, action device and relation.
        abilities: Vocabulary of the run, as arrays.
        statics: Summed statistics of the run.
    """
    i, j, r = rule
    homes, owners = ease.homes_with(statics, home.devices[i].entity, home.devices[j].entity, r)
    among = f" of {about(owners).removeprefix('about ')} homes with such devices have it" if owners >= homes else ""
    return _nearest_own(home, rule, abilities) or (f"{about(homes)}{among}" if about(homes) and among else LEARNT)


FEW_HOMES = 100
"""Number of homes from which an empty list is no matter of few homes."""

LIKELY = {3.0: "very likely", 1.5: "likely", -np.inf: "possible"}
"""Least log-odds of a rule, with what it gains in the home -> its likelihood in words."""


def likelihood(log_odds: float) -> str:
    """Return a likelihood in words."""
    return next(words for least, words in LIKELY.items() if log_odds >= least)


def reason_of_none(home: Home, abilities: Abilities, statics: Arrays, *, is_possible: bool = False) -> str:
    """Return the reason why a home's list is empty; `is_possible` if some rules are only unlikely."""
    devices = count(len(home.devices), "device")
    if len(home.devices) < 2:
        return f"no possible rule is left: {devices}, and a rule needs two"
    types = np.array([device.entity for device in home.devices], np.int64)
    if is_possible:
        homes, kinds = ease.number_of_homes(statics), count(len(np.unique(types)), "kind")
        if homes >= FEW_HOMES:
            return f"nothing worth adding: no rule for these devices is common among {homes:,.0f} homes"
        few = f"{homes:,.0f} homes are few for {kinds} of devices" if homes else "the model is not sure of any rule"
        return f"nothing worth adding: {few}"
    triggers, actions = abilities.widen(types, home.rules)
    without = sum(not (triggers[kind] | actions[kind]).any() for kind in types.tolist())
    return f"no possible rule is left: {devices}" + (f", {without} of types that nobody has rules for" * bool(without))


def _nearest_own(home: Home, rule: Rule, abilities: Abilities) -> str:
    """Return a clause about the home's most similar rule; empty if none is similar.

    Similar rules are undone by the rule, or have the types of both devices with the same relation, the same event, the same
    action, or the same relation on other devices.
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
    likeness = 2 * same_types + same_state + same_action + (own_i == i) + (own_j == j)
    fitting: dict[str, Flags] = {
        "undoes your rule": (own_i == i) & (own_j == j) & np.isin(own_r, abilities.counterparts(r)),
        "like your rule": (same_types == 2) & (own_r == r),
        "same event as in your rule": (own_i == i) & same_state,
        "same action as in your rule": (own_j == j) & same_action,
        "on other devices, as in your rule": own_r == r,
    }
    for clause, fits in fitting.items():
        if fits.any():
            k = int(np.where(fits, likeness, -1).argmax())
            nearest = describe_shortly(home, tuple(home.rules[k].tolist()), abilities.catalogue)
            return f"{clause} '{nearest}{', ' * bool(home.when and home.when[k])}{home.when[k] if home.when else ''}'"
    return ""


@dataclass(frozen=True)
class Recommendation:
    """Recommended rule, or two that undo each other; fields as in the columns of rules data."""

    rule: str
    """The rule as a sentence."""
    score: float
    """Score in [0, 1], to two digits, that orders rules: share of true ones among as many false ones."""
    likely: str
    """Likelihood in words."""
    why: str
    """Reason, in one clause."""
    trigger_device: str
    trigger_device_id: str
    trigger_state: str
    action: str
    action_device: str
    action_device_id: str
    undoing_state: str = ""
    """State of the trigger device in which `undoing_action` is done; empty if the rule stands alone."""
    undoing_action: str = ""
    circumstances: str = ""
    """Circumstances that all rules of its kind have in the home, such as `in the dark`; of `action` alone."""


def _recommendation(
    home: Home, rule: Rule, undoing: Rule | None, log_odds: float, why: str, catalogue: RuleCatalogue
) -> Recommendation:
    """Return a rule, with the one that undoes it, in words."""
    (i, j, r), sentence, undone = rule, describe(home, rule, catalogue), ("", "")
    trigger, target, when = home.devices[i], home.devices[j], home.circumstances(rule)
    sentence += f" {when}" if when else ""
    if undoing:
        undone = relation_parts(catalogue.relations[undoing[2]])
        sentence += f"; when it {undone[0]}, {describe_shortly(home, undoing, catalogue).partition(SEPARATOR)[2]}"
    state, action = relation_parts(catalogue.relations[r])
    return Recommendation(
        sentence,
        two_digits(float(1 / (1 + np.exp(-log_odds)))),
        likelihood(log_odds),
        why,
        *(catalogue.entities[trigger.entity], trigger.name, state),
        *(action, catalogue.entities[target.entity], target.name),
        *undone,
        when,
    )


def list_rules(
    logits: Array, home: Home, catalogue: RuleCatalogue, options: ListOptions, statics: Arrays | None = None
) -> tuple[list[Recommendation], str]:
    """Return the rules to add to a home, best first, and why there is none (empty otherwise); see `shown`.

    If the catalogue states the triggers and actions of device types, only these and those of the home's own rules are possible.

    Args:
        logits: Log-odds of rules (trigger device, action device, relation), N × N × R.
        home: The home with its rules.
        catalogue: Vocabulary of the run.
        options: Options of the list.
        statics: Summed statistics of the run, for reasons.

    Raises:
        ConfigError: The policy allows an unknown pair.
    """
    check_allowed(options.allowed)
    abilities, statics = Abilities.of(catalogue), statics or {}
    rules: list[Rule] = [(i, j, r) for i, j, r in shown(logits, home, home.rules, abilities, options).tolist()]
    odds = gained(logits, home, home.rules).astype(np.float64)
    answers: list[Recommendation] = []
    while rules:
        rule, *rules = rules
        is_pair = bool(rules) and rules[0][:2] == rule[:2] and rules[0][2] in abilities.counterparts(rule[2])
        undoing, rules = (rules[0], rules[1:]) if is_pair else (None, rules)
        why = reason(home, rule, abilities, statics)
        answers.append(_recommendation(home, rule, undoing, float(odds[rule]), why, catalogue))
    if answers:
        return answers, ""
    anything = replace(options, least=-np.inf, top=1)
    is_possible = bool(len(shown(logits, home, home.rules, abilities, anything)))
    return [], reason_of_none(home, abilities, statics, is_possible=is_possible)


NONE_OWN = "no other pair of devices can take a rule that the home has"


def recommend(
    config: RunConfig, catalogue: RuleCatalogue, trained: Arrays, home: Home, options: ListOptions, baseline: str = ""
) -> tuple[list[Recommendation], str]:
    """Return the rules to add to a home, and why there is none; see `list_rules`.

    `baseline` names a baseline that answers in place of the model. Relation frequency shows relations of the home's own rules
    alone.
    """
    from client.tasks.rules.learner import RulesLearner
    from common.models import parameters_of, split_statics, tensors

    none = as_edges([])
    whole = SplitHome(home, Examples(home.rules, none), Examples(none, none), Examples(none, none))
    learner = RulesLearner(config.task_run(TASK, catalogue), Homes((), catalogue))
    [model], statics = split_statics(trained, parameters_of(config, catalogue))
    if baseline == next(iter(TASK.baselines)):
        has = np.isin(np.arange(len(catalogue.relations)), home.rules[:, 2])
        rules, _ = list_rules(np.where(has, learner.own_scores(whole), np.nan), home, catalogue, options, statics)
        return rules, "" if rules else NONE_OWN
    if baseline:
        return list_rules(learner.predictors(statics)[baseline](whole), home, catalogue, options, statics)
    logits = learner.scores(tensors(model), statics, whole)
    return list_rules(logits, home, catalogue, replace(options, least=least_of(statics)), statics)


def network_inputs(home: Home, catalogue: RuleCatalogue) -> Arrays:
    """Return types and in-edges of a home's devices; see `RuleRecommender.forward`."""
    n = len(home.devices)
    x, adj = np.zeros((1, n, len(catalogue.entities)), np.float32), np.zeros((1, n, n), np.float32)
    x[0, np.arange(n), [device.entity for device in home.devices]] = 1
    trigger, action, _ = home.rules.T
    np.add.at(adj[0], (action, trigger), 1)
    return {"x": x, "adj": adj}
