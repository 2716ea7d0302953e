"""Chain of transforms between local training and the network.

Exact values (`Update`) become released values (`Released`) in exactly one step, `Privatize`.
The types admit `Select` steps before it only, and `Encode` steps after it only.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from safetensors.numpy import load, save

from client.privacy.budget import Reservation, finite_or_zeros
from common.arrays import Arrays, add_prefix
from common.config.run import RunConfig
from common.errors import StateError
from common.privacy.accounts import AccountedMechanism
from common.privacy.vectors import from_vector, to_vector
from common.wire.messages import TrainReply

log = logging.getLogger("fedloom.client")

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Update:
    """Exact values of a reply; they stay on this machine."""

    arrays: Arrays
    ids: frozenset[str] = frozenset()
    """Names of arrays of row ids, which are sent in plaintext in every run."""
    examples: int = 1
    """Number of records."""
    loss: float = 0.0
    """Training loss."""


@dataclass(frozen=True)
class Released:
    """Values that may be sent."""

    arrays: Arrays
    examples: int = 1
    """Number of records; 1 with noise."""
    loss: float = 0.0
    """Training loss; 0 with noise."""
    masked: Arrays = field(default_factory=dict)
    """Masked vector of a secure sum; `arrays` is then empty."""
    sealed: list[str] = field(default_factory=list)
    """Sealed seeds of its masks."""
    client_part: Arrays = field(default_factory=dict)
    """Part of this client in a secure sum, for the client state; it stays on this machine."""


Work = Callable[[], Update]
"""Deferred computation of an update.

A mechanism that draws its noise inside charges the ledger before calling it.
"""


Select = Callable[[Work], Work]
"""Step on exact values: zeros for failed work, pseudo items."""

Privatize = Callable[[Work], Released]
"""Step from exact to released values: clip and noise of one mechanism, or plaintext."""

Encode = Callable[[Released], Released]
"""Step on released values: client state, sparse rows."""


class SumBlocks(Protocol):
    """Select step that turns an update into what a client adds to a sum."""

    def __call__(self, work: Work) -> Work:
        """Return work that computes what the client adds."""

    def restore(self, released: Released) -> Released:
        """Encode step: turn the client's part of the sum back into an update and a gradient."""


class JoinedSum(Protocol):
    """Sum that a client joins with its update, in place of a reply of its own."""

    def blocks(self, config: RunConfig, steps: int) -> SumBlocks:
        """Return the select step of a client with so many local steps."""

    def privatize(
        self,
        reservation: Reservation | None,
        generator: Callable[[], np.random.Generator],
        internal: AccountedMechanism | None = None,
    ) -> Privatize:
        """Return the step that masks.

        Without a reservation there is no noise, and uploads are always fresh. The generator rounds; `internal` is the mechanism
        whose noise the work itself draws, unit `record`.
        """


@dataclass(frozen=True)
class UpdateChain:
    """Transforms of one reply, in the order of their use."""

    select: tuple[Select, ...]
    privatize: Privatize
    encode: tuple[Encode, ...] = ()

    def __call__(self, work: Work) -> Released:
        """Do the work and release its values."""
        for select in self.select:
            work = select(work)
        released = self.privatize(work)
        for encode in self.encode:
            released = encode(released)
        return released


@dataclass(frozen=True)
class ZerosOnFailure:
    """Select step: return zeros of the same shapes if the work fails, in runs with differential privacy.

    A failure can depend on the data, and the server chooses the model, the sums and the options of the training.
    A reported failure would therefore reveal something about the data without noise, as often as the server asks.

    Under noise on records nothing can replace the result: its noise is drawn in the local steps. There, only diverged training
    becomes zeros, since divergence follows from steps that contain noise. Other failures are reported to the server; every
    statement lists that channel (`failures`).
    """

    zeros: Work
    failures: type[Exception] = Exception

    def __call__(self, work: Work) -> Work:
        """Return work that cannot fail in that way."""
        return partial(run_or_zeros, work, self.zeros, self.failures)


def run_or_zeros(
    work: Callable[[], ResultT], zeros: Callable[[], ResultT], failures: type[Exception] = Exception
) -> ResultT:
    """Return the result of the work; if it fails with one of `failures`, that of `zeros`.

    Raises:
        StateError, OSError: This machine cannot store client state, whatever the data are.
    """
    try:
        return work()
    except (StateError, OSError):
        raise
    except failures as error:
        log.warning("%s: %s; result discarded", type(error).__name__, error)
        return zeros()


@dataclass(frozen=True)
class Plaintext:
    """Release without clip and noise, for runs without differential privacy."""

    def __call__(self, work: Work) -> Released:
        """Return all values unchanged."""
        update = work()
        return Released(update.arrays, update.examples, update.loss)


@dataclass(frozen=True)
class AdditiveNoise:
    """One clip and one noise over all arrays but row ids, unit `client`."""

    reservation: Reservation
    generator: Callable[[], np.random.Generator]

    def __call__(self, work: Work) -> Released:
        """Compute the values, charge the ledger, then draw the noise.

        Without a number to send, nothing is charged (method `local`).

        Raises:
            RefusedError, LedgerError: See `Reservation.commit`.
        """
        update = work()
        exact = {name: a for name, a in update.arrays.items() if name not in update.ids}
        vector = finite_or_zeros(to_vector(exact))
        if not vector.size:
            return Released(exact)
        mechanism, normalise = self.reservation.mechanism(vector.size), self.reservation.options.normalise

        def draw() -> bytes:
            released = mechanism.release(vector, self.generator(), normalise)
            return save({**from_vector(released, exact), **{name: update.arrays[name] for name in update.ids}})

        return Released(load(self.reservation.commit(mechanism, draw, same_items=bool(update.ids))))


@dataclass(frozen=True)
class InternalNoise:
    """Release of values whose noise is drawn inside the work: DP-SGD steps, noisy counts.

    The work implements the mechanism.
    """

    reservation: Reservation
    mechanism: AccountedMechanism

    def __call__(self, work: Work) -> Released:
        """Charge the ledger, then do the work.

        Raises:
            RefusedError, LedgerError: See `Reservation.commit`.
        """
        return Released(load(self.reservation.commit(self.mechanism, lambda: save(work().arrays))))


def update_of(reply: TrainReply) -> Update:
    """Return all of a reply that depends on data."""
    arrays = {**add_prefix("update", reply.update), **add_prefix("gradient", reply.gradient)}
    return Update(arrays, examples=reply.examples, loss=reply.loss)
