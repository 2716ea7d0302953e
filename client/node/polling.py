"""Adaptive polling: near the expected time of the next message, then with exponential back-off."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

FIRST_RETRY_SECONDS, RETRY_GROWTH, MAX_RETRY_SECONDS = 0.1, 1.05, 2.5  # seconds between two attempts to reach a server

LEAST_CAP_SECONDS, MOST_CAP_SECONDS = 2.0, 30.0
"""Longest waits that a server may ask for."""


@dataclass(frozen=True)
class Polling:
    """Adaptive polling schedule.

    Args:
        head_start: Share of the shortest recent time between a reply and the next message before the first poll. Rounds
            are regular, and polls before other clients have finished slow them down.
        first: Seconds to wait after the first empty answer.
        growth: Factor from one wait to the next; a message is detected at most about (growth − 1) of the time since the
            first poll too late.
        cap: Longest wait in seconds, reached after long idle times.
        courtesy: Minimum wait as a multiple of the last answer's time, so that a busy server is polled less.
        jitter: Relative random spread of waits, so that clients do not poll in lockstep.
    """

    head_start: float = 0.6
    first: float = 0.004
    growth: float = 1.25
    cap: float = 2.0
    courtesy: float = 3.0
    jitter: float = 0.2

    def capped(self, seconds: float) -> "Polling":
        """Return the schedule with the longest wait that a server asks for; 0 keeps it."""
        return replace(self, cap=min(max(seconds, LEAST_CAP_SECONDS), MOST_CAP_SECONDS)) if seconds > 0 else self

    def wait_after_reply(self, rhythm: float, random: Random) -> float:
        """Return seconds to wait after a reply if the next message usually arrives within `rhythm` seconds."""
        return self._spread(min(self.cap, self.head_start * rhythm), random)

    def wait_after_nothing(self, empty: int, took: float, random: Random) -> float:
        """Return seconds to wait after `empty` ≥ 1 empty answers, the last of which took `took` seconds."""
        steps = min(empty - 1, 200)  # the power must not overflow in a client that is idle for weeks
        return self._spread(min(self.cap, max(self.first * self.growth**steps, self.courtesy * took)), random)

    def _spread(self, wait: float, random: Random) -> float:
        return wait * random.uniform(1 - self.jitter, 1 + self.jitter)


def retry_pauses(random: Random) -> Iterator[float]:
    """Yield the seconds to wait before the first, second, ... attempt to reach a server again."""
    wait = FIRST_RETRY_SECONDS
    while True:
        yield wait * random.uniform(0.8, 1.2)
        wait = min(RETRY_GROWTH * wait, MAX_RETRY_SECONDS)
