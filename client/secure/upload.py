"""Upload to a secure sum: integers under masks, with the masks' seeds sealed to the helpers."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from safetensors.numpy import load, save

from client.privacy.reservation import Reservation
from client.privacy.transforms import Released, Work
from common.arrays import Arrays, Floats, Ints
from common.errors import RefusedError
from common.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from common.privacy.mechanisms.spec import AccountedMechanism
from common.secure.cards import HelperRoster
from common.secure.layout import SumLayout
from common.secure.masking import SEED, box_context, dtype_of, seal, total_mask
from common.secure.quantise import decode, fixed_point, quantise
from common.secure.terms import SumTerms


@dataclass(frozen=True)
class SumPart:
    """Part of one client in a secure sum whose terms it accepted.

    Args:
        client: Name of the client.
        terms: Terms of the sum.
        roster: Helpers of the run.
        template: Arrays of the names, shapes and dtypes of the vector.
        cluster: Number of the cluster that the client chose; it stays on this machine.
    """

    client: str
    terms: SumTerms
    roster: HelperRoster
    template: Arrays
    cluster: int = 0

    @property
    def trust(self) -> str:
        """Trust of the release, for the ledger."""
        return f"helpers:{self.roster.digest[:16]}"

    def mask(self, numbers: Ints) -> bytes:
        """Return the numbers under fresh masks, the sealed seeds and the terms' digest, for the replay cache.

        The numbers without masks are beside them, for the client's own state.
        """
        terms, seeds = self.terms, [secrets.token_bytes(SEED) for _ in self.roster.cards]
        own = numbers.astype(dtype_of(terms.bits))
        boxes = [self._seal(seed, n) for n, seed in enumerate(seeds)]
        masked = own + total_mask(seeds, terms.size, terms.bits)
        about = {"sealed": "\n".join(boxes), "terms": terms.digest}
        return save({"sum": masked, "own": own, **{n: np.frombuffer(t.encode(), np.uint8) for n, t in about.items()}})

    def read(self, content: bytes) -> Released:
        """Return the upload in the bytes of `mask`.

        Raises:
            RefusedError: The bytes are of other terms.
        """
        arrays = load(content)
        if arrays["terms"].tobytes().decode() != self.terms.digest:
            raise RefusedError("this round was already answered on other terms, which stand")
        own = SumLayout.of(self.template).arrays(decode(arrays["own"], self.terms), self.template)
        return Released({}, masked={"sum": arrays["sum"]}, sealed=arrays["sealed"].tobytes().decode().split(), own=own)

    def _seal(self, seed: bytes, number: int) -> str:
        terms, card = self.terms, self.roster.cards[number]
        place = (terms.run, terms.round, terms.channel, self.client, card.name, terms.digest, self.roster.digest)
        return seal(seed, card.helper_key, box_context(*place))


@dataclass(frozen=True)
class ForSum:
    """Privatize step under trust `helpers`: clip, round, mask; charge the ledger for the helpers' noise.

    Args:
        part: Part of the client in the sum.
        reservation: Permission for the release; None in runs without noise, whose uploads are always fresh.
        generator: Factory of the random generator of rounding.
        internal: Mechanism whose noise the work itself draws, unit `record`; helpers then add none.
    """

    part: SumPart
    reservation: Reservation | None
    generator: Callable[[], np.random.Generator]
    internal: AccountedMechanism | None = None

    def __call__(self, work: Work) -> Released:
        """Compute the values, charge the ledger, then mask them; noise inside the work is charged before it.

        Raises:
            RefusedError, LedgerError: See `Reservation.commit`.
            WireError: The values have another layout than the sum.
        """
        terms, layout = self.part.terms, SumLayout.of(self.part.template)

        def exact() -> bytes:
            return self.part.mask(fixed_point(layout.vector(work().arrays), terms.most))

        if self.reservation is None:
            return self.part.read(exact())
        if self.internal is not None:
            return self.part.read(self.reservation.commit(self.internal, exact))
        vector = layout.vector(work().arrays)
        mechanism = DiscreteGaussian(terms.bound, terms.sign, terms.noise)
        content = self.reservation.commit(mechanism, lambda: self._draw(vector), trust=self.part.trust)
        return self.part.read(content)

    def _draw(self, vector: Floats) -> bytes:
        terms = self.part.terms
        return self.part.mask(quantise(vector, terms.clip, terms.bound, terms.sign, self.generator()))
