"""Limits of a release, checked inside the transaction that charges it."""

import math
from dataclasses import dataclass
from sqlite3 import Connection

from client.privacy.ledger import queries
from client.privacy.ledger.records import Slot
from common.errors import RefusedError
from common.privacy.options import Unit


@dataclass(frozen=True)
class Limits:
    """Largest sums of costs, in the unit of their account.

    Args:
        run: Limit of a run.
        round: Limit of one round of the run, over all its phases and repetitions.
    """

    run: float = math.inf
    round: float = math.inf


UNLIMITED = Limits()
"""No limit but the ledger's own total."""


def check_affordable(db: Connection, unit: Unit, slot: Slot, cost: float, total: float, limits: Limits) -> None:
    """Accept a cost that stays within all limits.

    Args:
        db: Ledger in a write transaction.
        unit: Protected unit.
        slot: Slot of the release.
        cost: Cost of the release.
        total: Limit of all releases under that unit.
        limits: Limits of the slot's run and round.

    Raises:
        RefusedError: The cost exceeds a limit.
    """
    refused = "release refused: cost exceeds {}; nothing was charged"
    if cost > total or queries.spent(db, unit, more=cost) > total:
        raise RefusedError(refused.format("the remaining privacy budget of this client's data"))
    if queries.spent(db, unit, slot.run, more=cost) > limits.run:
        raise RefusedError(refused.format("the run's remaining budget"))
    if queries.spent(db, unit, slot.run, slot.round, more=cost) > limits.round:
        raise RefusedError(refused.format("the policy's limit for a round (max-epsilon-per-round)"))


def check_alone(db: Connection, unit: Unit) -> None:
    """Accept a unit if no other unit was ever charged.

    Raises:
        RefusedError: Another unit was charged.
    """
    for other, _ in queries.spent_by_unit(db):
        if other != unit:
            raise RefusedError(
                f"release refused: this client's max-epsilon already covers releases of unit {other}, and unit {unit} would be"
                f" a second budget; set privacy.unit={other}"
            )
