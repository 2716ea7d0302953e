"""Texts on privacy guarantees, uncovered channels and secure sums, for results and reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.privacy.options import PrivacyOptions, Unit

COPIES = (
    "copies: data copied to a machine that never enrolled at this server start a new budget; a ledger restored together with"
    " its state folder lacks the releases that had not reached the server"
)
"""Uncovered channel of every ledger: neither client nor server can see that releases are missing."""

_ALWAYS = (
    "participation: whether a client took part or refused, and in which rounds",
    "fit: whether the data match the vocabulary and the scale of a run, which the server may choose in order to find out",
    "failures: that a client could not reply, and the reason it stated",
    "release times: when a reply was sent and how long it took",
    COPIES,
)

_PLAINTEXT = (
    "replies without noise: values that the owner's policy allows in plaintext, and all replies of runs without noise"
)

UNCOVERED = (
    *_ALWAYS,
    "floating point: noise of PrivUnitG and of local steps is in floats, as was all noise of earlier versions; the guarantee is"
    " that of real-valued noise",
    _PLAINTEXT,
)
"""Channels that no mechanism covers."""

UNCOVERED_SUMS = (
    *_ALWAYS,
    "members: which clients are in a sum, and how many local steps each made",
    "sums: the sums themselves, with their noise if they have any; they are what the server learns",
    _PLAINTEXT,
)
"""Channels that secure sums do not cover; their noise is exact in integers."""

HELD_OUT = (
    "held-out records: which records are in the test split; a training record is protected as if the other records kept their"
    " splits without it"
)
"""Further uncovered channel of unit `record`."""

NEIGHBOURS: dict[Unit, str] = {"none": "none", "client": "replace-one", "record": "add-or-remove-one"}
"""Neighbouring relation by unit."""

COVERED: dict[Unit, str] = {
    "none": "nothing",
    "client": "the content of all noisy replies of this client under this unit, for any two contents of its data",
    "record": "the content of all noisy replies of this client under this unit, with or without any one record; the number of"
    " records is public",
}
"""Scope of the guarantee by unit."""

COVERED_ITEMS = (
    "the numbers in all noisy replies of this client under this unit, for any two contents of its data that name the same"
    " items"
)
"""Scope of unit `client`, if some of its replies named items."""

SAME_ITEMS = "replace-one-same-items"
"""Neighbouring relation of a client that names rows by the items it rated.

Both contents of its data name the same items.
"""

PROPERTIES = "parameters of inferred properties"
"""Uncovered channel of methods to which clients send the properties of their data."""

ITEM_IDS = (
    "item ids: which products a client rated is sent in plaintext among others drawn at random, and no noise covers it; the"
    " others change every round, so the products named in all rounds of a client are those it rated"
)
"""Uncovered channel of noise on rows of named items."""

GATHERED_ROWS = (
    "row ids: each update names in plaintext the rows that a client trained on, such as those of the items in its data, among"
    " others drawn at random from a seed that the server has"
)
"""Uncovered channel of updates that hold the rows of local steps alone."""

COVERED_SUMS = (
    "; secure sums against the server, all other clients and all helpers but one, if in each run at least one of its helpers"
    " followed the protocol and kept its key"
)
"""Addition to the scope of a ledger with releases in secure sums."""

LOCAL_PART = "; of this, ε = {local:g} holds without trust in a helper"
"""Addition to the scope of a ledger with releases of both kinds."""

UNBOUNDED = 1e6
"""ε that means that no limit was set."""


@dataclass(frozen=True)
class LimitChange:
    """Change of a limit by the owner, after releases."""

    time: str
    """UTC by the owner's clock."""
    before: float
    """ε until then."""
    epsilon: float
    """ε since."""


RAISED = (
    "raised budget: the limit was ε = {before:g} until {time}; ε = {epsilon:g} holds as if it had been fixed beforehand only if"
    " no output released by then led to the change"
)

LIMITED = (
    "first limit: there was none until {time}; ε = {epsilon:g} holds as if it had been fixed beforehand only if no output"
    " released by then led to it"
)

LOWERED = (
    "lowered budget: the first limit was ε = {before:g}; ε = {epsilon:g} holds as if it had been fixed beforehand only if no"
    " output released before the change led to it"
)

BESIDE = "noisy replies under unit {unit}: they have a claim of their own, and the two add up"


