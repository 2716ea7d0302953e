"""What a release may cost at most, checked inside the transaction that pays for it."""

import math
from dataclasses import dataclass
from sqlite3 import Connection

from client.privacy.ledger import queries
from client.privacy.ledger.records import Slot
from common.errors import RefusedError
from common.privacy.options import Unit


@dataclass(frozen=True)
class Limits:
    """What releases may cost together, in the unit of their account.

    Args:
        run: All of a run: what it promises.
        round: All of one round of it, whatever its phases and however often it is asked.
    """

    run: float = math.inf
    round: float = math.inf


UNLIMITED = Limits()
"""But for the ledger's own total."""


def check_affordable(db: Connection, unit: Unit, slot: Slot, cost: float, total: float, limits: Limits) -> None:
    """Accept a cost.

    Args:
        db: The ledger, nobody else writing.
        unit: Whose data are hidden.
        slot: Which answer.
        cost: Of it.
        total: What everything under that unit may cost.
        limits: What the answer's run and round may.

    Raises:
        RefusedError: It is more than is left.
    """
    if cost > total or queries.spent(db, unit, more=cost) > total:
        raise RefusedError("this release costs more than is left of this client's privacy budget; nothing was spent")
    if queries.spent(db, unit, slot.run, more=cost) > limits.run:
        raise RefusedError("this release costs more than is left of what its run promises; nothing was spent")
    if queries.spent(db, unit, slot.run, slot.round, more=cost) > limits.round:
        raise RefusedError("this release costs more than this client's policy allows a round; nothing was spent")


def check_alone(db: Connection, unit: Unit) -> None:
    """Accept a unit that is the only one ever charged.

    Raises:
        RefusedError: Another was.
    """
    for other, _ in queries.spent_by_unit(db):
        if other != unit:
            raise RefusedError(
                f"this client's max-epsilon already counts releases of unit {other}, beside which unit {unit} would be a"
                " second budget; nothing was spent"
            )
