"""Helpers and uploads of secure sums, without clients and without a server."""

import base64
from collections.abc import Sequence

import numpy as np

from client.secure.helper.helper_service import HelperService
from common.arrays import Array, Ints
from common.secure.cards import HelperRoster, NodeCard
from common.secure.masking import MASKED, box_context, seal, total_mask
from common.secure.members import simulated_key
from common.secure.norms import commitment, mask_bounded
from common.secure.terms import SumTerms
from common.wire.messages import HelperRequest, OpenReply, OpenRequest, PrepareReply, PrepareRequest
from tests.support.helpers import members, node_keys, terms

CLIENTS = tuple(f"client-{n:03}" for n in range(64)) + tuple(f"client-{n}" for n in range(8))
"""Names of all clients of tests with such helpers."""

LINES = [one.line for one in members(*CLIENTS).members]


def seed_of(client: str, helper: str) -> bytes:
    """Return the seed of a client for a helper, equal in every call."""
    return f"{client}/{helper}".encode().ljust(32, b".")[:32]


class Upload:
    """Masked vector of one client and its boxes, in the order of the roster."""

    def __init__(self, client: str, vector: Ints, about: SumTerms, roster: HelperRoster, signer: str = "") -> None:
        self.client, self.vector = client, vector
        self.masked, self.commitment, seeds = vector.astype(MASKED), "", [seed_of(client, n) for n in roster.names]
        if about.has_noise:
            self.masked, proof = mask_bounded(vector, about.bound, seeds)
            self.commitment = commitment(self.masked, proof, len(seeds))
        else:
            self.masked = self.masked + total_mask(seeds, about.size, about.bits)
        self.sealed = [box_of(client, card, about, signer, self.commitment) for card in roster.cards]


def box_of(client: str, card: NodeCard, about: SumTerms, signer: str = "", bound_by: str = "") -> str:
    """Return the sealed seed of a client for one helper."""
    place = (about.run, about.round, about.channel, client, card.name, about.digest, about.roster)
    context, seed = box_context(*place), seed_of(client, card.name)
    signed = seed + base64.b64decode(bound_by)
    return seal(seed + simulated_key(signer or client).sign(about.run, context, signed), card.raw_key, context)


class Helpers:
    """Desks with the roster of run `toy`.

    Args:
        number: Number of helpers.
    """

    def __init__(self, number: int = 2) -> None:
        self.number = number
        self.desks = [self._desk(n) for n in range(number)]
        cards = [desk.card(HelperRequest("toy", "{}")).card for desk in self.desks]
        self.roster = HelperRoster.read(cards, "toy")

    def terms(self, **changed: object) -> SumTerms:
        keys = tuple(self.roster.to_json())
        return terms(**{"roster": self.roster.digest, "keys": keys, "members": members(*CLIENTS).digest, **changed})

    def upload(self, about: SumTerms, vectors: Sequence[Ints]) -> list[Upload]:
        return [Upload(f"client-{n:03}", vector, about, self.roster) for n, vector in enumerate(vectors)]

    def prepare(self, about: SumTerms, uploads: Sequence[Upload]) -> list[PrepareReply]:
        return [prepare(desk, about, uploads, n) for n, desk in enumerate(self.desks)]

    def restart(self) -> None:
        """Start every helper again: its keys are lost."""
        self.desks = [self._desk(n) for n in range(self.number)]

    def _desk(self, number: int) -> HelperService:
        return HelperService(f"helper-{number}", node_keys(number + 1)[number])


def prepare(desk: HelperService, about: SumTerms, uploads: Sequence[Upload], number: int = 0) -> PrepareReply:
    sealed = [upload.sealed[number] for upload in uploads]
    names, commitments = [upload.client for upload in uploads], [upload.commitment for upload in uploads]
    return desk.prepare(PrepareRequest(about.to_json(), names, sealed, LINES, commitments))


def open_sum(desk: HelperService, about: SumTerms, uploads: Sequence[Upload]) -> OpenReply:
    return desk.open(OpenRequest(about.to_json(), [upload.client for upload in uploads]))


def total(uploads: Sequence[Upload], replies: Sequence[OpenReply]) -> Ints:
    """Return Y = Σ y_i − Σ r_h mod 2⁶⁴, centred."""
    summed: Array = np.sum([upload.masked for upload in uploads], axis=0, dtype=uploads[0].masked.dtype)
    for reply in replies:
        summed = summed - reply.opened["sum"][: summed.size]
    return summed.view(summed.dtype.str.replace("u", "i")).astype(np.int64)
