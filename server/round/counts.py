"""Counts from which a model starts: the sum of the counts of single clients."""

import logging
from collections.abc import Callable
from dataclasses import replace

from flwr.app import Message

from common.arrays import Arrays
from common.errors import DataError, QuorumError, WireError
from common.text import count
from common.wire.codec import decode, encode
from common.wire.messages import COUNTS, CountsReply, CountsRequest
from server.clients.roster import Roster
from server.exchange.grid import PollingGrid, content_of
from server.round.state import RunState

log = logging.getLogger("fedloom.server")

AddCounts = Callable[[Arrays, Arrays], Arrays]
"""Function that adds one client's counts to earlier sums; raises WireError."""


def sum_counts(grid: PollingGrid, roster: Roster, state: RunState, add: AddCounts) -> RunState:
    """Return the state with the sum of all clients' counts among its statics.

    Late-joining clients are not included.

    Raises:
        DataError: No client has training data.
        QuorumError: No client shared its counts.
    """
    clients = sorted(roster.select_trainable(grid.get_node_ids()).values(), key=lambda client: client.name)
    if not clients:
        raise DataError(f"{count(len(roster.clients), 'client')} enrolled, none has training data")
    requests = [Message(encode(CountsRequest(c.enrolment)), c.node, COUNTS) for c in clients]
    total: Arrays = {}
    reasons: set[str] = set()
    for reply in grid.send_and_receive(requests):
        try:
            total = add(total, decode(CountsReply, content_of(reply)).counts)
        except WireError as error:
            reasons.add(str(error))
            log.warning("%s: counts are left out: %s", roster.name(reply.metadata.src_node_id), error)
    if not total:
        advice = "no client shared its counts; set count-offset=false in the task's options to train without them"
        raise QuorumError("; ".join((advice, *sorted(reasons))))
    return replace(state, statics=total)
