"""Lists of rules for a home, best first, by scores and by abilities of its devices."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from client.tasks.lists import POOL, best_first, diversify, first_of_each
from client.tasks.rules.data.homes import Home
from common.arrays import Array, Flags, Floats, Ints
from common.tasks.rules.vocabulary import Edges, RuleCatalogue, relation_parts


@dataclass(frozen=True, eq=False)
class Abilities:
    """Abilities of F device types under a vocabulary of R relations.

    Args:
        triggers: True for types that can trigger a relation, F × R.
        actions: True for types that can execute a relation, F × R.
        state: Number of each relation's trigger state, R.
        action: Number of each relation's action, R.
        opposites: Number of an action -> numbers of its opposites.
    """

    triggers: Flags
    actions: Flags
    state: Ints
    action: Ints
    opposites: dict[int, frozenset[int]]

    @classmethod
    def of(cls, catalogue: RuleCatalogue) -> Self:
        """Compute the arrays of a vocabulary."""
        pairs = [relation_parts(name) for name in catalogue.relations]
        states, actions = ({name: k for k, name in enumerate(sorted({p[side] for p in pairs}))} for side in (0, 1))
        return cls(
            *catalogue.possible(),
            np.array([states[state] for state, _ in pairs], np.int64),
            np.array([actions[action] for _, action in pairs], np.int64),
            _opposites(actions, catalogue),
        )

    def widen(self, types: Ints, rules: Ints) -> tuple[Flags, Flags]:
        """Return both masks, with the states and actions that a home's own rules show; these stay in the home.

        Args:
            types: Type of each device of the home, N.
            rules: Rules of the home, E × 3.
        """
        i, j, r = rules.T
        widened = []
        for mask, device, part in ((self.triggers, i, self.state), (self.actions, j, self.action)):
            is_shown = np.zeros((len(mask), int(part.max(initial=0)) + 1), bool)
            is_shown[types[device], part[r]] = True
            widened.append(mask | is_shown[:, part])
        return widened[0], widened[1]

    def contradicts(self, relation: int) -> Flags:
        """Return the mask of relations with the same trigger state and an opposite action, R."""
        opposite = np.isin(self.action, list(self.opposites.get(int(self.action[relation]), ())))
        return np.asarray((self.state == self.state[relation]) & opposite)


@lru_cache(maxsize=4)
def shared_abilities(catalogue: RuleCatalogue) -> Abilities:
    """Return the arrays of a vocabulary, which the clients of a process share."""
    return Abilities.of(catalogue)


def _opposites(actions: dict[str, int], catalogue: RuleCatalogue) -> dict[int, frozenset[int]]:
    by_words: dict[str, set[int]] = {}
    for name, number in actions.items():
        by_words.setdefault(_words(name), set()).add(number)
    pairs = [tuple(map(_words, pair)) for pair in catalogue.opposites]
    return {
        number: frozenset(other for words in _counterparts(_words(name), pairs) for other in by_words.get(words, ()))
        for name, number in actions.items()
    }


def _counterparts(words: str, pairs: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield the words with one side of a pair replaced by the other."""
    for first, second in pairs:
        for old, new in ((first, second), (second, first)):
            if f" {old} " in f" {words} ":
                yield f" {words} ".replace(f" {old} ", f" {new} ", 1).strip()


def _words(name: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", name.casefold()))


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
