"""Vocabulary that the clients of a run find by two sums of their names."""

import json
import logging
from collections.abc import Callable

import numpy as np
from flwr.app import Message

from common.arrays import Array
from common.config.run import RunConfig
from common.errors import DataError, QuorumError, WireError
from common.tasks.names import NameSum
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.text import count
from common.wire.codec import decode, encode
from common.wire.messages import COUNTS, CountsReply, CountsRequest
from server.clients.roster import Roster
from server.exchange.grid import PollingGrid, content_of

log = logging.getLogger("fedloom.server")

AddUp = Callable[[NameSum], Array]
"""Function that asks the clients and returns the sum of their replies."""

TOGETHER = 256
"""Maximum number of clients that are asked at a time."""


def find_vocabulary(config: RunConfig, add_up: AddUp) -> Vocabulary:
    """Return the vocabulary of the names that at least `federation.min-holders` clients have.

    Sums and names of fewer clients stay in memory and end with this call.

    Raises:
        DataError: No name is held by so many clients, or their names make no vocabulary.
        QuorumError: Too few clients answered.
    """
    least, first = config.federation.min_holders, NameSum(config.run_id)
    second = first.next(add_up(first), least)
    lacking = f"no name is in the data of {least} clients; lower federation.min-holders, or give a file (--catalogue)"
    if not all(map(len, second.frequent)):
        raise DataError(lacking)
    names = second.names(add_up(second), least)
    if not names:
        raise DataError(lacking)
    vocabulary: Vocabulary = TASKS[config.task].vocabulary.from_entries([tuple(json.loads(name)) for name in names])
    log.info("vocabulary: %s that at least %d clients have", count(len(names), "name"), least)
    return vocabulary


def sum_names(grid: PollingGrid, roster: Roster, names: NameSum) -> Array:
    """Return the sum over the clients' replies in plaintext.

    Raises:
        QuorumError: No client sent its names.
    """
    clients = sorted(roster.select_trainable(grid.get_node_ids()).values(), key=lambda client: client.name)
    requests = [Message(encode(CountsRequest(c.enrolment, names.request)), c.node, COUNTS) for c in clients]
    total, answered, reasons = np.zeros(names.shape), 0, set[str]()
    for start in range(0, len(requests), TOGETHER):
        for reply in grid.send_and_receive(requests[start : start + TOGETHER]):
            try:
                names.add(total, decode(CountsReply, content_of(reply)).counts)
                answered += 1
            except WireError as error:
                reasons.add(str(error))
                log.warning("%s: names are left out: %s", roster.name(reply.metadata.src_node_id), error)
    if not answered:
        raise QuorumError("; ".join(("no client sent names for the vocabulary", *sorted(reasons))))
    return total