@dataclass(frozen=True)
class Claim:
    """Guarantee of one account: (ε, δ) permanently, however much of it is spent."""

    unit: Unit
    neighbours: str
    """Neighbouring relation."""
    mechanisms: tuple[str, ...]
    account: str
    epsilon: float
    delta: float
    """0 if only pure mechanisms can be charged."""
    total: float
    spent: float
    epsilon_so_far: float
    """ε of the amount spent until now, for planning.

    It is no guarantee, since the time of a stop may depend on outputs.
    """
    raises: tuple[LimitChange, ...] = ()
    """Increases of ε and its first limit after releases, oldest first."""
    lowered_from: float = 0.0
    """ε before the owner lowered it; 0 if the claim does not depend on it, or nothing had been released."""
    beside: tuple[Unit, ...] = ()
    """Other units with releases of these data."""
    local_epsilon: float | None = None
    """ε so far of releases with the client's own noise, beside those in secure sums; None without these."""

    @property
    def limited(self) -> bool:
        """True if the owner set a limit over all runs; else each run has its own budget, and they add up."""
        return self.epsilon < UNBOUNDED

    @property
    def left(self) -> float:
        """Remaining budget; 0 if a limit over all runs is set and another unit, a second budget, has releases."""
        return 0.0 if self.limited and self.beside else max(0.0, self.total - self.spent)

    @property
    def covers(self) -> str:
        """Scope of the guarantee."""
        scope = COVERED_ITEMS if self.neighbours == SAME_ITEMS else COVERED[self.unit]
        sums = "" if self.local_epsilon is None else COVERED_SUMS
        return scope + sums + (LOCAL_PART.format(local=self.local_epsilon) if self.local_epsilon else "")

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Channels that the guarantee does not cover."""
        ids = (ITEM_IDS,) if self.neighbours == SAME_ITEMS else ()
        splits = (HELD_OUT,) if self.unit == "record" else ()
        beside = [BESIDE.format(unit=unit) for unit in self.beside]
        changes = [(LIMITED if one.before >= UNBOUNDED else RAISED).format(**vars(one)) for one in self.raises]
        lowered = [LOWERED.format(before=self.lowered_from, epsilon=self.epsilon)] if self.lowered_from else []
        channels = UNCOVERED if self.local_epsilon is None else UNCOVERED_SUMS
        channels = tuple(dict.fromkeys((*channels, *UNCOVERED))) if self.local_epsilon else channels
        return (*ids, *splits, *beside, *changes, *lowered, *channels)


SUM_GUARANTEE = (
    "noise on sums of at least {min_sum} clients: (ε = {epsilon:g}, δ = {delta:g}) for any two contents of this client's data,"
    " against the server, all other clients and all helpers but one, if at least one of {pinned} followed the protocol and kept"
    " its key"
)
"""Guarantee of secure sums with noise."""

FIRST_CONTACT = (
    "; keys of {names} were taken from the server at first contact: a server that lied then is covered by nothing"
)
"""Addition to both guarantees, where the owner pinned no keys."""

MASKS_ALONE = (
    "masked sums of at least {min_sum} clients, no noise: single updates are hidden from all helpers but one, and from a server"
    " that holds {keys}; what sums reveal is not bounded"
)
"""Guarantee of secure sums without noise."""

PER_CLUSTER = "; the sum has a part for each cluster, which may be that of one client, but does not say of which"
"""Addition to the guarantee without noise, in methods whose clients choose a cluster."""


def describe_sums(
    options: PrivacyOptions,
    min_sum: int,
    pinned: Sequence[str],
    first_contact: Sequence[str] = (),
    *,
    has_clusters: bool = False,
) -> str:
    """Return the guarantee of a run's secure sums.

    The guarantee relies on the pinned helpers; keys of `first_contact` came from the server. With clusters, sums have a part
    for each cluster of clients.
    """
    is_exact = options.unit == "none"
    text = MASKS_ALONE + (PER_CLUSTER if has_clusters else "") if is_exact else SUM_GUARANTEE
    added = FIRST_CONTACT.format(names=", ".join(first_contact)) if first_contact else ""
    keys = f"the keys of fewer than {min_sum - 1} members" if min_sum > 2 else "no member's key"
    return text.format(min_sum=min_sum, keys=keys, pinned=", ".join(pinned), **options.model_dump()) + added
