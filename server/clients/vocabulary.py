"""Vocabulary that the clients of a run find by two sums of their names."""

import json
import logging
import math
from collections.abc import Callable

import numpy as np
from flwr.app import Message

from common.arrays import Array
from common.config.run import UNCOVERED_NAMES, RunConfig
from common.errors import ConfigError, DataError, QuorumError, WireError
from common.tasks.names import NameSum
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.text import count
from common.wire.codec import decode, encode
from common.wire.messages import NAMES, NamesReply, NamesRequest
from server.clients.roster import Roster
from server.exchange.grid import PollingGrid, content_of, limit_to
from server.round.checks import SMALL_REPLY

log = logging.getLogger("fedloom.server")

AddUp = Callable[[NameSum], Array]
"""Function that asks the clients and returns the sum of their replies."""

TOGETHER = 256
"""Maximum number of clients that are asked at a time."""


def find_vocabulary(config: RunConfig, add_up: AddUp) -> Vocabulary:
    """Return the vocabulary of the names of `federation.min-holders` clients, or of more under noise.

    Sums and names of fewer clients stay in memory and end with this call.

    Raises:
        DataError: No name is held by so many clients, or their names make no vocabulary.
        QuorumError: Too few clients answered.
    """
    least, first = config.federation.min_holders, NameSum(config.run_id, noise=config.name_noise)
    second = first.next(add_up(first), least)
    holders = math.ceil(first.noise.threshold(least)) if first.noise else least
    remedy = "raise privacy.name-share" if first.noise else "lower federation.min-holders"
    lacking = f"no name is in the data of {holders} clients; {remedy}, or give a file (--catalogue)"
    if not all(map(len, second.frequent)):
        raise DataError(lacking)
    names = second.names(add_up(second), least)
    if not names:
        raise DataError(lacking)
    vocabulary: Vocabulary = TASKS[config.task].vocabulary.from_entries([tuple(json.loads(name)) for name in names])
    log.info("vocabulary: %s that at least %d clients have", count(len(names), "name"), holders)
    return vocabulary


def check_noise(config: RunConfig, clients: int) -> None:
    """Check that noise leaves names that so many clients can have; nothing has been sent before.

    Raises:
        ConfigError: No name can pass, or the trust of the run covers no names.
    """
    if config.privacy.unit == "none":
        return
    if config.name_noise is None:
        raise ConfigError(f"{UNCOVERED_NAMES}; set privacy.trust=helpers (--helpers 2), or name a file")
    noise = config.name_noise
    needed = math.ceil(noise.threshold(config.federation.min_holders))
    if clients < needed:
        raise ConfigError(
            f"noise would hide all names: {needed:,} clients must have a name for it to pass, and {clients:,} are here;"
            f" name a file (--catalogue), raise --epsilon, or raise privacy.name-share = {config.privacy.name_share:g}"
        )
    log.info("names: noise %.3g on the clients of a hash, threshold %d", noise.spread, needed)


def sum_names(grid: PollingGrid, roster: Roster, names: NameSum) -> Array:
    """Return the sum over the clients' replies in plaintext.

    Raises:
        QuorumError: No client sent its names.
    """
    clients = sorted(roster.select_trainable(grid.get_node_ids()).values(), key=lambda client: client.name)
    requests = [
        limit_to(
            Message(encode(NamesRequest(c.enrolment, names.request)), c.node, NAMES), names.part_bytes + SMALL_REPLY
        )
        for c in clients
    ]
    total, answered, reasons = np.zeros(names.shape), 0, set[str]()
    for start in range(0, len(requests), TOGETHER):
        for reply in grid.send_and_receive(requests[start : start + TOGETHER]):
            try:
                names.add(total, decode(NamesReply, content_of(reply)).part)
                answered += 1
            except WireError as error:
                reasons.add(str(error))
                log.warning("%s: names are left out: %s", roster.name(reply.metadata.src_node_id), error)
    if not answered:
        raise QuorumError("; ".join(("no client sent names for the vocabulary", *sorted(reasons))))
    return total
