"""The ratings task: what server and clients agree on about the ratings that people give to products."""

from typing import Literal

from pydantic import Field

from common.methods.spec import Capabilities
from common.tasks.spec import ModelVariant, NamedRows, TaskOptions


class RatingsOptions(TaskOptions):
    """`[tasks.ratings]`. What the default model says of a person is fixed in public: fitting it would cost privacy."""

    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of a person's ratings, drawn at random, that is held out for testing (4 : 1)."""

    validation_share: float = Field(0.0, ge=0, lt=1)
    """Share of the others that is held out for choosing rates and rounds."""

    arrival: Literal["all", "online"] = "all"
    """Whether the training ratings are all there at the start, or half of them, the rest arriving evenly over the rounds."""

    prior: float = Field(0.7, ge=0, le=1)
    """What an unknown person's mean is taken for, as a share of the scale."""

    prior_weight: float = Field(3.0, gt=0)
    """Ratings that the prior is worth beside a person's own."""

    offset: float = Field(0.15, ge=0)
    """a of the default model's report: what having rated a product adds to having rated it above one's own mean, so that
    popularity carries signal too."""

    offset_weight: float = Field(100.0, ge=0)
    """Ratings at which a person's offset is half of a: being among the few things that somebody rated says little."""

    slope: float = 0.022
    """By how much a product that is one standard deviation better is expected to be rated higher, as a share of the scale;
    of scores without noise."""

    slope_noise: float = Field(0.6, gt=0)
    """Noise at which the slope is 1/√2 of that: the standard deviation on one number of a report of norm 1, a client."""

    slope_weight: float = Field(160.0, gt=0)
    """Ratings that the slope is worth beside a person's own, which correct it on their machine; of scores without noise."""

    width: int = Field(8, ge=1)
    """d, width of the paper's embeddings."""

    embedding_std: float = Field(1.0, gt=0)
    """Standard deviation of the paper's embeddings before training; .3 does better under noise."""

    items: Literal["dense", "paper"] = "dense"
    """Of the paper's model: whether a client uploads rows of all products, or, as the paper has it, of those it rated among
    `pseudo-items` others. Noise covers the rows' numbers; which rows they are is sent in clear, and nothing covers that."""

    pseudo_items: int = Field(50, ge=0)
    """Products that a client did not rate whose rows it uploads too, drawn anew each round (the paper: 50, ML-1M 400)."""

    count_offset: Literal[False] = False
    """Sums over clients that the model starts from; this task has none."""

    @property
    def named_rows(self) -> NamedRows | None:
        """Rows of the paper's item table, where `items` is `paper`."""
        return NamedRows("items", self.pseudo_items) if self.items == "paper" else None

    def check(self, model: ModelVariant, method: str, capabilities: Capabilities) -> None:
        """Accept what `items` is set to.

        Raises:
            ValueError: The model has no item table, or the method does not treat its rows alike.
        """
        if self.items == "paper" and model != "paper":
            raise ValueError("tasks.ratings.items=paper uploads rows of the paper's model; say model=paper")
        if self.items == "paper" and not capabilities.row_wise:
            raise ValueError(f"tasks.ratings.items=paper averages row by row, which {method} does not; use fedavg")
