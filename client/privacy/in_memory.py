"""Releaser for simulated clients: the same checks and noise, with ledgers in memory."""

from collections.abc import Callable, Mapping

import numpy as np

from client.policy import Policy
from client.privacy.ledger.database import MEMORY
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.storage import LedgerCopy
from client.privacy.release import Releaser
from common.privacy.accounts import Account
from common.privacy.claims import UNBOUNDED
from common.privacy.options import Unit
from common.privacy.randomness import fresh_generator


def in_memory(policy: Policy, generator: Callable[[], np.random.Generator] = fresh_generator) -> Releaser:
    """Return a releaser whose ledger ends with the process."""
    return Releaser(policy, MemoryLedgers(policy), generator)


class MemoryLedgers:
    """Ledgers of one client in memory; calling it opens the one of a unit.

    Args:
        policy: The owner's policy.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy, self._open = policy, dict[Unit, Ledger]()
        self._copies: Mapping[Unit, LedgerCopy] = {}

    def __call__(self, unit: Unit, account: Account) -> Ledger:
        """Open the ledger of a unit, as it was restored or anew."""
        place, limit = self._copies.get(unit, MEMORY), min(self._policy.max_epsilon, UNBOUNDED)
        self._open[unit] = Ledger(place, unit, account, limit, self._policy.delta)
        return self._open[unit]

    def restore(self, copies: Mapping[Unit, LedgerCopy]) -> None:
        """Continue these ledgers, of which none is open."""
        self._copies = copies

    def sequences(self) -> dict[Unit, int]:
        """Return the number of the newest row of each open ledger."""
        return {unit: ledger.head().sequence for unit, ledger in self._open.items()}

    def copy(self, unit: Unit) -> LedgerCopy:
        """Return a copy of an open ledger."""
        return self._open[unit].copy()
