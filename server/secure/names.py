"""Secure sums of names before the first round, from which the clients find a vocabulary."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from flwr.app import Message

from common.arrays import Array
from common.errors import DataError, WireError
from common.secure.layout import SumLayout
from common.secure.terms import SumTerms
from common.tasks.names import SUM, NameSum
from common.text import count
from common.wire.codec import decode, encode
from common.wire.messages import NAMES, NamesReply, NamesRequest
from server.clients.roster import Roster
from server.clients.vocabulary import TOGETHER
from server.exchange.grid import PollingGrid, Weighed, content_of, content_size, limit_to
from server.secure.sums import HelperSums, Release, Upload

log = logging.getLogger("fedloom.server")

NAME_CHANNELS = ("names/0", "names/1", "names/2")
"""Channels of the sums of names, in round 0."""


def sum_masked_names(grid: PollingGrid, roster: Roster, sums: HelperSums, names: NameSum) -> Array:
    """Return the opened sum of the names of all clients, or of their buckets.

    Raises:
        DataError: No client is there.
        QuorumError: Too few clients, or a helper does not answer.
        SumLostError: The sum will never be opened.
    """
    clients = {client.name: client for client in roster.select_trainable(grid.get_node_ids()).values()}
    if not clients:
        raise DataError(f"{count(len(roster.clients), 'client')} enrolled, none has training data")
    template, noise = names.template, None if names.frequent else names.noise
    sums.renew(0, names.channel)
    release = Release(noise.rho, noise.clip, "positive") if noise else Release()
    terms = sums.terms(0, names.channel, template, len(clients), release)
    asked = [clients[name] for name in sums.admit(terms, sorted(clients))]
    text = terms.to_json()
    payloads = {c.node: encode(NamesRequest(c.enrolment, names.request, terms=text)) for c in asked}
    requests = [limit_to(Message(one, node, NAMES), sums.limit(terms)) for node, one in payloads.items()]
    is_pending = sums.is_renewed or sums.pending(0, names.channel) is not None
    uploads, failed = ({}, {}) if is_pending else _collect(grid, roster, requests, sums, terms)
    total = sums.total(terms, uploads, failed)
    return SumLayout.of(template).arrays(total.vector, template)[SUM]


def _collect(
    grid: PollingGrid, roster: Roster, requests: Sequence[Message], sums: HelperSums, terms: SumTerms
) -> tuple[dict[str, Upload], dict[str, str]]:
    """Return client -> upload, stored as it arrives, and client -> reason for bad ones."""
    uploads: dict[str, Upload] = {}
    failed: dict[str, str] = {}
    spool = sums.store.spool()

    def take(node: int, answer: Message) -> None:
        name = roster.name(node)
        try:
            upload = sums.upload(decode(NamesReply, content_of(answer)), terms)
            uploads[name] = replace(upload, load=spool.store(upload.load()))
        except WireError as error:
            failed[name] = str(error)
            log.warning("%s: names are left out: %s", name, error)
        if answer.has_content():
            answer.content = Weighed(content_size(answer.content))

    for start in range(0, len(requests), TOGETHER):  # in one process all replies of an exchange are in memory
        grid.exchange(requests[start : start + TOGETHER], take=take)
    return uploads, failed
