"""Amounts of ε that a run and a data set have spent, for the owner."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.config.run import RunConfig
from common.privacy.claims import UNBOUNDED
from common.privacy.options import PrivacyOptions

if TYPE_CHECKING:
    from client.privacy.budget import Budget


@dataclass(frozen=True)
class EpsilonSpent:
    """ε spent until now, for planning; the guarantee is that of the limits."""

    run: float
    """ε that the run has spent."""
    run_limit: float
    """ε of the run's budget."""
    left_total: float | None
    """Remaining ε of the data over all runs; None without a limit."""

    @property
    def left_run(self) -> float:
        """Remaining ε of the run."""
        return max(0.0, self.run_limit - self.run)


def noise_options(config: RunConfig) -> PrivacyOptions | None:
    """Return the options of the noise on updates, or of that on counts; None in a run without noise."""
    options = config.privacy if config.privacy.unit != "none" else config.task_options.count_privacy
    return options if options.unit != "none" else None


def read_epsilon(budget: "Budget", config: RunConfig, enrolment: str) -> EpsilonSpent | None:
    """Return the ε spent by a run and left to it; None in a run without noise.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    options = noise_options(config)
    if options is None:
        return None
    ledger = budget.ledger(options)

    def epsilon(spent: float, delta: float) -> float:
        return ledger.account.claim(spent, delta) if spent else 0.0

    left = max(0.0, ledger.epsilon - epsilon(ledger.spent(), ledger.delta)) if ledger.epsilon < UNBOUNDED else None
    return EpsilonSpent(epsilon(ledger.spent_in(budget.run_name(enrolment)), options.delta), options.epsilon, left)
