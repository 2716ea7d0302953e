"""Sums over clients that a model's offset is made of; asked for only when the run's options say so."""

import logging
from collections.abc import Callable
from dataclasses import replace

from flwr.app import Message

from common.arrays import Arrays
from common.errors import QuorumError, WireError
from common.text import count
from common.wire.codec import decode, encode
from common.wire.messages import COUNTS, CountsReply, CountsRequest
from server.grid import PollingGrid
from server.roster import Roster
from server.state import RunState
from server.strategies.replies import content_of

log = logging.getLogger("fedloom.server")

AddCounts = Callable[[Arrays, Arrays], Arrays]
"""Sum of earlier counts, one client's counts -> their sum; raises WireError."""


def sum_counts(grid: PollingGrid, roster: Roster, state: RunState, add: AddCounts) -> RunState:
    """The state with the sum of all clients' counts among its statics; who joins later is not in it.

    Raises:
        QuorumError: No client shared its counts, or none has any.
    """
    clients = sorted(roster.able(grid.get_node_ids()).values(), key=lambda client: client.name)
    if not clients:
        raise QuorumError(f"{count(len(roster.clients), 'client')} enrolled, none with anything to train on")
    asked = [Message(encode(CountsRequest(c.enrolment)), c.node, COUNTS) for c in clients]
    total: Arrays = {}
    reasons: set[str] = set()
    for reply in grid.send_and_receive(asked):
        try:
            total = add(total, decode(CountsReply, content_of(reply)).counts)
        except WireError as error:
            reasons.add(str(error))
            log.warning("%s: its counts are left out: %s", roster.name(reply.metadata.src_node_id), error)
    if not total:
        advice = "no client shared its counts; set count-offset=false of the task to do without them"
        raise QuorumError("; ".join((advice, *sorted(reasons))))
    return replace(state, statics=total)
