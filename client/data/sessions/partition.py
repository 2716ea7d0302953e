"""Many visitors as several clients' parts."""

import hashlib
from collections.abc import Sequence

from client.data.sessions.visitors import Visitor
from common.errors import DataError


def partition(visitors: Sequence[Visitor], parts: int, seed: int) -> list[tuple[Visitor, ...]]:
    """Deal the visitors out in the order of a seeded hash of their names; part sizes differ by one at most.

    Raises:
        DataError: More parts than visitors.
    """
    if not 1 <= parts <= len(visitors):
        message = f"cannot share {len(visitors)} visitors among {parts} clients; ask for 1 to {len(visitors)} clients"
        raise DataError(message)
    shuffled = sorted(visitors, key=lambda visitor: hashlib.sha256(f"{seed}:{visitor.name}".encode()).digest())
    return [tuple(sorted(shuffled[part::parts], key=lambda visitor: visitor.name)) for part in range(parts)]
