"""What may be said about privacy, in words that go into results and reports."""

from dataclasses import dataclass

from common.privacy.options import Unit

UNCOVERED = (
    "participation: that a client took part or refused, and in which rounds",
    "release times: when an answer was sent and how long it took",
    "floating point: noise is added in float64, the guarantee is that of real-valued noise",
    "numbers that the owner's policy lets out in clear",
)
"""Channels that no mechanism here covers."""

NEIGHBOURS: dict[Unit, str] = {"none": "none", "client": "replace-one", "record": "add-or-remove-one"}
"""Which two data sets must look alike, by unit."""

COVERED: dict[Unit, str] = {
    "none": "nothing",
    "client": "everything this client's noised answers say, for any two contents of its data",
    "record": "everything this client's noised answers say, whether or not any one record is in; their number is public",
}
"""What the guarantee covers, by unit."""


UNBOUNDED = 1e6
"""ε that says no limit was set."""


@dataclass(frozen=True)
class Claim:
    """The guarantee of one account: (ε, δ) for good, however much of it is spent."""

    unit: Unit
    neighbours: str
    mechanisms: tuple[str, ...]
    account: str
    epsilon: float
    delta: float
    """0 where only pure mechanisms may be charged."""
    total: float
    spent: float
    epsilon_so_far: float
    """ε of what was spent, to plan with: no guarantee, as stopping may depend on what was seen."""

    @property
    def limited(self) -> bool:
        """Whether the owner set a limit over all runs; without one each run keeps its own promise, and promises add up."""
        return self.epsilon < UNBOUNDED

    @property
    def left(self) -> float:
        """What may still be spent."""
        return max(0.0, self.total - self.spent)

    @property
    def covers(self) -> str:
        """What it covers."""
        return COVERED[self.unit]

    @property
    def uncovered(self) -> tuple[str, ...]:
        """What it does not."""
        return UNCOVERED
