"""Secure sum of a client under audit.

The server, a second client and all helpers but one collude against it.
"""

import secrets
from collections.abc import Callable, Sequence

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from client.privacy.transforms import Released, Update
from client.secure.helper.helper_service import HelperService
from client.secure.members import Party
from client.secure.terms import ExpectedSum
from client.secure.upload import TRAIN, Blocks, SumPart
from common.arrays import Array, Floats
from common.secure.cards import HelperRoster
from common.secure.layout import SumLayout
from common.secure.members import MemberList, simulated_key
from common.secure.noise import Stream, discrete_gaussian
from common.secure.norms import commitment
from common.secure.quantisation import decode, integer_clip, noise_scale
from common.secure.terms import NOISED_BITS, SumTerms
from common.wire.messages import HelperRequest, OpenRequest, PrepareRequest, TrainReply
from studies.audit.releases import CLIP, NAME, SIZE, AuditedClient

RUN, AUDITED, COLLUDING = "audit", "audited", "colluding"

MEMBERS = MemberList(tuple(simulated_key(name).member(name, RUN) for name in (AUDITED, COLLUDING)))

_PUBLIC_KEY = bytes(32)
"""Noise key of the colluding helper, whose noise is therefore no secret."""

NoiseKey = Callable[[], bytes]
"""Source of the honest helper's keys of noise."""


def fresh_key() -> bytes:
    """Return a key of noise from the operating system, as helpers draw it."""
    return secrets.token_bytes(32)


class AuditedSum:
    """Helpers and colluding parties around one client.

    Args:
        client: Client under audit.
        noise_key: Source of the honest helper's keys of noise.
    """

    def __init__(self, client: AuditedClient, noise_key: NoiseKey) -> None:
        self._client, self._noise_key, self._sums = client, noise_key, 0
        zeros = Update({f"update/{NAME}": np.zeros(SIZE)})
        self._template = Blocks(client.config, 1).of(zeros).arrays
        self._meet_helpers()

    def answers(self, number: int, content: Floats) -> list[float]:
        """Return the first number of the opened sum in units of C, without the colluding parties' parts."""
        self._sums += 1
        part = self._part()
        reply = self._client.release(number, content, part)
        colluding = SumPart(_party(COLLUDING), part.terms, self._template)
        other = part.read(colluding.mask(np.zeros(SIZE, np.int64)))
        total = reply.masked["sum"] + other.masked["sum"]
        for place, desk in enumerate(self._desks):
            total = total - _opened(desk, part.terms, [reply, other], place)
        public = discrete_gaussian(part.terms.noise, SIZE, Stream(_PUBLIC_KEY))
        return [float(decode(total - public.astype(total.dtype), part.terms)[0]) / CLIP]

    def _meet_helpers(self) -> None:
        keys: tuple[NoiseKey, ...] = self._noise_key, lambda: _PUBLIC_KEY
        self._desks = [_desk(f"helper-{place}", key) for place, key in enumerate(keys)]
        self._roster = HelperRoster.read([desk.card(HelperRequest(RUN, "{}")).card for desk in self._desks], RUN)

    def _part(self) -> SumPart:
        """Return the client's part in a sum whose terms it accepts; each sum is a round of its own."""
        rho, bound, roster, party = self._client.cost, integer_clip(SIZE), self._roster, _party(AUDITED)
        terms = SumTerms(
            run=RUN,
            round=self._sums,
            channel=TRAIN,
            size=SIZE,
            bits=NOISED_BITS,
            bound=bound,
            clip=CLIP,
            sign="signed",
            rho=rho,
            noise=noise_scale(rho, bound, "signed"),
            most=2,
            min_sum=2,
            layout=SumLayout.of(self._template).blocks,
            roster=roster.digest,
            keys=tuple(roster.to_json()),
            members=MEMBERS.digest,
        )
        expected = ExpectedSum(RUN, self._sums, TRAIN, roster, terms.min_sum, self._template, party, rho, CLIP)
        return SumPart(party, expected.accept(terms.to_json()), self._template)


def _party(name: str) -> Party:
    return Party(name, simulated_key(name), MEMBERS)


def _opened(desk: HelperService, terms: SumTerms, replies: Sequence[Released | TrainReply], place: int) -> Array:
    names, text, sealed = [AUDITED, COLLUDING], terms.to_json(), [one.sealed[place] for one in replies]
    masked = [one.masked for one in replies]
    commitments = [commitment(one["sum"], one["proof"].tobytes(), len(replies[0].sealed)) for one in masked]
    desk.prepare(PrepareRequest(text, names, sealed, [one.line for one in MEMBERS.members], commitments))
    return desk.open(OpenRequest(text, names)).opened["sum"]


def _desk(name: str, noise_key: NoiseKey) -> HelperService:
    return HelperService(name, ec.generate_private_key(ec.SECP384R1()), noise_key=lambda terms: noise_key())
