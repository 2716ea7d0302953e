"""Conversion of clicks by name to visitors under a vocabulary, for all forms."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from client.tasks.sessions.data.log import CASE, NOBODY, TEST, TRAIN, Log
from client.tasks.sessions.data.split import cases_of
from client.tasks.sessions.data.visitors import Case, Visitor, Visits
from common.errors import DataError
from common.tasks.sessions.vocabulary import Clicks, Items
from common.text import count


def to_dataset(log: Log, items: Items | None, group: int, path: Path) -> Visits:
    """Return visitors with sessions of two clicks or more; a user without such sessions has none.

    Test cases without a user are partitioned among the visitors in order, in runs of nearly equal length.

    Args:
        log: What was read.
        items: The vocabulary; without one, what the training sessions use, most clicked first, then by name.
        group: Number of consecutive sessions without a user that make a visitor.
        path: Named in errors.

    Raises:
        DataError: There is no visitor, or no session to make a vocabulary of.
    """
    usable = grouped(log.long_enough(), group)
    items = items or _vocabulary(usable, path)
    listed = _listed(usable, items)
    notes = (*usable.notes, *_notes(log, usable, listed))
    visitors = tuple(_visitors(listed))
    if not visitors:
        raise DataError("no session of two clicks or more; there is nothing to learn from", path)
    return Visits(visitors, items, notes)


def grouped(log: Log, group: int) -> Log:
    """Give each run of `group` consecutive training sessions without a user a user `group-00001`, ….

    A note says so if there are several.
    """
    stray = (log.user == NOBODY) & (log.part == TRAIN)
    if not stray.any():
        return log
    numbers, place = np.unique(log.session[stray], return_inverse=True)
    names = [f"group-{number + 1:05d}" for number in range(-(-len(numbers) // group))]
    user = log.user.copy()
    user[stray] = len(log.users) + place.ravel() // group
    notes = list(log.notes)
    if len(names) > 1:
        each = f"{count(len(names), 'visitor')} of {count(group, 'session')} each, in order"
        notes.insert(0, f"{each}; without a column user nothing says whose the sessions are")
    return replace(log, user=user, users=[*log.users, *names], notes=tuple(notes))


def _vocabulary(log: Log, path: Path) -> Items:
    clicks = np.bincount(log.item[log.part == TRAIN], minlength=len(log.names)).tolist()
    used = [k for k, count in enumerate(clicks) if count]
    if not used:
        raise DataError("no session of two clicks or more; there is nothing to learn from", path)
    return Items(items=tuple(log.names[k] for k in sorted(used, key=lambda k: (-clicks[k], log.names[k]))))


def _listed(log: Log, items: Items) -> Log:
    """Return clicks on items of the vocabulary, as indices; test cases need their target among them."""
    index = {name: k for k, name in enumerate(items.items)}
    item = np.array([index.get(name, -1) for name in log.names], np.int64)[log.item]
    senseless = log.session[log.last & (log.part == CASE) & (item < 0)]
    listed = replace(log, item=item, names=items.items)
    return listed.where((item >= 0) & ~np.isin(log.session, senseless)).long_enough()


def _visitors(log: Log) -> Iterator[Visitor]:
    """Yield the visitors in the order of their names."""
    sessions: dict[int, list[Clicks]] = defaultdict(list)
    cases: dict[int, list[Case]] = defaultdict(list)
    first = log.starts
    owners, parts = log.user[first].tolist(), log.part[first].tolist()
    pieces = np.split(log.item, first[1:])  # one empty piece if there is no session
    for owner, part, clicks in zip(owners, parts, pieces, strict=False):
        if part == TRAIN:
            sessions[owner].append(clicks)
        else:
            cases[owner] += cases_of(clicks) if part == TEST else [Case(clicks[:-1], int(clicks[-1]))]
    shares = _runs(cases[NOBODY], len(log.users))
    for user in sorted(range(len(log.users)), key=lambda k: log.users[k]):
        yield Visitor(log.users[user], tuple(sessions[user]), (*cases[user], *shares[user]))


def _runs(cases: Sequence[Case], parts: int) -> list[Sequence[Case]]:
    return [cases[k * len(cases) // parts : (k + 1) * len(cases) // parts] for k in range(parts)]


def _notes(log: Log, usable: Log, listed: Log) -> Iterator[str]:
    """Yield notes on what was left out."""
    if short := len(log.starts) - len(usable.starts):
        yield f"{short} sessions of one click dropped"
    strange = len(usable.item) - len(listed.item)
    if strange:
        lost = len(usable.starts) - len(listed.starts)
        yield f"{strange} clicks skipped on or beside items outside the vocabulary, {lost} sessions with nothing left"
    cases = _cases(usable)
    if missed := cases - _cases(listed):
        yield f"{missed} of {cases} test cases left out: they ask for items outside the vocabulary or follow none within"


def _cases(log: Log) -> int:
    """Return the number of test cases of all sessions."""
    return int(
        ((log.part == TEST).sum() - (log.last & (log.part == TEST)).sum()) + (log.last & (log.part == CASE)).sum()
    )
