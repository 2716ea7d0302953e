"""Recommendations of next items by a finished model; on the client, from a visitor's own sessions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from client.tasks.sessions.data.visitors import Visits
from client.tasks.sessions.learner import SessionsLearner
from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import DataError
from common.options import hint
from common.tasks.sessions.counts import KEYS, VALUES
from common.tasks.sessions.task import TASK
from common.tasks.sessions.vocabulary import Clicks, Items


@dataclass(frozen=True)
class NextItem:
    """A recommended item."""

    item: str
    probability: float
    """Probability of the next click, among all items."""


def next_items(
    config: RunConfig, items: Items, trained: Arrays, clicks: Clicks, history: Sequence[Clicks], top: int
) -> list[NextItem]:
    """Return the `top` likeliest next items after `clicks`, best first.

    `history` holds the visitor's earlier sessions.
    """
    model = {name: a for name, a in trained.items() if name not in (KEYS, VALUES)}
    statics = {name: a for name, a in trained.items() if name in (KEYS, VALUES)}
    logits = (
        SessionsLearner(config.task_run(TASK, items), Visits((), items))
        .next_items(model, statics, clicks, history)
        .astype(np.float64)
    )
    probabilities = np.exp(logits - np.logaddexp.reduce(logits))
    best = np.argsort(-logits, kind="stable")[:top]
    return [NextItem(items.items[j], float(probabilities[j])) for j in best]


def clicks_of(text: str, items: Items) -> Clicks:
    """Parse a session: item names separated by commas.

    Raises:
        DataError: The text names no item, or one outside the vocabulary.
    """
    place = {name: k for k, name in enumerate(items.items)}
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in place:
            raise DataError(f"unknown item '{name}'{hint(name, items.items)}")
    if not names:
        raise DataError("the session is empty; give item names separated by commas")
    return np.array([place[name] for name in names], np.int64)
