"""Options of the ratings task."""

from functools import cached_property
from typing import Literal

from pydantic import Field

from common.tasks.options import Capabilities, NamedRows, TaskOptions


class RatingsOptions(TaskOptions):
    """Options `tasks.ratings.*`; constants of the default model are public, as fitting costs privacy."""

    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of a rater's ratings in the test split, drawn at random (the paper: 4 : 1)."""

    arrival: Literal["all", "online"] = "all"
    """Arrival of the training ratings.

    `all`: all from round 1; `online`: half from round 1, the rest evenly over the rounds.
    """

    prior: float = Field(0.7, ge=0, le=1)
    """Prior mean of a rater's ratings, as a share of the scale."""

    prior_weight: float = Field(3.0, gt=0)
    """Number of ratings that the prior mean counts as."""

    offset: float = Field(0.15, ge=0)
    """Constant a that the default model's report adds for each rated product, a signal of popularity."""

    offset_weight: float = Field(100.0, ge=0)
    """Number of ratings of a rater at which the added constant is a/2; it is smaller for fewer ratings."""

    slope: float = 0.022
    """Expected increase of a rating per standard deviation of the product's score.

    Given as a share of the scale; holds for scores without noise.
    """

    slope_noise: float = Field(0.6, gt=0)
    """Noise level at which the slope is `slope`/√2.

    Standard deviation per coordinate of a client's report of norm 1.
    """

    slope_weight: float = Field(160.0, gt=0)
    """Number of ratings that the public slope counts as when a client fits its own slope.

    Holds for scores without noise.
    """

    width: int = Field(8, ge=1)
    """Width d of the paper's embeddings."""

    embedding_std: float = Field(1.0, gt=0)
    """Standard deviation of the paper's initial embeddings; 0.3 gives lower errors under noise."""

    items: Literal["dense", "paper"] = "dense"
    """Rows of the paper's item table that a client uploads.

    `dense`: all rows; `paper`: rated products and `pseudo-items` further products. Noise covers the values of the rows. The
    row ids are sent in plaintext and have no privacy guarantee.
    """

    pseudo_items: int = Field(50, ge=0)
    """Number of unrated products whose rows a client uploads too (the paper: 50; ML-1M: 400).

    They are drawn in each round.
    """

    @cached_property
    def named_rows(self) -> NamedRows | None:
        """Rows of the paper's item table if `items` is `paper`, else None."""
        return NamedRows("items", self.pseudo_items) if self.items == "paper" else None

    def check(self, model: str, method: str, capabilities: Capabilities) -> None:
        """Check that model and method support the value of `items`.

        Raises:
            ValueError: The model has no item table, or the method's server step is not row-wise.
        """
        if self.items == "paper" and model != "paper":
            raise ValueError("tasks.ratings.items=paper needs the paper's model; set model=paper")
        if self.items == "paper" and not capabilities.row_wise:
            raise ValueError(
                f"tasks.ratings.items=paper needs row-wise averaging, not method {method}; set method=fedavg"
            )
