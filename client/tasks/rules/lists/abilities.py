"""Vocabulary of rules as arrays: abilities of device types, states, actions and their opposites."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from common.arrays import Flags, Ints
from common.tasks.rules.vocabulary import RuleCatalogue, relation_parts


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
        parts = [relation_parts(name) for name in catalogue.relations]
        states, actions = ({name: k for k, name in enumerate(sorted({p[side] for p in parts}))} for side in (0, 1))
        return cls(
            *catalogue.possible(),
            np.array([states[state] for state, _ in parts], np.int64),
            np.array([actions[action] for _, action in parts], np.int64),
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
            own = np.zeros((len(mask), int(part.max(initial=0)) + 1), bool)
            own[types[device], part[r]] = True
            widened.append(mask | own[:, part])
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
