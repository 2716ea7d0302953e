"""The markets task: what server and clients agree on about items that go with an item (algorithms.md §5)."""

from typing import Literal

from pydantic import Field

from common.privacy.claims import HELD_OUT
from common.privacy.options import PrivacyOptions
from common.tasks.spec import TaskOptions


class MarketsOptions(TaskOptions):
    """`[tasks.markets]`."""

    protocol: Literal["pairs", "users", "cold"] = "pairs"
    """What is held out: undirected pairs drawn at random; whole users, whose pairs that are new count; or all pairs of items
    drawn at random, which are then cold in this market. `users` needs ratings, and takes every co-rated pair."""

    co_rating: int = Field(2, ge=1)
    """c: users who must have rated both items for an edge, where a market has ratings and no item-to-item lists."""

    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of pairs, users or items held out for testing."""

    validation_share: float = Field(0.0, ge=0, lt=1)
    """Share of what is left, held out for choosing rates and rounds."""

    fit_share: float = Field(0.1, gt=0, lt=1)
    """Share of what is left after both that the default model's scorer is asked for in training, on the graph without it."""

    fit_most: int = Field(2000, ge=1)
    """Most such questions of a market, and most about its items as if they were new; more are thinned out at random."""

    rivals: int = Field(50, ge=2)
    """Items that a right answer must beat in training: half of them near the query, half drawn from the whole market."""

    features: Literal["hashing", "tfidf", "ids"] = "hashing"
    """What items are to a model: title and description, hashed, or by their words' weights over the public catalogue; or
    their ids, hashed. Items without text are hashed ids in any case."""

    width: int = Field(768, ge=2)
    """Numbers per item that those are."""

    adjacency: Literal["binary", "counts"] = "binary"
    """Edges of the paper's networks: there or not, or weighted by how many users they stand for."""

    network: Literal["sgc", "siamese", "spe"] = "sgc"
    """The paper's network: SGC, which its methods train; or one of two baselines that see no graph: a tower of two layers for
    both items of a pair (Siamese), or features mixed with a vector of each item that stays with the market (SPE)."""

    hops: int = Field(3, ge=0)
    """m of SGC: Z = S^m X W (Eq 3); 0 leaves the graph out, which is the baseline FeatMLP."""

    embedding: int = Field(128, ge=1)
    """Columns of W; numbers an item, in any network."""

    margin: float = Field(1.0, gt=0, le=2)
    """m of Siamese: items that do not go together are pushed apart up to that distance on the unit sphere."""

    batch: int = Field(1024, ge=1)
    """Triples (item, neighbour, other item) of a local step of the paper's networks."""

    bound_users: bool = False
    """Bound what one user adds to the summed counts: at most 8 of their items count, and all they add has L2 norm 1."""

    count_offset: bool = False
    """Use what other markets' pairs and items add up to. Counts leave in clear, which needs the clients' policies to allow it,
    or with noise of their own, see `count-epsilon`."""

    count_epsilon: float = Field(0.0, ge=0, allow_inf_nan=False)
    """ε of the noise that each market adds to its counts before they leave it, hiding any one of its users, whatever the server
    and the other markets do; what a user adds is bounded then. 0 adds none. It covers neither the scorer's updates nor metrics,
    nor, with `protocol=users`, what the draw of users tells."""

    count_delta: float = Field(1e-5, gt=0, lt=1)
    """δ that goes with it."""

    @property
    def smoothing(self) -> int:
        """Hops that a network's features are propagated over."""
        return self.hops if self.network == "sgc" else 0

    @property
    def bounded(self) -> bool:
        """Whether what one user adds to the counts is bounded."""
        return self.bound_users or self.count_epsilon > 0

    @property
    def count_privacy(self) -> PrivacyOptions:
        """Gaussian noise that each market adds to its counts; one user is a record."""
        if not self.count_epsilon:
            return PrivacyOptions()
        return PrivacyOptions(unit="record", epsilon=self.count_epsilon, delta=self.count_delta)

    def uncovered(self) -> tuple[str, ...]:
        """Return channels that no privacy claim covers: which users are held out."""
        noised = self.count_offset and self.count_epsilon > 0
        return (HELD_OUT,) if noised and self.protocol == "users" else ()
