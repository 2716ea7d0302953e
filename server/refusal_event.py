"""Event of a refused client."""

import time
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Client that does not take part, or the server that refuses it; once for each client and reason.

    Args:
        client: Name of the client, or its node if its key has no name.
        reason: Reason, and what its owner can do.
    """

    event: Literal["refusal"] = "refusal"
    time: float = field(default_factory=time.time)
    client: str
    reason: str
