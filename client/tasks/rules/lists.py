"""Lists of rules for a home, best first, by scores, rooms and abilities of its devices."""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np

from client.tasks.lists import POOL, best_first, diversify
from client.tasks.rules.areas import SAME, lacks_evidence, nearness
from client.tasks.rules.data.homes import Home
from client.tasks.rules.refusals import refused
from common.arrays import Array, Flags, Floats, Ints
from common.tasks.rules import ease
from common.tasks.rules.metrics import SHORT
from common.tasks.rules.vocabulary import Edges, RuleCatalogue, relation_parts

Opposites = dict[int, frozenset[int]]
"""Number of a state or an action -> numbers of its opposites."""

ENDS = (
    *(("turns on", "turns off"), ("opens", "closes"), ("starts opening", "starts closing"), ("is entered", "is left")),
    *(("detects motion", "sees no motion"), ("detects presence", "detects absence"), ("detects", "detects no")),
    *(("detects a", "detects no"), ("comes home", "leaves home"), ("switches to home", "switches to away")),
    *(("unlocks", "locks"), ("is unlocked", "is locked"), ("rises", "sets"), ("rises above", "falls below")),
    *(("gets too warm", "gets too cold"), ("gets power", "loses power"), ("sees light", "sees no light")),
    *(("connects", "disconnects"), ("starts playing", "pauses"), ("starts cleaning", "finishes cleaning")),
)
"""States that end each other, whole or by their words."""

UNDOES = (
    *(("brighten", "dim"), ("turn up", "turn down"), ("increase", "decrease"), ("play", "pause"), ("home", "away")),
    *(("start", "dock"), ("start cleaning with", "dock"), ("start cleaning with", "pause")),
    *(("heat with", "turn off"), ("cool with", "turn off")),
)
"""Actions that undo each other, beside the opposites of a vocabulary."""

CLASHES = (
    *(("toggle", action) for action in ("turn on", "turn off", "open", "close", "lock", "unlock")),
    *(("turn off", action) for action in ("brighten", "dim", "play", "pause")),
    *(("turn on", "heat with"), ("turn on", "cool with"), ("heat with", "cool with")),
)
"""Further actions that no list gives one device at one event."""

SENSED = re.compile(r"(detects|sees|hears|feels|gets|is pressed|rises|falls|stays|reaches)\b")
"""States that no action on their device brings about."""

STRAIGHT = frozenset(
    {"turns on", "turns off", "detects motion", "sees no motion", "detects presence", "detects absence"}
)
ON = frozenset({"turns on", "detects motion", "detects presence"})
"""States whose usual pair is on with on, off with off; those of them that are on."""

OFF = frozenset({"turn off", "turn down", "close", "lock", "stop", "dim", "pause", "dock", "disarm"})
"""Actions that switch off."""


