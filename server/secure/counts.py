"""Secure sums before the first round: counts from which a model starts, and names of a vocabulary."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from flwr.app import Message

from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, WireError
from common.secure.layout import SumLayout
from common.secure.terms import SumTerms
from common.tasks.counts import LEAST_VISIBLE
from common.tasks.names import SUM, NameSum
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from common.text import count
from common.wire.codec import decode, encode
from common.wire.messages import COUNTS, CountsReply, CountsRequest
from server.clients.roster import Roster
from server.exchange.grid import PollingGrid, Weighed, content_of, content_size
from server.round.state import RunState
from server.secure.sums import HelperSums, Release, SumLostError, TooFewUploadsError, Total, Upload

log = logging.getLogger("fedloom.server")

TOGETHER = 256
"""Maximum number of clients that are asked at a time."""

NAME_CHANNELS = ("names/0", "names/1")
"""Channels of the sums of names, in round 0."""

CHANNEL = "counts"
"""Channel of the sum of counts, in round 0."""


def sum_masked_counts(
    grid: PollingGrid, roster: Roster, state: RunState, sums: HelperSums, config: RunConfig, vocabulary: Vocabulary
) -> RunState:
    """Return the state with the opened sum of all clients' counts among its statics.

    With `auto`, the state stays as it is if too few clients send theirs, the sum is lost, or it is mostly noise.

    Raises:
        DataError: No client has training data.
        QuorumError: Too few clients, or a helper does not answer.
        SumLostError: The sum will never be opened.
    """
    statistics = TASKS[config.task].counts
    if statistics is None or statistics.template is None:
        raise ConfigError(f"task '{config.task}' has no counts for secure sums; leave count-offset out")
    template, rho = statistics.template(config.task_options, vocabulary), config.count_cost
    release = Release(rho, statistics.clip, statistics.sign) if rho else Release()
    try:
        total = _sum(grid, roster, sums, CHANNEL, template, release)
    except (SumLostError, TooFewUploadsError) as lost:
        if config.task_options.count_offset != "auto":
            raise
        log.warning("count-offset=auto: %s; the model starts without counts", lost)
        return state
    counts = SumLayout.of(template).arrays(total.vector, template)
    statics = statistics.label(counts, total.spread)
    share = statistics.visible(statics, vocabulary)
    if config.task_options.count_offset == "auto" and share < LEAST_VISIBLE:
        log.warning(
            "count-offset=auto: noise leaves %.0f %% of the counts' variance; the model starts without them",
            100 * share,
        )
        return state
    return replace(state, statics=statics)


def sum_masked_names(grid: PollingGrid, roster: Roster, sums: HelperSums, names: NameSum) -> Array:
    """Return the opened sum of the names of all clients, or of their buckets.

    Raises:
        DataError: No client is there.
        QuorumError: Too few clients, or a helper does not answer.
        SumLostError: The sum will never be opened.
    """
    template = names.template
    total = _sum(grid, roster, sums, names.channel, template, Release(), names.request)
    return SumLayout.of(template).arrays(total.vector, template)[SUM]


def _sum(
    grid: PollingGrid,
    roster: Roster,
    sums: HelperSums,
    channel: str,
    template: Arrays,
    release: Release,
    frequent: Arrays | None = None,
) -> Total:
    """Return the opened sum of a channel in round 0, over all clients that are there."""
    clients = {client.name: client for client in roster.select_trainable(grid.get_node_ids()).values()}
    if not clients:
        raise DataError(f"{count(len(roster.clients), 'client')} enrolled, none has training data")
    terms = sums.terms(0, channel, template, len(clients), release)
    asked = [clients[name] for name in sums.admit(terms, sorted(clients))]
    text, buckets = terms.to_json(), frequent or {}
    requests = [Message(encode(CountsRequest(c.enrolment, buckets, terms=text)), c.node, COUNTS) for c in asked]
    is_pending = sums.pending(0, channel) is not None
    uploads, failed = ({}, {}) if is_pending else _collect(grid, roster, requests, sums, terms)
    return sums.total(terms, uploads, failed)


def _collect(
    grid: PollingGrid, roster: Roster, requests: Sequence[Message], sums: HelperSums, terms: SumTerms
) -> tuple[dict[str, Upload], dict[str, str]]:
    """Return client -> upload, stored as it arrives, and client -> reason for bad ones."""
    uploads: dict[str, Upload] = {}
    failed: dict[str, str] = {}
    spool = sums.spool()

    def take(node: int, answer: Message) -> None:
        name = roster.name(node)
        try:
            upload = sums.upload(decode(CountsReply, content_of(answer, sums.limit(terms))), terms)
            uploads[name] = replace(upload, load=spool.store(upload.load()))
        except WireError as error:
            failed[name] = str(error)
            log.warning("%s: counts are left out: %s", name, error)
        if answer.has_content():
            answer.content = Weighed(content_size(answer.content))

    for start in range(0, len(requests), TOGETHER):  # in one process all replies of an exchange are in memory
        grid.exchange(requests[start : start + TOGETHER], take=take)
    return uploads, failed
