"""Preprocessing of published sets (§2.5); plain data are used as they are."""

from dataclasses import dataclass, replace

import numpy as np

from client.tasks.sessions.data.log import NOBODY, TEST, TRAIN, Log

DAY_SECONDS = 24 * 60 * 60


@dataclass(frozen=True)
class Recipe:
    """Steps in the order in which they are taken; 0 leaves a step out.

    Args:
        top: Most clicked items that are kept.
        least: Users who clicked an item that is kept; clicks, where the source knows no users.
        longest: Clicks of a session that is kept.
        test_days: Sessions that end in the last so many days are the test part; without, the split cuts some off.
        by_date: Days are counted by the calendar (UTC), not back from the last click: for sources that tell dates only.
        fraction: Keep the latest training sessions, with 1/fraction of all examples.
    """

    top: int = 0
    least: int = 0
    longest: int = 0
    test_days: float = 0
    by_date: bool = False
    fraction: int = 1


def prepare(log: Log, recipe: Recipe) -> Log:
    """Take the steps; sessions left with one click are dropped after each that drops clicks."""
    log = _most_clicked(log, recipe.top).long_enough() if recipe.top else log.long_enough()
    log = _supported(log, recipe.least).long_enough() if recipe.least else log
    log = log.where(log.lengths <= recipe.longest) if recipe.longest else log
    log = _last_days_for_test(log, recipe) if recipe.test_days and len(log.item) else log
    return _latest(log, recipe.fraction) if recipe.fraction > 1 else log


def active_users(log: Log) -> Log:
    """Return the log without users who have no session left."""
    if not log.users:
        return log
    active, user = np.unique(log.user, return_inverse=True)
    return replace(log, user=user.ravel().astype(np.int64), users=[log.users[k] for k in active.tolist()])


def _most_clicked(log: Log, top: int) -> Log:
    clicks = np.bincount(log.item, minlength=len(log.names))
    kept = np.argsort(-clicks, kind="stable")[:top]
    return log.where(np.isin(log.item, kept))


def _supported(log: Log, least: int) -> Log:
    item = log.item
    if (log.user != NOBODY).all():
        item = np.unique(np.stack([log.item, log.user]), axis=1)[0]
    return log.where(np.bincount(item, minlength=len(log.names))[log.item] >= least)


def _last_days_for_test(log: Log, recipe: Recipe) -> Log:
    day = log.time / DAY_SECONDS
    ends = np.floor(day) if recipe.by_date else day
    held = ends[log.last][_place(log)] > ends.max() - recipe.test_days
    return replace(log, part=np.where(held, TEST, log.part))


def _latest(log: Log, fraction: int) -> Log:
    """Keep the latest sessions; SR-GNN cuts expanded examples, here the session at the cut stays whole."""
    train = log.last & (log.part == TRAIN)
    sessions, examples = log.session[train], log.lengths[train] - 1
    latest_first = np.argsort(-log.time[train], kind="stable")
    before = np.cumsum(examples[latest_first]) - examples[latest_first]
    kept = sessions[latest_first][before < examples.sum() / fraction]
    return log.where((log.part != TRAIN) | np.isin(log.session, kept))


def _place(log: Log) -> np.ndarray:
    """Return the index of each click's session, C."""
    return np.unique(log.session, return_inverse=True)[1].ravel()
