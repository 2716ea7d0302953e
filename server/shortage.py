"""Reason why too few clients can train."""

from collections.abc import Set

from common.errors import DataError, FedloomError, QuorumError
from common.text import count
from server.roster import Roster


def explain_shortage(roster: Roster, online: Set[int], at_least: int, waited: float) -> FedloomError:
    """Return the error of a wait for `at_least` clients, after `waited` seconds with these nodes online."""
    empty = sum(client.examples == 0 for client in roster.clients.values())
    if empty == len(roster.clients) >= at_least and not roster.refused:
        return DataError(f"{count(empty, 'client')} enrolled, none has training data")
    reasons = "".join(f"; refused: {reason}" for reason in sorted(set(roster.refused.values())))
    return QuorumError(
        f"{count(len(roster.select_trainable(online)), 'client')} can train, {at_least} required after {waited:.0f} s "
        f"({len(online)} online, {empty} without training data){reasons}"
    )
