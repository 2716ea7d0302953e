"""Privacy budget of a client: limits of run, policy and ledger, checked for each release."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from client.owner.consent import Consent
from client.owner.policy import Policy
from client.privacy.dp_sgd import DpSgdNoise
from client.privacy.ledger.database import LOCAL_TRUST, Slot
from client.privacy.ledger.ledger import Ledger, Limits
from common.arrays import Arrays, Floats
from common.config.run import RunConfig
from common.errors import ConfigError, RefusedError, StateError
from common.privacy.accounts import Account, AccountedMechanism, Mechanism, PlannedGdp, Rdp, serves
from common.privacy.claims import SAME_ITEMS
from common.privacy.mechanisms import (
    DP_SGD,
    VECTOR_MECHANISMS,
    DpSgd,
    build_account,
    build_mechanism,
    plan_steps,
    releases_of,
)
from common.privacy.options import MIN_CLIP, PrivacyOptions, Unit
from common.privacy.signal import check_signal
from common.wire.messages import AssignRequest, TrainRequest


def with_clip(options: PrivacyOptions, factor: float) -> PrivacyOptions:
    """Return the options with the clip norm of a round.

    Raises:
        RefusedError: The factor is above 1 or not positive, or the clip norm is so low that rounding defeats clipping.
    """
    if not 0 < factor <= 1:
        raise RefusedError(f"requested clip factor {factor} is not in (0, 1]; the clip norm can only be lowered")
    if options.clip * factor < MIN_CLIP:
        raise RefusedError(f"requested clip norm {options.clip * factor:.2g} is below the minimum {MIN_CLIP:g}")
    return options if factor == 1 else options.model_copy(update={"clip": options.clip * factor})


def finite_or_zeros(vector: Floats) -> Floats:
    """Return the vector, or zeros if it is not finite: a refusal would reveal that without noise."""
    return vector if np.isfinite(vector).all() else np.zeros_like(vector)


def sort_bounds(bounds: Arrays) -> Arrays:
    """Swap lower and upper bounds that noise has put in the wrong order."""
    changed: Arrays = {}
    for below, above in (("low", "high"), ("lower", "upper")):
        if below in bounds:
            low, high = bounds[below], bounds[above]
            changed |= {below: np.minimum(low, high), above: np.maximum(low, high)}
    return {**bounds, **changed}


def check_remainder(config: RunConfig, model: Arrays, clients: int) -> None:
    """Refuse the first round of training that noise would drown.

    0 clients are a number that the server does not state.

    Raises:
        RefusedError: Nothing would remain of the training of so many clients a round.
    """
    try:
        check_signal(config, model, clients)
    except ConfigError as error:
        raise RefusedError(str(error)) from None


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
    releases: int = 0
    """Number of releases of the run's plan, of which `cost` is that of all; 0 without a plan."""
    contract: str = ""
    """Hash of the contract with the server; empty without one."""
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
        if self.releases:
            return plan_steps(self.options, self.cost, steps, self.releases)
        return DP_SGD.calibrate(self.options, self.cost, steps)

    def noise(self, steps: int, generator: Callable[[], np.random.Generator]) -> DpSgdNoise | None:
        """Return the noise of local steps, unit `record`; None for unit `client`.

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
        terms = replace(self.ledger.terms(mechanism), trust=trust, contract=self.contract)
        if terms.cost > self.cost * (1 + TOLERANCE):
            raise RefusedError(f"release refused: cost {terms.cost:.4g} exceeds the reserved cost {self.cost:.4g}")
        terms = replace(terms, neighbours=SAME_ITEMS) if same_items else terms
        terms = self.ledger.prepay(self.slot.run, terms, self.limits) if self.releases else terms
        return self.ledger.release(self.slot, terms, make, self.limits)

    @property
    def head(self) -> str:
        """Head of the ledger for the reply; called after `commit`."""
        return self.ledger.head().public

    def acknowledge(self) -> None:
        """Drop cached bytes of earlier rounds of the run, which have arrived."""
        self.ledger.acknowledge(self.slot.run, self.slot.round)


OpenLedger = Callable[[Unit, Account], Ledger]
"""(unit, account) -> the client's ledger; the account is used if the unit is new to the ledger."""

