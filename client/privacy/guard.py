"""The last stop before the network: what a run's privacy options and the owner's policy let out, clipped, noised, booked."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from safetensors.numpy import load, save

from client.policy import Policy
from client.privacy.leaving import at_clip, in_order, leaving, parted, run_of, slot_of
from client.privacy.ledger import Ledger
from client.privacy.noise import Noise
from client.privacy.rows import Slot
from common.arrays import Arrays, group, prefixed
from common.config import RunConfig
from common.errors import RefusedError
from common.item_ids import sends_item_ids
from common.privacy.accounts import Account, build_account
from common.privacy.claims import SAME_ITEMS
from common.privacy.mechanisms import Gaussian, build_mechanism
from common.privacy.noise import fresh_generator
from common.privacy.options import PrivacyOptions, Unit
from common.privacy.subsampled import DpSgd, multiplier_for
from common.privacy.vectors import from_vector, to_vector
from common.wire.messages import AssignReply, AssignRequest, EnrolReply, EvaluateReply, TrainReply, TrainRequest

OpenLedger = Callable[[Unit, Account], Ledger]
"""Opens a client's ledger: whose data are hidden, and what to count in if that is new to it."""

LEAST = 1e-6
"""Share of a run's promise that is as good as nothing, left or asked for."""

ONE = 0.5
"""Clip of noise on counts: it hides any move by 2C = 1, which is what one record adds or takes away."""

ROUNDING = 1e-9
"""Relative share of a cost that is not spent, since float rounding makes a hundred times B/100 more than B."""


