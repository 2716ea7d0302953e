"""Recommendations of next items by a finished model; on the client, from a visitor's own sessions.

Importing it must not import torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from client.tasks.lists import LEARNT, NO_TITLES, ItemFilter, Titles, best_first, title_of
from client.tasks.sessions.baseline import FeatureRows, VisitHistory, history_features, history_scores, scores_of
from client.tasks.sessions.data.visitors import Visits, graph_arrays
from common.arrays import Arrays, Floats, Ints
from common.config.run import RunConfig
from common.errors import DataError
from common.tasks.sessions import slist
from common.tasks.sessions.task import TASK
from common.tasks.sessions.vocabulary import Clicks, Items
from common.text import hint

STATICS = slist.SOLUTION
"""Names of the closed form in a stored model."""

ALL = ItemFilter.seen(hide=False)
"""Filter of a session's list by default: clicked items stay, since visitors return to items."""


@dataclass(frozen=True)
class NextItem:
    """A recommended item."""

    item: str
    score: float
    """Share of the model's softmax over all items; it ranks, and is no probability."""
    why: str
    """Reason, in one clause."""


def next_items(
    config: RunConfig,
    items: Items,
    trained: Arrays,
    clicks: Clicks,
    history: Sequence[Clicks],
    top: int,
    chosen: ItemFilter = ALL,
    titles: Titles = NO_TITLES,
    baseline: str = "",
) -> list[NextItem]:
    """Return the `top` best next items after `clicks`, best first; ties by item.

    `baseline` names a baseline by the visitor's own clicks, which shows no other items. Reasons name titles instead of ids.
    """
    from client.tasks.sessions.learner import SessionsLearner

    if baseline:
        scores = history_scores(clicks, history, len(items.items), baseline)
        return list_items(np.where(scores > 0, scores, -np.inf), items, {}, clicks, history, top, chosen, titles)
    model = {name: a for name, a in trained.items() if name not in STATICS}
    statics = {name: a for name, a in trained.items() if name in STATICS}
    learner = SessionsLearner(config.task_run(TASK, items), Visits((), items))
    logits = learner.next_items(model, statics, clicks, history)
    return list_items(logits.astype(np.float64), items, statics, clicks, history, top, chosen, titles)


def list_items(
    logits: Floats,
    items: Items,
    statics: Arrays,
    clicks: Clicks,
    history: Sequence[Clicks],
    top: int,
    chosen: ItemFilter = ALL,
    titles: Titles = NO_TITLES,
) -> list[NextItem]:
    """Return the items with the highest logits, V, as `next_items` does."""
    scores = np.exp(logits - np.logaddexp.reduce(logits))
    best = best_first(scores, (scores > 0) & chosen.allowed(len(scores), seen_items(clicks, history)))[:top]
    shared = scores_of(statics)
    visits = VisitHistory.of(history)
    last = title_of(items.items[int(clicks[-1])], titles)
    return [NextItem(items.items[j], float(scores[j]), _reason(j, clicks, last, visits, shared)) for j in best.tolist()]


def seen_items(clicks: Clicks, history: Sequence[Clicks]) -> Ints:
    """Return the items that a visitor has clicked."""
    return np.unique(np.concatenate([clicks, *history]))


def _reason(item: int, clicks: Clicks, last_title: str, visits: VisitHistory, rows: slist.Rows | None) -> str:
    """Return the reason of an item: own clicks first, then those of the federation."""
    last = int(clicks[-1])
    if (last, item) in visits.pairs:
        return f"you went there from '{last_title}' before"
    if item in visits.visits:
        return "you clicked it in an earlier session"
    if item in clicks:
        return "you clicked it in this session"
    if rows and item in rows.scores(clicks[-1:])[0]:
        return f"visitors of the federation go on to it after '{last_title}'"
    return LEARNT


def clicks_of(text: str, items: Items) -> Clicks:
    """Parse a session: item names separated by commas.

    Raises:
        DataError: The text names no item, or one outside the vocabulary.
    """
    index = {name: k for k, name in enumerate(items.items)}
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in index:
            raise DataError(f"unknown item '{name}'{hint(name, items.items)}")
    if not names:
        raise DataError("the session is empty; give item names separated by commas")
    return np.array([index[name] for name in names], np.int64)


def network_inputs(
    config: RunConfig, items: Items, statics: Arrays, clicks: Clicks, history: Sequence[Clicks]
) -> Arrays:
    """Return the session's graph and, for the default model, features of the visitor's history.

    The closed form has these features, too.
    """
    graph = graph_arrays([clicks], config.options_of(TASK).max_length)
    if config.model != "default" and not slist.is_solved(statics):
        return graph
    scores = scores_of(statics)
    index, value = FeatureRows.of([history_features(clicks, VisitHistory.of(history), scores)]).pad()
    return {**graph, "index": index, "value": value}
