"""Split of a visitor into training and held-out sessions, by (seed, name) alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from client.data.partition import floor_share, own_rng
from client.tasks.sessions.data.visitors import Case, Visitor
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Clicks


@dataclass(frozen=True)
class SplitVisitor:
    """A visitor's sessions to train on, in their order, and the cases it holds out."""

    visitor: Visitor
    train: tuple[Clicks, ...]
    validation: tuple[Case, ...]
    test: tuple[Case, ...]


def split_visitor(visitor: Visitor, options: SessionsOptions, seed: int) -> SplitVisitor:
    """Hold out whole sessions at random: the first share for test, the next, of the rest, for validation.

    A visitor that brings test cases holds out no session for test. Shares are rounded down, so one session is always
    left for training; the test sessions do not depend on the validation share.
    """
    order = own_rng(seed, visitor.name).permutation(len(visitor.sessions))
    test = 0 if visitor.test else floor_share(options.test_share, len(order))
    kept = test + floor_share(options.validation_share, len(order) - test)
    return SplitVisitor(
        visitor,
        train=_chosen(visitor, order[kept:]),
        validation=_all_cases(_chosen(visitor, order[test:kept])),
        test=visitor.test or _all_cases(_chosen(visitor, order[:test])),
    )


def cases_of(session: Clicks) -> tuple[Case, ...]:
    """Return the n − 1 examples (clicks so far, next click) of a session of n clicks (§2.5)."""
    return tuple(Case(session[:k], int(session[k])) for k in range(1, len(session)))


def _chosen(visitor: Visitor, places: np.ndarray) -> tuple[Clicks, ...]:
    return tuple(visitor.sessions[k] for k in sorted(places.tolist()))


def _all_cases(sessions: Sequence[Clicks]) -> tuple[Case, ...]:
    return tuple(case for session in sessions for case in cases_of(session))
