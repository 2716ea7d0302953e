"""Event of a secure sum."""

import time
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Sum:
    """Secure sum that helpers opened, or that is lost.

    Args:
        round: Number of the round.
        channel: Summed values: `train`, `counts` or `evaluate`.
        clients: Number of clients in the sum; 0 if it is lost.
        rejected: Client -> reason why its upload is not in the sum.
        seconds: Time from the last upload to the opened sum.
        bytes: Bytes exchanged with the helpers.
        lost: Reason why the sum will never be opened; empty if it was.
    """

    event: Literal["sum"] = "sum"
    time: float = field(default_factory=time.time)
    round: int
    channel: str
    clients: int
    rejected: dict[str, str] = field(default_factory=dict)
    seconds: float
    bytes: int
    lost: str = ""
