"""When to ask the server again: about when the next message is due, then often, ever more rarely while nothing comes."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Polling:
    """An adaptive polling schedule.

    Args:
        head_start: After a reply, the first question comes after this share of the shortest recent time between a reply
            and the next message: rounds have a rhythm, and asking before the others are done only slows them down.
        first: Seconds to wait after the first empty answer.
        growth: Factor from one wait to the next; a message is then noticed at most about (growth − 1) of the time
            since the first question too late.
        cap: Longest wait in seconds, reached when long idle.
        courtesy: Least wait as a multiple of the time the last answer took, so that a busy server is asked less.
        jitter: Waits are spread by this fraction either way, so that clients do not march in step.
    """

    head_start: float = 0.6
    first: float = 0.004
    growth: float = 1.25
    cap: float = 2.0
    courtesy: float = 3.0
    jitter: float = 0.2

    def wait_after_reply(self, rhythm: float, random: Random) -> float:
        """Seconds to wait after a reply when the next message usually comes within `rhythm` seconds."""
        return self._spread(min(self.cap, self.head_start * rhythm), random)

    def wait_after_nothing(self, empty: int, took: float, random: Random) -> float:
        """Seconds to wait after `empty` ≥ 1 empty answers in a row, the last of which took `took` seconds."""
        steps = min(empty - 1, 200)  # the power must not overflow in a client that idles for weeks
        return self._spread(min(self.cap, max(self.first * self.growth**steps, self.courtesy * took)), random)

    def _spread(self, wait: float, random: Random) -> float:
        return wait * random.uniform(1 - self.jitter, 1 + self.jitter)
