"""Options of the section `[federation]`: cohorts, quorum, time limits and the form of updates."""

from typing import Literal, Self

from pydantic import Field, model_validator

from common.options import Options

Encoding = Literal["float32", "float16", "int8"]
"""Form of the numbers in uploads."""

RobustRule = Literal["none", "auto", "median", "trimmed-mean", "multi-krum", "geometric-median"]
"""Rule by which updates are aggregated in place of their mean."""

MIN_ROBUST_REPLIES = {"none": 1, "auto": 1, "median": 3, "trimmed-mean": 3, "multi-krum": 5, "geometric-median": 3}
"""Smallest quorum of a rule; multi-Krum needs 2f + 3 replies with f ≥ 1 attackers."""


class Federation(Options):
    """Options of cohorts, quorum, time limits and the form of updates, `[federation]`."""

    min_clients: int = Field(2, ge=1)
    """Number of enrolled clients at which the run starts."""

    min_holders: int = Field(3, ge=2)
    """Number of clients that must have a name for it to enter a vocabulary that clients find.

    It holds for `catalogue=federated`, and the run waits for as many clients.
    """

    min_replies: int = Field(1, ge=1)
    """Quorum: a round with fewer usable replies stops the run; the last good model stays.

    If clients were lost, the round is asked again for `wait` seconds, at most 120. If replies were unusable, it is
    repeated without their senders as long as enough others are there."""

    cohort: float = Field(1.0, gt=0, le=1)
    """Share of the enrolled clients in a cohort, sampled from (seed, round, client names)."""

    evaluate_share: float = Field(1.0, gt=0, le=1)
    """Share of the clients that measure a round's model, drawn for each round.

    All measure the final model, and all with helpers. A small share is cheaper, and the metrics vary more from round to round.
    """

    deadline: float = Field(120.0, gt=0)
    """Time limit of a round in seconds; later replies are left out."""

    upload: float = Field(20.0, gt=0)
    """Time limit in seconds for an announced upload, within the deadline. Clients without heartbeats are
    given up within 3 s."""

    patience: float = Field(10.0, ge=0)
    """Factor on the time t of the quorum: the remaining clients have patience·t + 1 seconds more."""

    wait: float = Field(120.0, gt=0)
    """Seconds to wait for `min-clients` before the first round. Up to 120, the run ends at once if
    `min-clients` nodes have answered and some of them refused; above 120, it waits for further clients. Later rounds
    wait for `min-replies` clients, at most 120 seconds."""

    updates: Literal["auto", "dense"] = "auto"
    """Form of tables in uploads: `auto` sends only the changed rows if that is smaller. `dense` always
    sends whole tables, which do not show the rows a client used."""

    answer: Literal["sums", "replies"] = "sums"
    """Training replies of a hub with more than 16 clients: `sums` or `replies`.

    `sums` adds up the replies of its clients if the method needs sums alone and `robust` is `none`. Single replies let the
    server find outliers after a step that ruined the model."""

    encoding: Encoding = "float32"
    """Form of the numbers in uploads: `float32`, `float16` or `int8`.

    `float16` halves the bytes. `int8` needs about a quarter: 8 bits a number, and a scale for each 256. Both round.
    The client keeps what the server reads. For runs without noise, secure sums and items in plaintext."""

    norm_bound: float = Field(10.0, ge=0, allow_inf_nan=False)
    """Largest norm of an update, as a multiple of the median; 0: no bound.

    A longer update is left out. The median is that of the round, or of the last rounds where fewer than five clients
    answered. Of one or two replies, it is shortened where no quorum is left without it, or after five rounds. The only
    client of a federation has no other to be compared with, and no such bound."""

    robust: RobustRule = "none"
    """Aggregation in place of the mean: coordinate-wise `median` or `trimmed-mean`, `multi-krum`, or
    `geometric-median`. Clients then have equal weights and steps. Few attackers cannot move the aggregate far, but it
    loses what few clients know. `auto` is for runs that more than ten strangers may join. It is `geometric-median` from
    ten replies on where clients send an update alone, and `none` with noise, masks and closed forms."""

    attackers: float = Field(0.2, gt=0, lt=0.5)
    """Share of attackers that `trimmed-mean` and `multi-krum` assume, at least one."""

    penalty: int = Field(5, ge=0)
    """Number of rounds that a client sits out after the server took a step back because of its update."""

    stop: int = Field(0, ge=0)
    """Number of rounds without a gain on validation data after which the run ends; 0: never.

    The gain is that of the task's objective. Planners have an option of their own."""

    min_delta: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Minimum gain of a round for `stop`, in the unit of the objective."""

    deliver: Literal["best", "last"] = "best"
    """Model that a run delivers: `best`, of the best round on validation data, or `last`.

    Without validation data, and where clients keep layers by their method, it is the last. Metrics choose the
    round; they have no noise."""

    compare_alone: bool = False
    """True if each client also trains a model on its own data alone after the last round.

    It takes as many steps as the run, and sends sums of the differences of its units, under the policy for metrics.
    If that takes a client more than half of `deadline`, the run is not compared. Runs with noise are not compared."""

    @model_validator(mode="after")
    def _check_robust(self) -> Self:
        needed = MIN_ROBUST_REPLIES[self.robust]
        if self.min_replies < needed:
            raise ValueError(
                f"federation.robust={self.robust} needs {needed} replies; set federation.min-replies={needed}"
            )
        return self
