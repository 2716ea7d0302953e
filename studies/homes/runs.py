"""Rows of the study: lists of five rules for generated homes, by the closed form over all of them."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from client.tasks.lists import best_first
from client.tasks.rules.data.homes import Homes, SplitHome
from client.tasks.rules.learner import RulesLearner
from client.tasks.rules.lists import (
    LEAST,
    Abilities,
    ListOptions,
    contradicts_own,
    is_possible,
    shared_abilities,
    shown,
)
from client.tasks.rules.refusals import refused, table
from common.arrays import Array, Arrays
from common.config.parse import parse
from common.tasks.rules import ease
from common.tasks.rules.task import TASK
from common.tasks.rules.vocabulary import Edges
from common.wire.sparse_rows import ROWS, VALUES
from studies.harness.row import RowKey, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.homes.generator import generate

SET, PROTOCOL = "homes-60", "default"
HOMES, SEEDS, TOP = 60, range(5), 5

ROWS_OF: dict[str, str] = {
    "before": "before",
    "unrefused": "today, harmful pairs allowed",
    "shown": "today",
}
"""Short name -> title of a row."""

FORMER_ALIKE = 2
"""Largest number of rules with one action of one device in a list of five, before."""


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows."""
    for seed in [seed for seed in SEEDS if seed < selection.most]:
        for row, title in ROWS_OF.items():
            if selection.has(row) and selection.has_set(SET):
                store.get_or_compute(RowKey(SET, PROTOCOL, row), seed, partial(trial, row, seed), title)


def trial(row: str, seed: int) -> Trial:
    """Return the figures of the lists of all homes of a seed."""
    homes, splits = generate(HOMES, seed)
    learner, solved = solve(homes, splits)
    abilities = shared_abilities(homes.vocabulary)
    lists = [(home, list_of(row, learner.scores({}, solved, home), home, abilities)) for home in splits]
    return Trial(figures(lists, homes))


def figures(lists: Sequence[tuple[SplitHome, Edges]], homes: Homes) -> dict[str, float]:
    """Return precision of the rules shown, and shares of harmful rules and of lists about one device."""
    hits, harmful, single = list[bool](), list[bool](), list[bool]()
    for home, rules in lists:
        truth = {*map(tuple, home.test.positives.tolist())}
        hits += [tuple(rule) in truth for rule in rules.tolist()]
        harmful += refused(home.home, homes.vocabulary)[tuple(rules.T)].tolist()
        single.append(len(rules) > 2 and len(np.unique(rules[:, 1])) == 1)
    lengths = [len(rules) for _, rules in lists]
    return {
        "precision5": float(np.mean(hits)),
        "harmful": float(np.mean(harmful)),
        "one_actuator": float(np.mean(single)),
        "length": float(np.mean(lengths)),
        "empty": float(np.mean(np.equal(lengths, 0))),
    }


def solve(homes: Homes, splits: Sequence[SplitHome]) -> tuple[RulesLearner, Arrays]:
    """Return a learner and the closed form of these homes, from the rules that are not held out."""
    run = parse({"method": "ridge", "task": TASK.name, "run-id": "homes"}).task_run(TASK, homes.vocabulary)
    assert TASK.closed_form is not None
    learner = RulesLearner(run, Homes((), homes.vocabulary))
    learner.splits = tuple(splits)
    solved = TASK.closed_form.start(run)
    for _ in range(TASK.closed_form.sums):
        sent, sums = learner.statistics(solved), ease.template(solved)
        for name, total in sums.items():
            if name in sent:
                sums[name] = sent[name]
            else:
                total[sent[name + ROWS].ravel()] = sent[name + VALUES]
        solved = ease.solve(solved, sums, 0.0)
    return learner, solved


def list_of(row: str, scores: Array, home: SplitHome, abilities: Abilities) -> Edges:
    """Return the list that a row shows to a home."""
    if row == "before":
        return np.array([*_former(scores, home, abilities)], np.int64).reshape(-1, 3)
    allowed = [pair["name"] for pair in table()["pair"]] if row == "unrefused" else ()
    return shown(scores, home.home, home.train.positives, abilities, ListOptions(TOP, least=LEAST, allowed=allowed))


def _former(scores: Array, home: SplitHome, abilities: Abilities) -> Iterator[tuple[int, int, int]]:
    """Yield the first five rules as of f9d7d0cd: one action an event, two of one action of a device."""
    rules = home.train.positives
    mask = is_possible(home.home, rules, abilities) & ~contradicts_own(home.home, rules, abilities)
    triples = np.stack(np.unravel_index(best_first(scores, mask), scores.shape), axis=1)
    events = (triples[:, 0] * len(scores) + triples[:, 1]) * len(abilities.state) + abilities.state[triples[:, 2]]
    counts: dict[tuple[int, int], int] = {}
    first = np.sort(np.unique(events, return_index=True)[1])
    for i, j, r in triples[first].tolist():
        action = j, int(abilities.action[r])
        counts[action] = counts.get(action, 0) + 1
        if counts[action] <= FORMER_ALIKE and sum(min(n, FORMER_ALIKE) for n in counts.values()) <= TOP:
            yield i, j, r
