"""Upload to a secure sum: masked integers, with the masks' seeds sealed to the helpers."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from safetensors.numpy import load, save

from client.privacy.budget import Reservation, finite_or_zeros
from client.privacy.transforms import Released, Update, Work
from common.arrays import Arrays, Floats, Ints, add_prefix, group
from common.config.run import RunConfig
from common.errors import RefusedError
from common.privacy.accounts import AccountedMechanism
from common.privacy.vectors import clip, from_vector, to_vector
from common.secure.cards import HelperRoster
from common.secure.layout import WEIGHT, SumLayout, to_clusters, update_clip
from common.secure.masking import SEED, box_context, dtype_of, seal, total_mask
from common.secure.noise import DiscreteGaussian
from common.secure.quantisation import decode, fixed_point, quantise
from common.secure.terms import SumTerms
from common.wire.messages import LOCAL


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

    def blocks(self, config: RunConfig, steps: int) -> "Blocks":
        """Return the select step of an update, as in `JoinedSum`."""
        return Blocks(config, steps, self.cluster, self.terms.clip)

    def privatize(
        self,
        reservation: Reservation | None,
        generator: Callable[[], np.random.Generator],
        internal: AccountedMechanism | None = None,
    ) -> "ForSum":
        """Return the step that masks, as in `JoinedSum`."""
        return ForSum(self, reservation, generator, internal)

    def mask(self, numbers: Ints) -> bytes:
        """Return the numbers under fresh masks, the sealed seeds and the terms' digest, for the replay cache.

        The numbers without masks are beside them, for the client's own state.
        """
        terms, seeds = self.terms, [secrets.token_bytes(SEED) for _ in self.roster.cards]
        exact = numbers.astype(dtype_of(terms.bits))
        boxes = [self._seal(seed, n) for n, seed in enumerate(seeds)]
        masked = exact + total_mask(seeds, terms.size, terms.bits)
        about = {"sealed": "\n".join(boxes), "terms": terms.digest}
        return save({"sum": masked, "own": exact, **{n: np.frombuffer(t.encode(), np.uint8) for n, t in about.items()}})

    def read(self, content: bytes) -> Released:
        """Return the upload in the bytes of `mask`.

        Raises:
            RefusedError: The bytes are of other terms.
        """
        arrays = load(content)
        if arrays["terms"].tobytes().decode() != self.terms.digest:
            raise RefusedError("this round was already answered on other terms, which stand")
        client_part = SumLayout.of(self.template).arrays(decode(arrays["own"], self.terms), self.template)
        sealed = arrays["sealed"].tobytes().decode().split()
        return Released({}, masked={"sum": arrays["sum"]}, sealed=sealed, client_part=client_part)

    def _seal(self, seed: bytes, number: int) -> str:
        terms, card = self.terms, self.roster.cards[number]
        about = (terms.run, terms.round, terms.channel, self.client, card.name, terms.digest, self.roster.digest)
        return seal(seed, card.helper_key, box_context(*about))


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


@dataclass(frozen=True)
class Blocks:
    """Select step: the arrays that a client adds to the sum of a round.

    `update/` holds w·Δ_k·τ/τ_k, `gradient/` w·s_k, `absolute/` the magnitudes of `update/`, and `weight` w, where the method
    needs them. In runs without noise that weigh by records w = min(records, most-examples)/most-examples, else 1. In methods
    with clusters, these are blocks of the client's own cluster (`common.secure.layout`).

    Args:
        config: Configuration of the run.
        steps: Number τ_k of local steps of the client.
        cluster: Number of the client's cluster.
        clip: Clip norm C of the sum; 0 without noise.
    """

    config: RunConfig
    steps: int
    cluster: int = 0
    clip: float = 0.0

    def __call__(self, work: Work) -> Work:
        """Return work that computes the blocks."""
        return lambda: self.of(work())

    def of(self, update: Update) -> Update:
        """Return the blocks of an exact update."""
        weight = self._weight(update.examples)
        arrays = {name: weight * a for name, a in update.arrays.items()}
        arrays |= {name: a / self._share for name, a in arrays.items() if name.startswith("update/")}
        if self.config.capabilities.needs_magnitude:
            arrays |= add_prefix("absolute", {name: np.abs(a) for name, a in group("update", arrays).items()})
        arrays |= {WEIGHT: np.array([weight])} if self._is_weighted else {}
        clusters = self.config.capabilities.clusters
        return Update(to_clusters(self._clipped(arrays), self.cluster, clusters, self.clip) if clusters else arrays)

    def restore(self, released: Released) -> Released:
        """Encode step: turn the client's own part back into an update and a gradient, in runs with noise."""
        update = f"update/{self.cluster}" if self.config.capabilities.clusters else "update"
        exact: Arrays = {name: a * self._share for name, a in group(update, released.client_part).items()}
        gradient = add_prefix("gradient", group("gradient", released.client_part))
        return replace(released, client_part={**add_prefix("update", exact), **gradient})

    def _clipped(self, arrays: Arrays) -> Arrays:
        """Return an update that leaves room for the mark of its cluster, in runs with noise."""
        if not self.clip:
            return arrays
        vector = clip(finite_or_zeros(to_vector(arrays)), update_clip(self.clip), 2, normalise=False)
        return from_vector(vector, arrays)

    @property
    def _share(self) -> float:
        """τ_k/τ; 1 where means are not per step."""
        return self.steps / self.config.method_options.steps(LOCAL) if self.config.capabilities.per_step else 1.0

    @property
    def _is_weighted(self) -> bool:
        return self.config.privacy.unit == "none" and self.config.method_options.weighting == "examples"

    def _weight(self, examples: int) -> float:
        most = self.config.secure_sums.most_examples
        return min(examples, most) / most if self._is_weighted else 1.0
