"""What a client's answers may cost: the run's promise, the owner's policy and the ledger, asked together."""

import math
from collections.abc import Callable

import numpy as np

from client.policy import Policy
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.limits import Limits
from client.privacy.ledger.records import Slot
from common.config.run import RunConfig
from common.errors import RefusedError
from common.privacy.accounts import Account, Pure, Rdp
from common.privacy.mechanisms.registry import build_account
from common.privacy.options import PrivacyOptions, Unit
from common.wire.messages import AssignRequest, TrainRequest

OpenLedger = Callable[[Unit, Account], Ledger]
"""Opens a client's ledger: whose data are hidden, and what to count in if that is new to it."""

LEAST = 1e-6
"""Share of a run's promise that is as good as nothing, left or asked for."""

ROUNDING = 1e-9
"""Relative share of a cost that is not spent, since float rounding makes a hundred times B/100 more than B."""


class Budget:
    """One client's.

    Args:
        policy: The owner's terms.
        open_ledger: Finds the ledger of the data.
        part: Which part of the data the client has, where several clients share a data set and so its ledger; each has
            answers, and what a run promises, of its own there.
    """

    def __init__(self, policy: Policy, open_ledger: OpenLedger, part: str = "") -> None:
        self._policy, self._open_ledger, self._part = policy, open_ledger, part
        self._ledgers: dict[Unit, Ledger] = {}

    def ledger(self, options: PrivacyOptions) -> Ledger:
        """The ledger that a run with these options is booked in: one a unit, which counts as a run does until one released."""
        account = build_account(options)
        if options.unit not in self._ledgers:
            self._ledgers[options.unit] = self._open_ledger(options.unit, account)
        self._ledgers[options.unit].count_in(account)
        return self._ledgers[options.unit]

    def run(self, enrolment: str) -> str:
        """The run that an enrolment is in, as the ledger knows it."""
        name = enrolment.partition(":")[0]
        return f"{name} {self._part}" if self._part else name

    def slot(self, request: TrainRequest | AssignRequest) -> Slot:
        """Where an answer is booked."""
        run = self.run(request.enrolment)
        if isinstance(request, AssignRequest):
            return Slot(run, request.round, kind="assign")
        return Slot(run, request.round, request.phase)

    def limits(self, options: PrivacyOptions) -> Limits:
        """What a run may spend of its own promise, and what the policy lets one round of it cost, at the policy's δ."""
        account, most = build_account(options), self._policy.max_epsilon_per_round
        a_round = account.total(most, min(options.delta, self._policy.delta)) if np.isfinite(most) else np.inf
        return Limits(account.total(options.epsilon, options.delta), a_round)

    def left(self, options: PrivacyOptions, run: str) -> float:
        """What this run may still spend: of its own promise, and of the ledger.

        Raises:
            RefusedError: The ledger counts otherwise.
        """
        account, ledger = build_account(options), self.ledger(options)
        if ledger.account.name != account.name:
            raise RefusedError(
                f"this client's ledger counts in {ledger.account.name} since its first release, the run in {account.name},"
                f" and no ledger counts in both; run with {counting_so(ledger.account, options.delta)}"
            )
        promised = account.total(options.epsilon, options.delta) - ledger.spent_in(run)
        return max(0.0, min(promised, ledger.remaining()))

    def enrolled(self, config: RunConfig, enrolment: str) -> float:
        """What may be spent in a run that begins or goes on; 0 where that run has spent all, so that the client sees its end.

        Raises:
            RefusedError: Nothing, and nothing was spent in this run.
        """
        options, run = config.privacy, self.run(enrolment)
        budget = self.left(options, run)
        spent = budget <= LEAST * build_account(options).total(options.epsilon, options.delta)
        if spent and not self.ledger(options).spent_in(run):
            raise RefusedError("its privacy budget is spent")
        return budget

    def agreed(self, options: PrivacyOptions, slot: Slot, wished: float) -> float:
        """The cost asked for, a hair less so that rounding never exceeds a total, if it can be paid.

        Raises:
            RefusedError: It cannot; the ledger looks again, at the same limits, when it is paid.
        """
        account, cost = build_account(options), wished * (1 - ROUNDING)
        least = LEAST * account.total(options.epsilon, options.delta)
        if not least < cost < np.inf:
            raise RefusedError(
                f"the server asks for a reply at cost {wished}; with noise it costs {least:.2g} at least"
            )
        if cost > self.limits(options).round:
            raise RefusedError(f"a round of {wished:.4g} {account.name} is more than this client's policy allows")
        left = self.left(options, slot.run)
        if cost > left and not self.ledger(options).keeps(slot):
            raise RefusedError(f"the server asks for {wished:.4g} {account.name}, of which {left:.4g} are left here")
        return cost


def counting_so(account: Account, delta: float) -> str:
    """What a run says to count in that account.

    RDP of order α is cheapest where ε = L(2α − 1)/(α − 1)², L = ln 1/δ: there (ε − L/(α − 1))/α is largest (`fixed_order`).
    """
    match account:
        case Rdp(order=order):
            epsilon = math.log(1 / delta) * (2 * order - 1) / (order - 1) ** 2
            return f"ε = {epsilon:.6g} at δ = {delta:g}"
        case Pure():
            return "privacy.mechanism=laplace, or privunit"
        case _:
            return "privacy.mechanism=gaussian"
