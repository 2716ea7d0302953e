"""Options of the markets task (algorithms.md §5)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.tasks.options import TaskOptions


class MarketsOptions(TaskOptions):
    """Options `tasks.markets.*`."""

    split_options: ClassVar[tuple[str, ...]] = (*TaskOptions.split_options, "protocol", "co_rating")

    protocol: Literal["pairs", "users", "cold"] = "pairs"
    """Held-out data.

    `pairs`: random undirected pairs; `users`: random users, with the pairs that only they have. `cold`: all pairs of random
    items, which are then cold in the market. `users` needs ratings and uses every co-rated pair.
    """

    co_rating: int = Field(2, ge=1)
    """Minimum number c of users who rated both items of an edge; for markets without item-to-item lists."""

    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of pairs, users or items in the test split."""

    fit_share: float = Field(0.1, gt=0, lt=1)
    """Share of the remaining pairs that are training targets of the default model.

    The model predicts them from the graph without them.
    """

    fit_most: int = Field(2000, ge=1)
    """Maximum number of training queries of a market, drawn at random.

    The same number bounds further queries that treat the market's items as new.
    """

    rivals: int = Field(50, ge=2)
    """Number of negative samples per training query: half near the query, half from the whole market."""

    features: Literal["hashing", "tfidf", "ids"] = "hashing"
    """Item features.

    `hashing`: hashed title and description; `tfidf`: TF-IDF of both over the public catalogue; `ids`: hashed ids. An item
    without text always has its hashed id.
    """

    width: int = Field(768, ge=2)
    """Number of features per item."""

    adjacency: Literal["binary", "counts"] = "binary"
    """Edge weights of the paper's networks. `binary`: 1; `counts`: number of users."""

    network: Literal["sgc", "siamese", "spe"] = "sgc"
    """Network of the paper's model.

    `sgc`: SGC, which the paper's methods train. Two baselines do not use the graph. `siamese`: a tower of two layers for both
    items of a pair; `spe`: features mixed with a private vector per item.
    """

    hops: int = Field(3, ge=0)
    """Number m of hops of SGC: Z = S^m X W (Eq 3); 0: the baseline FeatMLP, without graph."""

    embedding: int = Field(128, ge=1)
    """Width of the item embedding of all networks; columns of W."""

    margin: float = Field(1.0, gt=0, le=2)
    """Margin m of Siamese: negative pairs are pushed apart up to that distance on the unit sphere."""

    batch: int = Field(1024, ge=1)
    """Number of BPR triples (item, neighbor, negative) per local step of the paper's networks."""

    bound_users: bool = False
    """Bound what a user adds to sums over markets: at most 8 of their items, total L2 norm at most 1."""

    @property
    def smoothing(self) -> int:
        """Number of hops over which features are propagated."""
        return self.hops if self.network == "sgc" else 0
