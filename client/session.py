"""Session of one client: replies to the server's five requests."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from client.enrolment import BuildLearner, EnrolledRun, Enrolments, ReadNames, fingerprint, no_names
from client.privacy.budget import check_remainder
from client.privacy.release import Releaser, passes_unchanged
from client.privacy.transforms import run_or_zeros
from client.secure.terms import Pins
from client.secure.upload import join_training, upload_counts, upload_metrics, upload_names, with_own_part
from client.state import Store
from client.tasks.counts import release_counts, release_names, without_own_counts
from client.training.alone import with_alone
from client.training.evaluation import assess_models, choose_cluster, evaluate_models
from client.training.local_round import train
from client.training.participant import ADAPT, Participant
from client.training.state import keep_round
from common.arrays import Arrays
from common.config.run import RunConfig, keeps_rounds
from common.errors import FedloomError, RefusedError
from common.text import printable
from common.wire.messages import (
    AssignReply,
    AssignRequest,
    CountsReply,
    CountsRequest,
    EnrolReply,
    EnrolRequest,
    EvaluateReply,
    EvaluateRequest,
    TrainReply,
    TrainRequest,
)

MODEL = "model.safetensors"
"""Name of the document in a run's state: the finished model."""


class Session:
    """Client side of all exchanges with a server.

    The releaser is the last step of every reply with private data; it holds the owner's policy. Without a file of first
    contacts, identities of helpers end with the process.
    """

    def __init__(
        self,
        client: str,
        build_learner: BuildLearner,
        store: Store,
        releaser: Releaser,
        first_contacts: Path | None = None,
        read_names: ReadNames = no_names,
    ) -> None:
        self.client, self.build_learner, self.store, self.releaser = client, build_learner, store, releaser
        self.policy = releaser.policy
        self.runs = Enrolments(build_learner, store, self.policy, Pins(self.policy, first_contacts).accept, read_names)

    def enrol(self, request: EnrolRequest) -> EnrolReply:
        """Accept an enrolment.

        Raises:
            RefusedError: The policy forbids the run, its budget is exhausted, or the data do not match its vocabulary; or the
                server refuses this client, whose owner reads the reason in the log.
        """
        if request.refusal:
            raise RefusedError(f"the server does not admit this client: {printable(request.refusal)}")
        run = self.runs.open(request) if request.catalogue else self.runs.open_names(request)
        examples = run.learner.examples if isinstance(run, EnrolledRun) else 1  # names alone are asked for
        reply = EnrolReply(self.client, fingerprint(request), examples)
        reply = self.releaser.release_enrolment(run.config, reply)
        self.runs.save(request)
        return reply

    def counts(self, request: CountsRequest) -> CountsReply:
        """Return the client's statistics for the sums of the run, or of its names before it has a vocabulary."""
        if names := self.runs.find_names(request.enrolment):
            if names.helpers:
                return upload_names(self.client, names, self.releaser, request)
            return CountsReply(release_names(names, self.releaser, request))
        run = self.runs.find(request.enrolment)
        if run.helpers:
            return upload_counts(self.client, run, self.releaser, self.store, request)
        return CountsReply(release_counts(run, self.releaser, self.store))

    def assign(self, request: AssignRequest) -> AssignReply:
        """Return the assignment score of several models, and the parameters of the client's property."""
        run = self.runs.find(request.enrolment)
        if run.helpers:
            raise RefusedError("this run announces secure sums, and an assignment is a reply of one client alone")

        def work() -> AssignReply:
            return assess_models(run, self.store, request, self._statics(run, request.statics))

        return self.releaser.release_assignment(run.config, request, work)

    def train(self, request: TrainRequest) -> TrainReply:
        """Train for one round."""
        participant = self.participant(request)

        def work() -> TrainReply:
            [reply] = train(self.config(request.enrolment).method_options, [participant])
            if isinstance(reply, FedloomError):
                raise reply
            return reply

        return self.release(participant, work)

    def evaluate(self, request: EvaluateRequest) -> EvaluateReply:
        """Return metrics of the shared model if the policy allows, and store the finished model.

        Under terms, the metrics are masked.
        """
        run, empty = self.runs.find(request.enrolment), EvaluateReply(request.round, {}, {})
        if keeps_rounds(run.config) and not request.final:
            keep_round(self.store, run.run, request.round)
        masks = bool(request.terms) and self.policy.sums_metrics(run.config.privacy)
        shares_metrics = masks or self.policy.shares_metrics(run.config.privacy)
        if not shares_metrics and not request.final:
            return empty
        models = run.split_models(request.model)
        request = replace(request, model=models[self._cluster(run, request)])
        if request.final:
            self.store.write(run.run, MODEL, save({**request.model, **request.statics}))
        work = partial(self._evaluate, run, request, compares=shares_metrics and request.final)
        if masks:
            return upload_metrics(self.client, run, self.releaser, request, work)
        if shares_metrics:
            return work()
        run_or_zeros(work, lambda: empty)  # the shared model is adapted and stored in any case
        return empty

    def config(self, enrolment: str) -> RunConfig:
        """Return the configuration of a run in which this client is enrolled."""
        return (self.runs.find_names(enrolment) or self.runs.find(enrolment)).config

    def participant(self, request: TrainRequest) -> Participant:
        """Return this client as part of a cohort, with the release of its update reserved.

        Raises:
            WireError: The model does not match the run's.
            RefusedError: The cost of the release exceeds a limit, the terms of the round's sum are not acceptable, or noise
                would leave nothing of the training.
        """
        run = self.runs.find(request.enrolment)
        models = run.split_models(request.model)
        steps = self.policy.local_steps(run.config.method_options.steps(request.phase))
        reservation = self.releaser.budget.reserve(run.config, request)
        if reservation and request.round == 1:
            check_remainder(run.config, models[0], request.clients)
        noise = reservation.noise(steps, self.releaser.generator) if reservation else None
        first = replace(request, model=models[0])
        part = join_training(self.client, run, self.policy, self.store, first, steps) if run.helpers else None
        cluster = self._cluster(run, request)
        part = replace(part, cluster=cluster) if part else None
        request = replace(request, model=models[cluster], statics=self._statics(run, request.statics))
        return self._member(run, request, steps, noise, reservation, part)

    def passes_unchanged(self, participant: Participant) -> bool:
        """Return True if `release` changes nothing but the encoding of the reply."""
        return passes_unchanged(self.config(participant.request.enrolment), participant)

    def release(self, participant: Participant, work: Callable[[], TrainReply]) -> TrainReply:
        """Release the reply of local training as the configuration, the policy and the ledger allow."""
        run = self.runs.find(participant.request.enrolment)
        return self.releaser.release_update(run.config, run.trainer, participant, work)

    def _evaluate(self, run: EnrolledRun, request: EvaluateRequest, *, compares: bool) -> EvaluateReply:
        options, statics = run.config.method_options, self._statics(run, request.statics)
        adapt = TrainRequest(request.round, request.enrolment, request.model, statics=statics, phase=ADAPT)
        limit, split = self.policy.local_steps, request.split
        participant = self._member(run, adapt, limit(options.steps(ADAPT)))
        reply = evaluate_models(run.config, participant, split, final=request.final)
        return with_alone(run, participant, self.build_learner, limit, split, reply) if compares else reply

    def _statics(self, run: EnrolledRun, statics: Arrays) -> Arrays:
        """Return the sums of the run without this client's part; with noise, its part is beside them."""
        if not statics or run.config.capabilities.closed_form:
            return statics
        return (with_own_part if run.config.count_cost else without_own_counts)(run, self.store, statics)

    def _cluster(self, run: EnrolledRun, request: TrainRequest | EvaluateRequest) -> int:
        """Return the number of this client's model in a request, which it chooses in secure sums of clusters."""
        if not (run.helpers and run.config.capabilities.clusters):
            return 0
        return choose_cluster(self.client, run, self.store, request, self._statics(run, request.statics))

    def _member(self, run: EnrolledRun, request: TrainRequest, steps: int, *release: Any) -> Participant:
        """Return this client as a participant; `release` is the noise, the reservation and the part of a sum."""
        return Participant(self.client, run.run, run.config.seed, run.learner, self.store, request, steps, *release)
