"""Rules that are shown to a home, best first; pure functions of the model's scores."""

from dataclasses import dataclass

import numpy as np

from client.lists.order import POOL, best_first, diversify, first_of_each
from client.tasks.rules.data.homes import Home
from client.tasks.rules.lists.abilities import Abilities
from common.arrays import Array, Flags, Floats, Ints
from common.tasks.rules.vocabulary import Edges


@dataclass(frozen=True)
class ListOptions:
    """Options of a list.

    Args:
        top: Number of rules.
        diverse: Weight λ of the rank against similarity (see `diversify`); 1: the order of the scores.
    """

    top: int = 10
    diverse: float = 1.0


def shown(scores: Array, home: Home, rules: Edges, abilities: Abilities, options: ListOptions) -> Edges:
    """Return the rules to show, best first, k × 3; ties by device and relation.

    They are possible, new to the home and free of contradictions. The best action of each event (trigger device, trigger
    state, action device) comes first. If these are fewer than `top`, further actions that contradict none of them follow.

    Args:
        scores: Scores of rules (trigger device, action device, relation), N × N × R; NaN is not shown.
        home: The home; its rules are not used.
        rules: Rules that the home is known to have, E × 3.
        abilities: Vocabulary of the run.
        options: Options of the list.
    """
    order = best_first(scores, is_possible(home, rules, abilities) & ~contradicts_own(home, rules, abilities))
    triples = np.stack(np.unravel_index(order, scores.shape), axis=1).astype(np.int64)
    events = np.ravel_multi_index(
        (triples[:, 0], triples[:, 1], abilities.state[triples[:, 2]]), (*scores.shape[:2], max(scores.shape[2], 1))
    )
    first = first_of_each(events)
    further = np.setdiff1d(np.arange(len(events)), first)
    triples = _fill(triples[first], triples[further], abilities, options.top)
    if options.diverse >= 1:
        return triples[: options.top]
    triples = triples[: POOL * options.top]
    similarity = (_is_same(triples[:, 0]) + _is_same(triples[:, 1])) / 2.0
    return triples[diversify(similarity, options.diverse, options.top)]


def is_possible(home: Home, rules: Edges, abilities: Abilities) -> Flags:
    """Return the mask of rules between different devices that both support and the home lacks, N × N × R."""
    types = np.array([device.entity for device in home.devices], np.int64)
    triggers, actions = abilities.widen(types, rules)
    possible: Flags = triggers[types][:, None] & actions[types][None]
    possible[np.diag_indices(len(types))] = False
    possible[tuple(rules.T)] = False
    return possible


def contradicts_own(home: Home, rules: Edges, abilities: Abilities) -> Flags:
    """Return the mask of rules that contradict a rule of the home, N × N × R.

    They have the same event and action device, and an opposite action.
    """
    contradictions = np.zeros((len(home.devices),) * 2 + (len(abilities.state),), bool)
    for i, j, r in rules.tolist():
        contradictions[i, j] |= abilities.contradicts(r)
    return contradictions


def _fill(first: Edges, further: Edges, abilities: Abilities, top: int) -> Edges:
    """Append further rules, best first, up to `top` in all; none contradicts a listed rule."""
    listed = first.tolist()
    for i, j, r in further.tolist():
        if len(listed) >= top:
            break
        if not any((i, j) == (a, b) and abilities.contradicts(other)[r] for a, b, other in listed):
            listed.append([i, j, r])
    return np.array(listed, np.int64).reshape(-1, 3)


def _is_same(devices: Ints) -> Floats:
    return np.equal(devices[:, None], devices[None]).astype(np.float64)
