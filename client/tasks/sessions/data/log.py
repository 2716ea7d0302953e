"""Clicks as columns: what every form of session data is read into before it has a vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow

from client.data.tables.codes import Codes, index_names, recode
from client.data.tables.values import to_codes
from common.arrays import Flags, Floats

NOBODY = -1
"""Code of the user where the source knows none."""

TRAIN, TEST, CASE = 0, 1, 2
"""Part of a session: training; held out, with each click after the first or only the last as target."""

SHORTEST = 2
"""Clicks of a session that has something to tell."""


@dataclass(frozen=True, eq=False)
class Log:
    """C clicks, those of a session next to each other and in order.

    Args:
        session: C, number of each click's session, ascending.
        item: C, codes into `names`.
        part: C, one of `TRAIN`, `TEST`, `CASE`.
        user: C, codes into `users` or `NOBODY`.
        time: C, Unix seconds; 0 where unknown.
        names: Distinct items.
        users: Distinct users, also those without a click.
        notes: As `Dataset.notes`.
    """

    session: Codes
    item: Codes
    part: Codes
    user: Codes
    time: Floats
    names: Sequence[str]
    users: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    @property
    def starts(self) -> Codes:
        """Place of the first click of each session."""
        return np.flatnonzero(np.diff(self.session, prepend=-1))

    @property
    def lengths(self) -> Codes:
        """Number of clicks of each click's session, C."""
        counts = np.diff(self.starts, append=len(self.session))
        return np.repeat(counts, counts)

    @property
    def last(self) -> Flags:
        """C flags: True for the last click of its session."""
        last: Flags = np.diff(self.session, append=-1) != 0
        return last

    def where(self, kept: Flags) -> "Log":
        """Return the clicks for which `kept`, C, is true."""
        columns = {name: getattr(self, name)[kept] for name in ("session", "item", "part", "user", "time")}
        return replace(self, **columns)

    def long_enough(self) -> "Log":
        """Return the log without sessions of one click."""
        return self.where(self.lengths >= SHORTEST)


def log_of_sessions(sessions: Sequence[Sequence[str]], part: int, users: Sequence[str] = ()) -> Log:
    """Return a log of whole sessions, in their order; `users`, if given, has one user per session."""
    lengths = [len(session) for session in sessions]
    item, names = to_codes(pyarrow.array([name for session in sessions for name in session], pyarrow.string()))
    user, owners = to_codes(pyarrow.array(users, pyarrow.string()))
    return Log(
        session=np.repeat(np.arange(len(sessions)), lengths),
        item=item,
        part=np.full(len(item), part),
        user=np.repeat(user if users else np.full(len(sessions), NOBODY), lengths),
        time=np.zeros(len(item)),
        names=names,
        users=owners,
    )


def join_logs(logs: Sequence[Log]) -> Log:
    """Return several logs as one; a user's sessions come in the order of the logs."""
    names, users = index_names([log.names for log in logs]), index_names([log.users for log in logs])
    firsts = np.cumsum([0, *(int(log.session.max(initial=-1)) + 1 for log in logs)])
    return Log(
        session=np.concatenate([log.session + first for log, first in zip(logs, firsts, strict=False)]),
        item=np.concatenate([recode(log.item, log.names, names) for log in logs]),
        part=np.concatenate([log.part for log in logs]),
        user=np.concatenate([recode(log.user, log.users, users) for log in logs]),
        time=np.concatenate([log.time for log in logs]),
        names=list(names),
        users=list(users),
        notes=tuple(note for log in logs for note in log.notes),
    )
