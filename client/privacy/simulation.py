"""Releasers of simulations and previews: the same checks, clip and noise, with ledgers in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from client.owner.policy import Policy
from client.privacy.budget import Reservation
from client.privacy.ledger.database import MEMORY
from client.privacy.ledger.ledger import Ledger, LedgerCopy
from client.privacy.release import Releaser
from client.privacy.transforms import AdditiveNoise, Privatize, Released, Update, Work
from common.privacy.accounts import Account
from common.privacy.claims import UNBOUNDED
from common.privacy.mechanisms import fresh_generator
from common.privacy.options import Unit


def in_memory(policy: Policy, generator: Callable[[], np.random.Generator] = fresh_generator) -> Releaser:
    """Return a releaser whose ledger ends with the process."""
    return Releaser(policy, MemoryLedgers(policy), generator)


class MemoryLedgers:
    """Ledgers of one client in memory; calling it opens the one of a unit."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._open = policy, dict[Unit, Ledger]()
        self._copies: Mapping[Unit, LedgerCopy] = {}

    def __call__(self, unit: Unit, account: Account) -> Ledger:
        """Open the ledger of a unit, as it was restored or anew."""
        stored, limit = self._copies.get(unit, MEMORY), min(self._policy.max_epsilon, UNBOUNDED)
        self._open[unit] = Ledger(stored, unit, account, limit, self._policy.delta)
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


@dataclass(frozen=True)
class ReleasedPair:
    """Exact and released values of one reply; the exact values stay on this machine."""

    exact: Update
    released: Released
    clip: float
    """Clip norm C over all arrays together; infinite without noise on the upload."""


class ObservedReleaser(Releaser):
    """Releaser with a ledger in memory that notes every release."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, MemoryLedgers(policy))
        self.pairs: list[ReleasedPair] = []

    def privatize(self, reservation: Reservation | None, steps: int = 0) -> Privatize:
        """Return the step from exact to released values, which notes both."""
        step = super().privatize(reservation, steps)
        clip = step.reservation.options.clip if isinstance(step, AdditiveNoise) else np.inf

        def observe(work: Work) -> Released:
            updates: list[Update] = []

            def observed() -> Update:
                updates.append(work())
                return updates[-1]

            released = step(observed)
            self.pairs.append(ReleasedPair(updates[-1], released, clip))
            return released

        return observe