@dataclass(frozen=True, eq=False)
class Abilities:
    """Abilities of F device types under a vocabulary of R relations.

    Args:
        triggers: True for types that can trigger a relation, F × R.
        actions: True for types that can execute a relation, F × R.
        state: Number of each relation's trigger state, R.
        action: Number of each relation's action, R.
        opposites: Number of an action -> numbers of those that contradict it at one event.
        ends: Number of a state -> numbers of the states that end it.
        undoes: Number of an action -> numbers of its opposites and of those that undo it.
        catalogue: The vocabulary.
    """

    triggers: Flags
    actions: Flags
    state: Ints
    action: Ints
    opposites: Opposites
    ends: Opposites
    undoes: Opposites
    catalogue: RuleCatalogue

    @classmethod
    def of(cls, catalogue: RuleCatalogue) -> Self:
        """Compute the arrays of a vocabulary."""
        pairs = [relation_parts(name) for name in catalogue.relations]
        states, actions = ({name: k for k, name in enumerate(sorted({p[side] for p in pairs}))} for side in (0, 1))
        return cls(
            *catalogue.possible(),
            np.array([states[state] for state, _ in pairs], np.int64),
            np.array([actions[action] for _, action in pairs], np.int64),
            _opposites(actions, (*catalogue.opposites, *UNDOES, *CLASHES)),
            _opposites(states, ENDS),
            _opposites(actions, (*catalogue.opposites, *UNDOES)),
            catalogue,
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
        """Return the mask of relations that contradict a relation on the same two devices, R.

        They have the same trigger state and an opposite action, or an opposite state and the same action.
        """
        return self._contradictions[relation]

    @cached_property
    def _contradictions(self) -> list[Flags]:
        halves = [(s, a, [*self.ends[s]], [*self.opposites[a]]) for s, a in zip(self.state, self.action, strict=True)]
        return [
            ((self.state == s) & np.isin(self.action, opposites)) | ((self.action == a) & np.isin(self.state, ends))
            for s, a, ends, opposites in halves
        ]

    @cached_property
    def mirrors(self) -> Flags:
        """Return the mask of relations whose event an action on their trigger device may bring about, R."""
        return np.array([not SENSED.match(name) for name in self.catalogue.relations], bool)

    @cached_property
    def mirror_bits(self) -> int:
        """Bits of `mirrors`."""
        return _bits(self.mirrors)

    @cached_property
    def states(self) -> list[int]:
        """Number of each relation's trigger state."""
        states: list[int] = self.state.tolist()
        return states

    def counterparts(self, relation: int) -> list[int]:
        """Return the relations that undo a relation: a state that ends its own, and an undoing action."""
        return self._counterparts[relation]

    @cached_property
    def _counterparts(self) -> list[list[int]]:
        pairs = [(list(self.ends[s]), list(self.undoes[a])) for s, a in zip(self.state, self.action, strict=True)]
        masks = (np.isin(self.state, ends) & np.isin(self.action, undoes) for ends, undoes in pairs)
        return [np.flatnonzero(mask).tolist() for mask in masks]


@lru_cache(maxsize=4)
def shared_abilities(catalogue: RuleCatalogue) -> Abilities:
    """Return the arrays of a vocabulary, which the clients of a process share."""
    return Abilities.of(catalogue)


def _opposites(names: dict[str, int], opposites: Iterable[tuple[str, str]]) -> Opposites:
    by_words: dict[str, set[int]] = {}
    for name, number in names.items():
        by_words.setdefault(_words(name), set()).add(number)
    pairs = [tuple(map(_words, pair)) for pair in opposites]
    return {
        number: frozenset(other for words in _counterparts(_words(name), pairs) for other in by_words.get(words, ()))
        for name, number in names.items()
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
        top: Number of rules; two that undo each other are one suggestion.
        diverse: Weight λ of the rank against similarity (see `diversify`); 1: the order of the scores.
        least: Least log-odds of a rule that is shown, with what it gains in the home; see `LEAST`.
        allowed: Names of refused pairs that the owner's policy allows.
    """

    top: int = 10
    diverse: float = 1.0
    least: float = -math.inf
    allowed: Collection[str] = ()


SAME_ROOM, HABIT = 1.0, 1.5
"""Log-odds that a rule gains in one room; weight of the home's use of its kind."""

LEAST = 0.0
"""Least calibrated log-odds, against a rule that the home lacks, of a rule that is shown."""

MOST_ALIKE = 2
"""Largest number of suggestions with one trigger device, or on one device, in a short list."""


def shown(scores: Array, home: Home, rules: Edges, abilities: Abilities, options: ListOptions) -> Edges:
    """Return the rules to show, best first, k × 3; ties by device and relation.

    They are possible, harmless, new to the home and free of contradictions. A rule between two rooms needs a rule of the home
    of its kind. Of each event (trigger device, trigger state, action device) the best action is shown. The rule that undoes a
    rule follows it, if both are the usual pair, and is part of its suggestion; no other rule stands beside its opposite or its
    mirror. In a list of up to `SHORT` rules, at most `MOST_ALIKE` suggestions have one trigger or act on one device.

    Args:
        scores: Scores of rules (trigger device, action device, relation), N × N × R; NaN is not shown.
        home: The home; its rules are not used.
        rules: Rules that the home is known to have, E × 3.
        abilities: Vocabulary of the run.
        options: Options of the list.
    """
    return Candidates.of(home, rules, abilities, options.allowed).lists(scores, (options.top,), options)[options.top]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rules that a list may show in a home, with what they gain there; constant while its rules are.

    Args:
        shape: N × N × R.
        places: Flat indices of the rules, ascending.
        gains: What each gains in one room, and by the home's use of its kind.
        abilities: Vocabulary of the run.
    """

    shape: tuple[int, ...]
    places: Ints
    gains: tuple[Floats, Floats]
    abilities: Abilities

    @classmethod
    def of(cls, home: Home, rules: Edges, abilities: Abilities, allowed: Collection[str] = ()) -> Self:
        """Find the rules between devices of a home that is known to have these rules."""
        mask = is_possible(home, rules, abilities) & ~contradicts_own(home, rules, abilities)
        mask &= ~lacks_evidence(home, rules, abilities.catalogue) & ~refused(home, abilities.catalogue, allowed)
        gains = (np.broadcast_to(gain, mask.shape)[mask] for gain in _gains(home, rules, len(abilities.state)))
        room, habit = gains
        return cls(mask.shape, np.flatnonzero(mask), (room, habit), abilities)

    def lists(self, scores: Array, tops: Iterable[int], options: ListOptions) -> dict[int, Edges]:
        """Return the lists of several lengths, each as `shown` makes it, by length."""
        values = scores.ravel()[self.places] + self.gains[0] + self.gains[1]
        order = best_first(values, values >= options.least)
        allowed = dict(zip(self.places[order].tolist(), values[order].tolist(), strict=True))
        lists = {}
        for top in tops:
            most = top if options.diverse >= 1 else POOL * top
            found = _suggestions(allowed, self.shape, self.abilities, most, is_short=top <= SHORT)
            if options.diverse < 1:
                first = np.array([suggestion[0] for suggestion in found], np.int64).reshape(-1, 3)
                similarity = (_is_same(first[:, 0]) + _is_same(first[:, 1])) / 2.0
                found = [found[k] for k in diversify(similarity, options.diverse, top).tolist()]
            listed = [rule for suggestion in found for rule in suggestion]
            lists[top] = np.array(listed[:top], np.int64).reshape(-1, 3)
        return lists


def least_of(statics: Collection[str]) -> float:
    """Return the least log-odds of a shown rule; −∞ for sums with noise, which are not calibrated."""
    return -math.inf if ease.POPULARITY in statics else LEAST


def gained(scores: Array, home: Home, rules: Edges) -> Array:
    """Return scores with what rules gain in one room, and by the home's use of their kind, N × N × R."""
    room, habit = _gains(home, rules, scores.shape[2])
    return np.asarray(scores + room + habit)


def _gains(home: Home, rules: Edges, relations: int) -> tuple[Floats, Floats]:
    """Return what rules gain in one room, N × N × 1, and by the home's use of their kind, N × N × R.

    A kind is both device types, the nearness of the devices and the relation. With k rules of it on n pairs of devices, its
    log-odds by Laplace's rule of succession are log((k + 1)/(n − k + 1)).
    """
    near, types = nearness(home), np.array([device.entity for device in home.devices], np.int64)
    kinds = np.stack([*np.broadcast_arrays(types[:, None], types[None]), near], axis=-1).reshape(-1, 3)
    kind, pairs = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)[1:]
    kind = kind.reshape(near.shape)
    used = np.zeros((len(pairs), relations))
    np.add.at(used, (kind[rules[:, 0], rules[:, 1]], rules[:, 2]), 1)
    odds = np.log((used + 1) / (pairs[:, None] - used + 1))
    return SAME_ROOM * (near == SAME)[:, :, None], HABIT * odds[kind]


def _suggestions(
    scores: Mapping[int, float], shape: tuple[int, ...], abilities: Abilities, most: int, *, is_short: bool
) -> list[list[tuple[int, int, int]]]:
    """Return suggestions with about `most` rules, best first: a rule, and the one that undoes it.

    Args:
        scores: Flat index of each rule that may be shown -> its score, best first; of each event the first one counts.
        shape: N × N × R.
        abilities: Vocabulary of the run.
        most: Number of rules.
        is_short: True for the bounds of a short list.
    """
    found: list[list[tuple[int, int, int]]] = []
    listed, events = 0, set[tuple[int, int]]()
    taboo = defaultdict[tuple[int, int], int](int)  # a bit a relation
    triggers, targets, states = defaultdict[int, int](int), defaultdict[int, int](int), abilities.states
    for rule in scores:
        if listed >= most:
            break
        pair, r = divmod(rule, shape[2])
        event = pair, states[r]
        if event in events:
            continue
        events.add(event)
        i, j = divmod(pair, shape[0])
        if taboo[i, j] >> r & 1 or (is_short and (triggers[i] >= MOST_ALIKE or targets[j] >= MOST_ALIKE)):
            continue
        found.append([(i, j, one) for one in (r, *_undoing(rule, r, scores, taboo[i, j], abilities))])
        for *_, one in found[-1]:
            taboo[i, j] |= _beside(abilities, one)
        taboo[j, i] |= abilities.mirror_bits
        listed += len(found[-1])
        triggers[i] += 1
        targets[j] += 1
    is_one = is_short and len({suggestion[0][1] for suggestion in found}) == 1
    return found[:1] if is_one else found  # further actions of one device are no short list


def _bits(mask: Flags) -> int:
    """Return the number whose bits are a mask of relations, R."""
    return sum(1 << r for r in np.flatnonzero(mask).tolist())


@lru_cache(maxsize=4096)
def _beside(abilities: Abilities, relation: int) -> int:
    """Return the bits of the relations that no list shows beside one on the same two devices."""
    mask: Flags = abilities.contradicts(relation) | (abilities.state == abilities.state[relation])
    mask[abilities.counterparts(relation)] = True
    return _bits(mask)


def goes_straight(state: str, action: str) -> bool | None:
    """Return True if an on-state has an on-action, or an off-state an off-action; None for other states."""
    if state not in STRAIGHT:
        return None
    return (state in ON) != (action in OFF or action.partition(" ")[0] in OFF)


def _undoing(index: int, rule: int, scores: Mapping[int, float], taboo: int, abilities: Abilities) -> list[int]:
    """Return the relation that undoes another on the same devices, if the two are the usual pair.

    Motion and switches go straight: on with on, off with off. Other pairs are usual if their scores are at least those of the
    same events with exchanged actions. Relations with a bit of `taboo` do not count. `index` is the flat one of the rule.
    """
    first, never = index - rule, -math.inf
    others = [r for r in abilities.counterparts(rule) if first + r in scores and not taboo >> r & 1]
    if not others:
        return []
    other = max(others, key=lambda r: (scores[first + r], -r))
    is_usual, crossed = _crossed(abilities, rule, other)
    if is_usual is None:
        allowed = ([scores.get(first + r, never) for r in each if not taboo >> r & 1] for each in crossed)
        is_usual = scores[index] + scores[first + other] >= sum(max(each, default=never) for each in allowed)
    return [other] if is_usual else []


@lru_cache(maxsize=4096)
def _crossed(abilities: Abilities, rule: int, other: int) -> tuple[bool | None, tuple[list[int], ...]]:
    """Return if a rule and its undoing one go straight, and the relations with exchanged actions."""
    same = (
        np.flatnonzero((abilities.state == abilities.state[a]) & (abilities.action == abilities.action[b])).tolist()
        for a, b in ((rule, other), (other, rule))
    )
    return goes_straight(*relation_parts(abilities.catalogue.relations[rule])), tuple(same)


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

    They have the same event and action device, and an opposite action. Or they mirror a rule: its action device would act on
    its trigger device, which no rule of the home does.
    """
    contradictions = np.zeros((len(home.devices),) * 2 + (len(abilities.state),), bool)
    directions = {(i, j) for i, j, _ in rules.tolist()}
    for i, j, r in rules.tolist():
        contradictions[i, j] |= abilities.contradicts(r)
        contradictions[j, i] |= abilities.mirrors & ((j, i) not in directions)
    return contradictions


def _is_same(devices: Ints) -> Floats:
    return np.equal(devices[:, None], devices[None]).astype(np.float64)
