"""`[federation]`: what a run asks of its clients as a whole."""

from typing import Literal

from pydantic import Field

from common.options import Options


class Federation(Options):
    """Who takes part in a round, and when a round counts."""

    min_clients: int = Field(2, ge=1)
    """The run starts when this many clients have enrolled."""

    min_replies: int = Field(1, ge=1)
    """Quorum: a round with fewer usable replies stops the run, keeping the last good model."""

    cohort: float = Field(1.0, gt=0, le=1)
    """Share of the enrolled clients asked in a round, drawn from (seed, round, client names)."""

    deadline: float = Field(120.0, gt=0)
    """Seconds after which a round goes on without those who have not answered."""

    upload: float = Field(20.0, gt=0)
    """Seconds, of the deadline's, that an answer may take to arrive once it is announced: a client that dies in the middle of
    an upload holds its round up no longer than this."""

    patience: float = Field(10.0, ge=0)
    """Once the quorum has answered after t seconds, the rest have patience·t + 1 s more."""

    wait: float = Field(120.0, gt=0)
    """Seconds to wait for `min-clients` before the first round. Up to 120 the run gives up at once where as many have answered
    as are needed and some refused; above that, others may come. Later rounds wait for `min-replies` clients, 120 s at most."""

    updates: Literal["auto", "dense"] = "auto"
    """How clients send tables of which a round touched few rows: as those rows where that is smaller, or always whole, so
    that which rows a client touched cannot be read off."""
