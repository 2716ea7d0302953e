"""Releaser of a preview: the same checks, clip and noise, and a note of the exact values."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from client.policy import Policy
from client.privacy.in_memory import MemoryLedgers
from client.privacy.release import Releaser
from client.privacy.reservation import Reservation
from client.privacy.transforms import AdditiveNoise, Privatize, Released, Update, Work
from common.privacy.randomness import fresh_generator


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
        generator: Factory of the random generator for DP noise.
    """

    def __init__(self, policy: Policy, generator: Callable[[], np.random.Generator] = fresh_generator) -> None:
        super().__init__(policy, MemoryLedgers(policy), generator)
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
