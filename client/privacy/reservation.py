"""Permission for one release."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from client.privacy.dp_sgd_noise import DpSgdNoise
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.limits import Limits
from client.privacy.ledger.records import LOCAL_TRUST, Slot
from common.errors import RefusedError, StateError
from common.privacy.accounts import Account
from common.privacy.claims import SAME_ITEMS
from common.privacy.mechanisms.dp_sgd import DP_SGD, DpSgd
from common.privacy.mechanisms.registry import build_mechanism
from common.privacy.mechanisms.spec import AccountedMechanism, Mechanism
from common.privacy.options import PrivacyOptions

TOLERANCE = 1e-9
"""Relative rounding error by which a mechanism's cost may exceed the reserved cost."""


@dataclass
class Reservation:
    """Permission for one release, checked before any work.

    The checks are those of the run's budget, the policy and the ledger. Nothing is written and nothing is charged until
    `commit`, which works once.
    """

    slot: Slot
    options: PrivacyOptions
    """Options of the run, with the clip norm of this round."""
    account: Account
    cost: float
    """Cost of the release in the account."""
    limits: Limits
    """Limits that the ledger checks again in the transaction that charges the cost."""
    ledger: Ledger
    _committed: bool = field(default=False, init=False)

    def mechanism(self, dimension: int) -> Mechanism:
        """Return the mechanism for a vector of that length, unit `client`.

        Raises:
            RefusedError: No mechanism has that cost.
        """
        return build_mechanism(self.options, self.cost, dimension)

    def dp_sgd(self, steps: int) -> DpSgd:
        """Return the mechanism for local steps, unit `record`.

        Raises:
            RefusedError: No noise reduces the steps to that cost.
        """
        return DP_SGD.calibrate(self.options, self.cost, steps)

    def noise(self, steps: int, generator: Callable[[], np.random.Generator]) -> DpSgdNoise | None:
        """Return the noise of local steps, unit `record`; None for unit `client`.

        Args:
            steps: Number of local steps τ.
            generator: Factory of the random generator.

        Raises:
            RefusedError: No noise reduces the steps to that cost.
        """
        if self.options.unit != "record":
            return None
        return DpSgdNoise(self.options.clip, self.dp_sgd(steps).multiplier, self.options.sample, generator)

    def commit(
        self,
        mechanism: AccountedMechanism,
        make: Callable[[], bytes],
        *,
        same_items: bool = False,
        trust: str = LOCAL_TRUST,
    ) -> bytes:
        """Charge the ledger, then draw the noise, then cache the bytes.

        Cached bytes of the slot are returned unchanged, at no cost.
        The ledger's transaction is the authority: it checks the same limits again.

        Args:
            mechanism: Mechanism of the release.
            make: Draws the noise and returns the bytes to send; called after the cost is durably stored.
            same_items: True if row ids are sent in plaintext, so that neighbours name the same items.
            trust: Trust of the release, as in `Terms`.

        Raises:
            StateError: The reservation was committed before.
            RefusedError: The cost exceeds the reserved cost, or a limit by now, or the slot was released on other terms.
            LedgerError: The ledger cannot be trusted or written; nothing was released.
        """
        if self._committed:
            raise StateError(
                f"the reservation of round {self.slot.round} of run '{self.slot.run}' was used before; reserve again"
            )
        self._committed = True
        terms = replace(self.ledger.terms(mechanism), trust=trust)
        if terms.cost > self.cost * (1 + TOLERANCE):
            raise RefusedError(f"release refused: cost {terms.cost:.4g} exceeds the reserved cost {self.cost:.4g}")
        terms = replace(terms, neighbours=SAME_ITEMS) if same_items else terms
        return self.ledger.release(self.slot, terms, make, self.limits)

    @property
    def head(self) -> str:
        """Head of the ledger for the reply; called after `commit`."""
        return self.ledger.head().public

    def acknowledge(self) -> None:
        """Drop cached bytes of earlier rounds of the run, which have arrived."""
        self.ledger.acknowledge(self.slot.run, self.slot.round)
