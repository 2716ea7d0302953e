"""The last stop before the network: what a run's privacy options and the owner's policy let out, clipped, noised, booked."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from safetensors.numpy import load, save

from client.policy import Policy
from client.privacy.budget import Budget, OpenLedger
from client.privacy.dp_sgd_noise import DpSgdNoise
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.records import Slot
from client.privacy.payload import at_clip, finite_or_zeros, payload_of, sort_bounds, split_row_ids
from common.arrays import Arrays, add_prefix, group
from common.config.run import RunConfig
from common.errors import RefusedError
from common.privacy.accounts import build_account
from common.privacy.claims import SAME_ITEMS
from common.privacy.mechanisms.additive import Gaussian, build_mechanism
from common.privacy.mechanisms.dp_sgd import DpSgd, multiplier_for
from common.privacy.options import PrivacyOptions
from common.privacy.randomness import fresh_generator
from common.privacy.vectors import from_vector, to_vector
from common.wire.messages import AssignReply, AssignRequest, EnrolReply, TrainReply, TrainRequest

ONE = 0.5
"""Clip of noise on counts: it hides any move by 2C = 1, which is what one record adds or takes away."""


class Releaser:
    """Wraps a client's answers; in runs without noise it lets them pass as they are.

    Args:
        policy: The owner's terms.
        open_ledger: Finds the ledger of the data.
        generator: Where noise comes from; a seeded one belongs into tests and simulations.
        part: Which part of the data the client has, where several clients share a data set and so its ledger.
    """

    def __init__(
        self,
        policy: Policy,
        open_ledger: OpenLedger,
        generator: Callable[[], np.random.Generator] = fresh_generator,
        part: str = "",
    ) -> None:
        self.policy, self.generator = policy, generator
        self._purse = Budget(policy, open_ledger, part)

    def ledger(self, options: PrivacyOptions) -> Ledger:
        """The ledger that a run with these options is booked in."""
        return self._purse.ledger(options)

    def enrolled(self, config: RunConfig, reply: EnrolReply) -> EnrolReply:
        """Hide the number of records, and say what may be spent and whether metrics will leave.

        Raises:
            RefusedError: Nothing is left.
        """
        reply = replace(reply, shares_metrics=self.policy.shares_metrics(config.privacy))
        if config.privacy.unit == "none":
            return reply
        return replace(reply, examples=1, budget=self._purse.enrolled(config, reply.enrolment))

    def release_update(
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
        slot, ledger = self._purse.slot(request), self.ledger(config.privacy)
        cost = self._purse.agreed(config.privacy, slot, request.cost)
        if options.unit == "record":
            terms = ledger.terms(self._sampled(options, cost, steps))
            limits = self._purse.limits(config.privacy)
            content = ledger.release(slot, terms, lambda: save(payload_of(work())), limits)
        else:
            outgoing = split_row_ids(payload_of(work()), config.task_options.named_rows is not None)
            content = self._noised(options, ledger, slot, cost, *outgoing)
        ledger.acknowledge(slot.run, slot.round)
        sent = load(content)
        return TrainReply(request.round, group("update", sent), group("gradient", sent), 0.0, 1, steps)

    def release_assignment(
        self, config: RunConfig, request: AssignRequest, work: Callable[[], AssignReply]
    ) -> AssignReply:
        """How models suit the client, and its property: one vector, noised and charged apart from the update."""
        if config.privacy.unit == "none":
            return work()
        if config.privacy.unit == "record":
            raise RefusedError(
                "noise on records covers no properties and no losses of clusters; use privacy.unit=client"
            )
        slot = self._purse.slot(request)
        cost = self._purse.agreed(config.privacy, slot, request.cost)
        exact = work()
        losses = {key: np.array(value, np.float32) for key, value in exact.losses.items()}
        outgoing = {**add_prefix("loss", losses), **add_prefix("property", exact.property)}
        sent = load(self._noised(config.privacy, self.ledger(config.privacy), slot, cost, outgoing, {}))
        told = {key: float(value) for key, value in group("loss", sent).items()}
        return AssignReply(request.round, told, sort_bounds(group("property", sent)))

    def release_counts(
        self, config: RunConfig, run: str, draw: Callable[[float, np.random.Generator], Arrays]
    ) -> Arrays:
        """Counts with Gaussian noise, for all that the run promises for them, paid before the noise is drawn.

        Args:
            config: The run.
            run: Its name.
            draw: Noise of that standard deviation on counts to which one record adds a vector of L2 norm 1 at most.

        Raises:
            RefusedError: As `trained`.
        """
        options = config.task_options.count_privacy
        slot = Slot(self._purse.run(run), 0, kind="counts")
        ledger, account = self.ledger(options), build_account(options)
        cost = self._purse.agreed(options, slot, account.total(options.epsilon, options.delta))
        mechanism = Gaussian(cost / account.charge(Gaussian(1.0, ONE)), ONE)
        terms, limits = ledger.terms(mechanism), self._purse.limits(options)
        return load(ledger.release(slot, terms, lambda: save(draw(mechanism.noise, self.generator())), limits))

    def admit(self, config: RunConfig, request: TrainRequest, steps: int) -> DpSgdNoise | None:
        """Check before any work whether a reply could be paid; the noise of local steps where they carry it.

        Raises:
            RefusedError: As `trained`.
        """
        options = at_clip(config.privacy, request.clip)
        if options.unit == "none":
            return None
        cost = self._purse.agreed(config.privacy, self._purse.slot(request), request.cost)
        if options.unit == "client":
            return None
        if request.statics:
            raise RefusedError(
                "what the server adds to the model would reach every record; noise on records covers none of it"
            )
        return DpSgdNoise(options.clip, self._sampled(options, cost, steps).multiplier, options.sample, self.generator)

    def _noised(
        self, options: PrivacyOptions, ledger: Ledger, slot: Slot, cost: float, leaving: Arrays, ids: Arrays
    ) -> bytes:
        """One clip and one noise over all that leaves but ids of rows."""
        vector = finite_or_zeros(to_vector(leaving))
        if not vector.size:  # as of method local: nothing leaves, and nothing is paid
            return save(leaving)
        mechanism = build_mechanism(options, cost, vector.size)

        def draw() -> bytes:
            released = mechanism.release(vector, self.generator(), options.normalise)
            return save({**from_vector(released, leaving), **ids})

        terms = ledger.terms(mechanism)
        return ledger.release(
            slot, replace(terms, neighbours=SAME_ITEMS) if ids else terms, draw, self._purse.limits(options)
        )

    def _sampled(self, options: PrivacyOptions, cost: float, steps: int) -> DpSgd:
        order = build_account(options).name.partition("-")[2]
        return DpSgd(multiplier_for(cost, options.sample, steps, int(order)), options.sample, steps, options.clip)
