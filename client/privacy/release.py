"""Clip, add noise to, and account for every payload before it is sent."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from client.owner.policy import Policy
from client.privacy.budget import Budget, OpenLedger, Reservation, sort_bounds
from client.privacy.transforms import (
    AdditiveNoise,
    InternalNoise,
    Plaintext,
    Privatize,
    Update,
    UpdateChain,
    update_of,
)
from client.privacy.update_steps import encode_steps, select_steps
from client.training.participant import Participant
from common.arrays import Arrays, add_prefix, group
from common.config.run import RunConfig
from common.privacy.accounts import PrivacyCost
from common.privacy.mechanisms import Gaussian, fresh_generator
from common.wire.messages import AssignReply, AssignRequest, EnrolReply, TrainReply

COUNT_CLIP = 0.5
"""Clip norm C of noisy counts: the sensitivity 2C = 1 is the largest change by one record."""

DrawCounts = Callable[[float, np.random.Generator], Arrays]
"""(σ, generator) -> counts with N(0, σ²) on each, of which one record changes at most an L2 norm of 1."""


class Releaser:
    """Last step before the network; in runs without noise, values pass unchanged.

    Args:
        policy: The owner's policy.
        open_ledger: Opens the ledger of the data.
        generator: Factory of the random generator for DP noise; seeded ones are for tests and simulations.
        part: Name of the client's partition, if several clients share a data set and thus its ledger.
    """

    def __init__(
        self,
        policy: Policy,
        open_ledger: OpenLedger,
        generator: Callable[[], np.random.Generator] = fresh_generator,
        part: str = "",
    ) -> None:
        self.policy, self.generator = policy, generator
        self.budget = Budget(policy, open_ledger, part)

    def release_enrolment(self, config: RunConfig, reply: EnrolReply) -> EnrolReply:
        """Hide the number of records under noise or masks; add budget, ledger and policy on metrics.

        Raises:
            RefusedError: The budget is exhausted.
        """
        shares = self.policy.shares_metrics(config.privacy)
        shares = shares or (config.privacy.unit == "none" and self.policy.sums_metrics(config.privacy))
        reply = replace(reply, shares_metrics=shares)
        if config.privacy.resolved_trust == "helpers":
            reply = replace(reply, examples=1)
        if config.privacy.unit == "none":
            return reply
        budget, head = self.budget.remaining(config, reply.enrolment), self.budget.ledger(config.privacy).head()
        return replace(reply, examples=1, budget=budget, ledger=head.public)

    def privatize(self, reservation: Reservation | None, steps: int = 0) -> Privatize:
        """Return the step from exact to released values: plaintext without a reservation.

        Args:
            reservation: Permission for the release.
            steps: Number of local steps, which carry the noise themselves under unit `record`.
        """
        if reservation is None:
            return Plaintext()
        if reservation.options.unit == "record":
            return InternalNoise(reservation, reservation.dp_sgd(steps))
        return AdditiveNoise(reservation, self.generator)

    def release_update(self, config: RunConfig, participant: Participant, work: Callable[[], TrainReply]) -> TrainReply:
        """Release the reply of a round of local training.

        Failed work becomes zeros, pseudo items are added, then clip and noise are applied. At last the client state takes the
        released part, and tables are encoded as sparse rows. A repeated request gets identical bytes.

        Args:
            config: Configuration of the run.
            participant: The client, with the reservation of the release.
            work: Local training; under DP-SGD it draws the noise itself.

        Raises:
            RefusedError: The cost exceeds a limit by now.
        """
        request, reservation = participant.request, participant.reservation
        privatize = self.privatize(reservation, participant.steps)
        if participant.part:
            internal = privatize.mechanism if isinstance(privatize, InternalNoise) else None
            privatize = participant.part.privatize(reservation, self.generator, internal)
        chain = UpdateChain(
            select_steps(config, participant, self.generator), privatize, encode_steps(config, participant)
        )
        released = chain(lambda: update_of(work()))
        if reservation:
            reservation.acknowledge()
        update, gradient = group("update", released.arrays), group("gradient", released.arrays)
        return TrainReply(
            request.round,
            update,
            gradient,
            released.loss,
            released.examples,
            participant.steps,
            masked=released.masked,
            sealed=released.sealed,
            ledger=reservation.head if reservation else "",
        )

    def release_assignment(
        self, config: RunConfig, request: AssignRequest, work: Callable[[], AssignReply]
    ) -> AssignReply:
        """Release assignment scores and property parameters as one vector, charged apart from the update.

        Raises:
            RefusedError: The cost exceeds a limit, or the run's noise does not cover assignments.
        """
        reservation = self.budget.reserve(config, request)
        dtype = np.float32 if reservation else np.float64

        def update() -> Update:
            exact = work()
            losses = {key: np.array(value, dtype) for key, value in exact.losses.items()}
            return Update({**add_prefix("loss", losses), **add_prefix("property", exact.property)})

        released = UpdateChain((), self.privatize(reservation))(update).arrays
        losses = {key: float(value) for key, value in group("loss", released).items()}
        bounds = group("property", released)
        if reservation is None:
            return AssignReply(request.round, losses, bounds)
        return AssignReply(request.round, losses, sort_bounds(bounds), ledger=reservation.head)

    def release_counts(self, config: RunConfig, run: str, draw: DrawCounts) -> Arrays:
        """Release counts with Gaussian noise, at the whole budget of the run's counts.

        Args:
            config: Configuration of the run.
            run: Name of the run.
            draw: Computes the counts and adds the noise.

        Raises:
            RefusedError: The cost exceeds a limit.
        """
        reservation = self.budget.reserve_counts(config, run)
        unit_cost = reservation.account.charge(PrivacyCost.of_zcdp(1.0))
        mechanism = Gaussian(reservation.cost / unit_cost, COUNT_CLIP)
        chain = UpdateChain((), InternalNoise(reservation, mechanism))
        return chain(lambda: Update(draw(mechanism.noise, self.generator()))).arrays