class Guard:
    """Wraps a client's answers; in runs without noise it lets them pass as they are.

    Args:
        policy: The owner's terms.
        open_ledger: Finds the ledger of the data.
        generator: Where noise comes from; a seeded one belongs into tests and simulations.
    """

    def __init__(
        self, policy: Policy, open_ledger: OpenLedger, generator: Callable[[], np.random.Generator] = fresh_generator
    ) -> None:
        self.policy, self._open_ledger, self.generator = policy, open_ledger, generator
        self._ledgers: dict[Unit, Ledger] = {}

    def ledger(self, options: PrivacyOptions) -> Ledger:
        """The ledger that a run with these options is booked in: one a unit, whatever the options."""
        if options.unit not in self._ledgers:
            self._ledgers[options.unit] = self._open_ledger(options.unit, build_account(options))
        return self._ledgers[options.unit]

    def enrolled(self, config: RunConfig, reply: EnrolReply) -> EnrolReply:
        """Hide the number of records, and say what may be spent and whether metrics will leave.

        Raises:
            RefusedError: Nothing is left.
        """
        reply = replace(reply, shares_metrics=self.policy.shares_metrics(config.privacy))
        if config.privacy.unit == "none":
            return reply
        budget = self._left(config.privacy, run_of(reply.enrolment))
        if budget <= LEAST * build_account(config.privacy).total(config.privacy.epsilon, config.privacy.delta):
            raise RefusedError("its privacy budget is spent")
        return replace(reply, examples=1, budget=budget)

    def trained(
        self, config: RunConfig, request: TrainRequest, steps: int, work: Callable[[], TrainReply]
    ) -> TrainReply:
        """A round's reply with noise: paid before the noise is drawn, the same bytes whenever it is asked for again.

        Args:
            config: The run.
            request: What the server asks.
            steps: Local steps, τ_k.
            work: The training; under DP-SGD it draws noise itself.

        Raises:
            RefusedError: It would cost more than the policy, the run's promise or the ledger allows.
        """
        options = at_clip(config.privacy, request.clip)
        if options.unit == "none":
            return work()
        slot, ledger = slot_of(request), self.ledger(config.privacy)
        cost = self._agreed(config.privacy, slot, request.cost)
        if options.unit == "record":
            terms = ledger.terms(self._sampled(options, cost, steps))
            content = ledger.release(slot, terms, lambda: save(leaving(work())))
        else:
            content = self._noised(options, ledger, slot, cost, *parted(leaving(work()), sends_item_ids(config)))
        ledger.acknowledge(slot.run, slot.round)
        sent = load(content)
        return TrainReply(request.round, group("update", sent), group("gradient", sent), 0.0, 1, steps)

    def assigned(self, config: RunConfig, request: AssignRequest, work: Callable[[], AssignReply]) -> AssignReply:
        """How models suit the client, and its property: one vector, noised and charged apart from the update."""
        if config.privacy.unit == "none":
            return work()
        if config.privacy.unit == "record":
            raise RefusedError(
                "noise on records covers no properties and no losses of clusters; use privacy.unit=client"
            )
        slot = Slot(run_of(request.enrolment), request.round, kind="assign")
        cost = self._agreed(config.privacy, slot, request.cost)
        exact = work()
        losses = {key: np.array(value, np.float32) for key, value in exact.losses.items()}
        outgoing = {**prefixed("loss", losses), **prefixed("property", exact.property)}
        sent = load(self._noised(config.privacy, self.ledger(config.privacy), slot, cost, outgoing, {}))
        told = {key: float(value) for key, value in group("loss", sent).items()}
        return AssignReply(request.round, told, in_order(group("property", sent)))

    def counted(self, config: RunConfig, run: str, draw: Callable[[float, np.random.Generator], Arrays]) -> Arrays:
        """Counts with Gaussian noise, for all that the run promises for them, paid before the noise is drawn.

        Args:
            config: The run.
            run: Its name.
            draw: Noise of that standard deviation on counts to which one record adds a vector of L2 norm 1 at most.

        Raises:
            RefusedError: As `trained`.
        """
        options = config.count_privacy
        slot, ledger, account = Slot(run, 0, kind="counts"), self.ledger(options), build_account(options)
        cost = self._agreed(options, slot, account.total(options.epsilon, options.delta))
        mechanism = Gaussian(cost / account.charge(Gaussian(1.0, ONE)), ONE)
        return load(
            ledger.release(slot, ledger.terms(mechanism), lambda: save(draw(mechanism.noise, self.generator())))
        )

    def measured(self, config: RunConfig, reply: EvaluateReply) -> EvaluateReply:
        """Metrics, where the owner shares them in such a run."""
        shared = self.policy.shares_metrics(config.privacy)
        return reply if shared else EvaluateReply(reply.round, {}, {})

    def admit(self, config: RunConfig, request: TrainRequest, steps: int) -> Noise | None:
        """Check before any work whether a reply could be paid; the noise of local steps where they carry it.

        Raises:
            RefusedError: As `trained`.
        """
        options = at_clip(config.privacy, request.clip)
        if options.unit == "none":
            return None
        cost = self._agreed(config.privacy, slot_of(request), request.cost)
        if options.unit == "client":
            return None
        return Noise(options.clip, self._sampled(options, cost, steps).multiplier, options.sample, self.generator)

    def _noised(
        self, options: PrivacyOptions, ledger: Ledger, slot: Slot, cost: float, leaving: Arrays, ids: Arrays
    ) -> bytes:
        """One clip and one noise over all that leaves but ids of rows."""
        vector = to_vector(leaving)
        if not vector.size:  # as of method local: nothing leaves, and nothing is paid
            return save(leaving)
        mechanism = build_mechanism(options, cost, vector.size)

        def draw() -> bytes:
            released = mechanism.release(vector, self.generator(), options.normalise)
            return save({**from_vector(released, leaving), **ids})

        terms = ledger.terms(mechanism)
        return ledger.release(slot, replace(terms, neighbours=SAME_ITEMS) if ids else terms, draw)

    def _sampled(self, options: PrivacyOptions, cost: float, steps: int) -> DpSgd:
        order = build_account(options).name.partition("-")[2]
        return DpSgd(multiplier_for(cost, options.sample, steps, int(order)), options.sample, steps, options.clip)

    def _agreed(self, options: PrivacyOptions, slot: Slot, wished: float) -> float:
        """The cost asked for, a hair less so that rounding never exceeds a total, if it can be paid."""
        account, cost = build_account(options), wished * (1 - ROUNDING)
        least = LEAST * account.total(options.epsilon, options.delta)
        if not least < cost < np.inf:
            raise RefusedError(
                f"the server asks for a reply at cost {wished}; with noise it costs {least:.2g} at least"
            )
        if account.claim(cost, options.delta) > self.policy.max_epsilon_per_round:
            raise RefusedError(f"a round of {wished:.4g} {account.name} is more than this client's policy allows")
        left = self._left(options, slot.run)
        if cost > left and not self.ledger(options).keeps(slot):
            raise RefusedError(f"the server asks for {wished:.4g} {account.name}, of which {left:.4g} are left here")
        return cost

    def _left(self, options: PrivacyOptions, run: str) -> float:
        """What this run may still spend: of its own promise, and of the ledger."""
        account, ledger = build_account(options), self.ledger(options)
        if ledger.account.name != account.name:
            raise RefusedError(f"this client's ledger counts in {ledger.account.name}, the run in {account.name}")
        promised = account.total(options.epsilon, options.delta) - ledger.spent_in(run)
        return max(0.0, min(promised, ledger.remaining()))
