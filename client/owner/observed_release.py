"""Releaser of a preview: the same checks, clip and noise, and a note of the exact values."""

from dataclasses import dataclass

import numpy as np

from client.policy import Policy
from client.privacy.in_memory import MemoryLedgers
from client.privacy.release import Releaser
from client.privacy.reservation import Reservation
from client.privacy.transforms import AdditiveNoise, Privatize, Released, Update, Work


@dataclass(frozen=True)
class ReleasedPair:
    """Exact and released values of one reply; the exact values stay on this machine."""

    exact: Update
    released: Released
    clip: float
    """Clip norm C over all arrays together; infinite without noise on the upload."""


class ObservedReleaser(Releaser):
    """Releaser with a ledger in memory that notes every release.

    Args:
        policy: The owner's policy.
    """

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
