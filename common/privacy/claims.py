"""What may be said about privacy, in words that go into results and reports."""

from dataclasses import dataclass

from common.privacy.options import Unit

UNCOVERED = (
    "participation: that a client took part or refused, and in which rounds",
    "fit: that data fit, or do not fit, the vocabulary and the scale that a server names, which it may choose to find out",
    "failures: that a client could not answer, and the reason it gave",
    "release times: when an answer was sent and how long it took",
    "floating point: noise is added in float64, in local steps in float32; the guarantee is that of real-valued noise",
    "answers without noise: numbers that the owner's policy lets out in clear, and updates of runs that noise counts only",
)
"""Channels that no mechanism here covers."""

HELD_OUT = (
    "which records are held out for testing: one that trains is hidden, as if the others kept their parts without it"
)
"""What unit `record` leaves open besides."""

NEIGHBOURS: dict[Unit, str] = {"none": "none", "client": "replace-one", "record": "add-or-remove-one"}
"""Which two data sets must look alike, by unit."""

COVERED: dict[Unit, str] = {
    "none": "nothing",
    "client": "everything this client's noised answers under this unit say, for any two contents of its data",
    "record": "everything this client's noised answers under this unit say, whether or not any one record is in; their number "
    "is public",
}
"""What the guarantee covers, by unit."""

COVERED_ITEMS = (
    "the numbers in this client's noised answers under this unit, for any two contents of its data that name the same "
    "items"
)
"""Of unit `client`, where some of its answers named items."""


SAME_ITEMS = "replace-one-same-items"
"""Neighbours of a client that names rows by the items it rated: two contents of its data that name the same."""

ITEM_IDS = (
    "item ids: which products a client rated is sent in clear among others drawn at random, and no noise covers it; the others "
    "change every round, so what is named in all of a client's rounds is what it rated"
)
"""What noise on rows of named items leaves open."""

UNBOUNDED = 1e6
"""ε that says no limit was set."""


@dataclass(frozen=True)
class Raised:
    """The owner let more be spent than was first promised."""

    time: str
    """UTC by the owner's clock."""
    before: float
    """ε until then."""
    epsilon: float
    """ε since."""


RAISED = (
    "raised budget: ε = {before:g} was promised until {time}; ε = {epsilon:g} holds as if it had been fixed beforehand only if "
    "nothing that was released by then led to it"
)


LIMITED = (
    "first limit: none was set until {time}; ε = {epsilon:g} holds as if it had been fixed beforehand only if nothing that was "
    "released by then led to it"
)

LOWERED = (
    "lowered budget: ε = {before:g} was promised first; ε = {epsilon:g} holds as if it had been fixed beforehand only if "
    "nothing that was released before it was lowered led to it"
)

BESIDE = "noised answers under unit {unit}: they have a claim of their own, and the two add up"


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
    raises: tuple[Raised, ...] = ()
    """How ε came to be what it is, oldest first: set where there was no limit, or raised; empty where neither was ever done."""
    lowered_from: float = 0.0
    """What ε was before the owner lowered it; 0 where that says nothing, or where nothing had been released."""
    beside: tuple[Unit, ...] = ()
    """Other units under which these data released something."""

    @property
    def limited(self) -> bool:
        """Whether the owner set a limit over all runs; without one each run keeps its own promise, and promises add up."""
        return self.epsilon < UNBOUNDED

    @property
    def left(self) -> float:
        """What may still be spent: under a limit over all runs nothing, once another unit has a second budget."""
        return 0.0 if self.limited and self.beside else max(0.0, self.total - self.spent)

    @property
    def covers(self) -> str:
        """What it covers."""
        return COVERED_ITEMS if self.neighbours == SAME_ITEMS else COVERED[self.unit]

    @property
    def uncovered(self) -> tuple[str, ...]:
        """What it does not."""
        ids = (ITEM_IDS,) if self.neighbours == SAME_ITEMS else ()
        roles = (HELD_OUT,) if self.unit == "record" else ()
        beside = [BESIDE.format(unit=unit) for unit in self.beside]
        raises = [(LIMITED if one.before >= UNBOUNDED else RAISED).format(**vars(one)) for one in self.raises]
        lowered = [LOWERED.format(before=self.lowered_from, epsilon=self.epsilon)] if self.lowered_from else []
        return (*ids, *roles, *beside, *raises, *lowered, *UNCOVERED)