MIN_COST_SHARE = 1e-6
"""Smallest share of a run's budget that counts as more than 0."""

ROUNDING = 1e-9
"""Relative share of a cost that is not spent: in floating point, 100 · B/100 can exceed B."""


class Budget:
    """Privacy budget of one client.

    `part` names the client's partition, if several clients share a data set and thus its ledger. Slots and run budgets are
    separate for each partition.
    """

    def __init__(self, policy: Policy, open_ledger: OpenLedger, part: str = "", consent: Consent | None = None) -> None:
        self._policy, self._open_ledger, self._part, self._consent = policy, open_ledger, part, consent or Consent()
        self._ledgers: dict[Unit, Ledger] = {}

    def ledger(self, options: PrivacyOptions) -> Ledger:
        """Return the ledger of a run with these options; before the first release it takes the run's account."""
        if options.unit not in self._ledgers:
            self._ledgers[options.unit] = self._open_ledger(options.unit, build_account(options))
        ledger = self._ledgers[options.unit]
        ledger.use_account(build_account(options))
        return ledger

    def remaining(self, config: RunConfig, enrolment: str) -> float:
        """Return the remaining budget of a run that starts or resumes.

        It is 0 if this run itself has spent everything: the client may still evaluate its final model.

        Raises:
            RefusedError: Nothing remains and this run spent nothing, or the ledger uses another account.
        """
        options, run = config.privacy, self.run_name(enrolment)
        account = build_account(options)
        ledger = self.ledger(options)
        budget = self._remaining(options, account, ledger, run)
        if budget <= _minimum(options, account) and not ledger.spent_in(run):
            spent = ledger.account.claim(ledger.spent(), ledger.delta)
            raise RefusedError(
                f"the privacy budget of this client's data is exhausted (ε = {spent:.4g} of {ledger.epsilon:g}); the owner can"
                " raise it with fedloom budget --raise-to"
            )
        return budget

    def reserve(self, config: RunConfig, request: TrainRequest | AssignRequest) -> Reservation | None:
        """Check a request and reserve its release; None in a run without noise.

        Raises:
            RefusedError: The cost exceeds the policy, the run's budget or the ledger's; or noise on records does not cover
                the request.
        """
        options = config.privacy
        if isinstance(request, TrainRequest):
            options = with_clip(options, request.clip)
        if options.unit == "none":
            return None
        run = self.run_name(request.enrolment)
        if isinstance(request, AssignRequest):
            if options.unit == "record":
                raise RefusedError(
                    "noise on records covers neither properties nor losses of clusters; set privacy.unit=client"
                )
            return self._reserve(options, Slot(run, request.round, kind="assign"), request.cost)
        reservation = self._reserve(options, Slot(run, request.round, request.phase), request.cost)
        if options.unit == "record" and request.statics:
            raise RefusedError(
                "untrained inputs of the model reach every record, and noise on records does not cover them; set"
                " privacy.unit=client"
            )
        return reservation

    def reserve_in_sums(self, config: RunConfig, run: str, kind: str) -> Reservation:
        """Reserve a release in a noised sum: `metrics` of the final model, or `names` before round 1."""
        cost = config.metric_cost if kind == "metrics" else config.name_cost
        return self._reserve(config.privacy, Slot(self.run_name(run), 0, kind=kind), cost)

    def _reserve(self, options: PrivacyOptions, slot: Slot, requested: float | None = None) -> Reservation:
        """Reserve the requested cost, by default the run's budget, less a margin for rounding."""
        account = build_account(options)
        requested = account.total(options.epsilon, options.delta) if requested is None else requested
        cost, minimum = requested * (1 - ROUNDING), _minimum(options, account)
        if not minimum < cost < math.inf:
            bound = "not finite" if cost > minimum else f"below the minimum {minimum:.2g} of a noisy reply"
            raise RefusedError(f"requested cost {requested} is {bound}")
        limits = self._limits(options, account)
        if cost > limits.round:
            asked = account.claim(requested, min(options.delta, self._policy.delta))
            raise RefusedError(
                f"asked for ε {asked:.3g} in one round, this client's limit is {self._policy.max_epsilon_per_round:g}"
            )
        ledger = self.ledger(options)
        remaining = self._remaining(options, account, ledger, slot.run)
        if cost > remaining and not ledger.has_cached(slot):
            raise RefusedError(
                f"requested cost {requested:.4g} ({account.name}) exceeds the remaining budget {remaining:.4g}"
            )
        if not isinstance(account, PlannedGdp):
            return Reservation(slot, options, account, cost, limits, ledger, contract=self._consent.hash)
        plan = ledger.plan_of(slot.run)
        releases = releases_of(plan.mechanism) if plan else int(remaining / cost)
        if plan and abs(releases * cost / plan.cost - 1) > TOLERANCE:
            raise RefusedError(
                f"requested cost {requested:.4g} is not the {plan.cost / releases:.4g} of the run's plan; request equal costs"
            )
        total = plan.cost if plan else releases * cost
        limits = replace(limits, releases=releases)
        return Reservation(slot, options, account, total, limits, ledger, releases, self._consent.hash)

    def _remaining(self, options: PrivacyOptions, account: Account, ledger: Ledger, run: str) -> float:
        """Return the remaining budget of a run: the least of its own and the ledger's."""
        if not serves(ledger.account, account):
            raise RefusedError(
                f"the ledger uses the {ledger.account.name} account since its first release, the run needs {account.name};"
                f" set {settings_for(ledger.account, options.delta)}"
            )
        if isinstance(account, PlannedGdp):
            if math.isfinite(self._policy.max_epsilon_per_round):
                raise RefusedError(
                    "this client limits ε of a round (max-epsilon-per-round), and the run charges all rounds with the first;"
                    " set privacy.accounting=filter"
                )
            if plan := ledger.plan_of(run):
                releases = releases_of(plan.mechanism)
                return plan.cost * max(0, releases - ledger.releases_in(run)) / releases * (1 + TOLERANCE)
        left = account.total(options.epsilon, options.delta) - ledger.spent_in(run)
        return max(0.0, min(left, ledger.remaining()))

    def _limits(self, options: PrivacyOptions, account: Account) -> Limits:
        """Return the limits of a run and of one of its rounds; the policy's δ applies if it is smaller."""
        epsilon = self._policy.max_epsilon_per_round
        a_round = account.total(epsilon, min(options.delta, self._policy.delta)) if math.isfinite(epsilon) else math.inf
        return Limits(account.total(options.epsilon, options.delta), a_round)

    def run_name(self, enrolment: str) -> str:
        """Return the ledger's name of the run of an enrolment."""
        name = enrolment.partition(":")[0]
        return f"{name} {self._part}" if self._part else name


def settings_for(account: Account, delta: float) -> str:
    """Return the settings with which a run uses that account.

    RDP of order α is cheapest at ε = L(2α − 1)/(α − 1)² with L = ln 1/δ (see `fixed_order`).
    """
    if isinstance(account, Rdp):
        epsilon = math.log(1 / delta) * (2 * account.order - 1) / (account.order - 1) ** 2
        return f"privacy.epsilon={epsilon:.6g} and privacy.accounting=filter and privacy.delta={delta:g}"
    if isinstance(account, PlannedGdp):
        return f"privacy.accounting=plan and privacy.delta={account.delta:g}"
    names = [spec.name for spec in VECTOR_MECHANISMS if serves(account, spec.account(PrivacyOptions()))]
    return " or ".join(f"privacy.mechanism={name}" for name in names)


def _minimum(options: PrivacyOptions, account: Account) -> float:
    """Return the cost at or below which noise would be as good as infinite."""
    return MIN_COST_SHARE * account.total(options.epsilon, options.delta)
