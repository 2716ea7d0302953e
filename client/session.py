"""Session of one client: replies to the server's five requests."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric import ec

from client.enrolment import SHARED, BuildLearner, EnrolledRun, Enrolments, ReadNames, fingerprint, no_names
from client.privacy.budget import check_remainder
from client.privacy.release import Releaser, passes_unchanged
from client.privacy.transforms import run_or_zeros
from client.secure.members import Party, find_party, show_members
from client.secure.terms import Pins
from client.secure.upload import join_training, upload_metrics, upload_names
from client.state import Store
from client.tasks.names import release_names
from client.training.alone import with_alone
from client.training.evaluation import (
    Measurement,
    assess_models,
    choose_cluster,
    foresee_assignment,
    prepare_measurement,
)
from client.training.foresight import Question, foreseen
from client.training.local_round import train
from client.training.participant import ADAPT, Participant, split_cohort
from client.training.state import keep_round
from common.config.run import RunConfig, keeps_rounds
from common.errors import FedloomError, RefusedError
from common.node_names import fresh_node_key
from common.secure.members import MemberKey
from common.text import printable
from common.wire.messages import (
    AssignReply,
    AssignRequest,
    EnrolReply,
    EnrolRequest,
    EvaluateReply,
    EvaluateRequest,
    MembersReply,
    MembersRequest,
    NamesReply,
    NamesRequest,
    Payload,
    TrainReply,
    TrainRequest,
)

MODEL = "model.safetensors"
"""Name of the document in a run's state: the finished model."""


class Session:
    """Client side of all exchanges with a server.

    The releaser is the last step of every reply with private data; it holds the owner's policy and contract. Without a file
    of first contacts, identities of helpers end with the process.
    """

    def __init__(
        self,
        client: str,
        build_learner: BuildLearner,
        store: Store,
        releaser: Releaser,
        first_contacts: Path | None = None,
        read_names: ReadNames = no_names,
        node_key: Callable[[], ec.EllipticCurvePrivateKey] = fresh_node_key,
        device: str = "cpu",
    ) -> None:
        self.device = device
        self._foreseen: tuple[EvaluateRequest | None, Measurement | None] = None, None
        self.client, self.build_learner, self.store, self.releaser = client, build_learner, store, releaser
        self.policy, self.consent = releaser.policy, releaser.consent
        self._member_key = cache(lambda: MemberKey(node_key()))
        pins = Pins(self.policy, first_contacts, lambda: self.consent.pinned)
        self.runs = Enrolments(build_learner, store, self.policy, pins.accept, read_names, self.consent)

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
        return replace(reply, card=self._member_key().card(self.client, run.run)) if run.helpers else reply

    def names(self, request: NamesRequest) -> NamesReply:
        """Return the client's part of a sum of names, before the run has a vocabulary.

        Raises:
            RefusedError: The run has a vocabulary, or the policy does not allow it.
        """
        names = self.runs.find_names(request.enrolment)
        if names is None:
            raise RefusedError("the run's configuration does not announce sums of names; set catalogue=federated")
        if names.helpers:
            return upload_names(self._party(names.run), names, self.releaser, self.store, request)
        return NamesReply(release_names(names, self.releaser, request))

    def members(self, request: MembersRequest) -> MembersReply:
        """Take note of further members of a run's secure sums.

        Raises:
            WireError: A card is malformed, or of another run.
            RefusedError: The run has no secure sums, or a member has another key than before.
        """
        run = self.runs.find_names(request.enrolment) or self.runs.find(request.enrolment)
        if not run.helpers:
            raise RefusedError("this run announces no secure sums")
        return show_members(run.run, self.store, request)

    def assign(self, request: AssignRequest) -> AssignReply:
        """Return the assignment score of several models, and the parameters of the client's property."""
        run = self.runs.find(request.enrolment)
        if run.helpers:
            raise RefusedError("this run announces secure sums, and an assignment is a reply of one client alone")

        def work() -> AssignReply:
            return assess_models(run, self.store, request)

        return self.releaser.release_assignment(run.config, request, work)

    def train(self, request: TrainRequest) -> TrainReply:
        """Train for one round."""
        participant = self.participant(request)

        def work() -> TrainReply:
            [reply] = train(self.config(request.enrolment, request.round).method_options, [participant])
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
        model = run.split_models(request.model)[self._cluster(run, request)]
        request = request if model is request.model else replace(request, model=model)
        if request.final:
            self.store.write(run.run, MODEL, SHARED.serialize(request.model, request.statics))
        work = partial(self._evaluate, run, request, compares=shares_metrics and request.final)
        if masks:
            return upload_metrics(self._party(run.run), run, self.releaser, self.store, request, work)
        if shares_metrics:
            return work()
        run_or_zeros(work, lambda: empty)  # the shared model is adapted and stored in any case
        return empty

    def config(self, enrolment: str, number: int = 0) -> RunConfig:
        """Return the configuration of a run in which this client is enrolled, or of its phase with a round."""
        config = (self.runs.find_names(enrolment) or self.runs.find(enrolment)).config
        return config.at(number) if number else config

    def participant(self, request: TrainRequest) -> Participant:
        """Return this client as part of a cohort, with the release of its update reserved.

        Raises:
            WireError: The model does not match the run's.
            RefusedError: The cost of the release exceeds a limit, the terms of the round's sum are not acceptable, the run is
                over, or noise would leave nothing of the training.
        """
        run = self.runs.find(request.enrolment)
        if self.consent.contract and request.round > run.config.rounds:
            raise RefusedError(f"round {request.round} exceeds the {run.config.rounds} rounds of this run")
        run = run.at(request.round)
        models = run.split_models(request.model)
        steps = self.policy.local_steps(run.config.method_options.steps(request.phase))
        reservation = self.releaser.budget.reserve(run.config, request)
        if reservation and request.round == run.config.first_rounds + 1:
            check_remainder(run.config, models[0], request.clients)
        noise = reservation.noise(steps, self.releaser.generator) if reservation else None
        first = request if models[0] is request.model else replace(request, model=models[0])
        least = self.releaser.min_sum
        part = join_training(self._party(run.run), run, least, self.store, first, steps) if run.helpers else None
        cluster = self._cluster(run, request)
        part = replace(part, cluster=cluster) if part else None
        request = replace(first, model=models[cluster]) if cluster else first
        return self._member(run, request, steps, noise=noise, reservation=reservation, part=part)

    def passes_unchanged(self, participant: Participant) -> bool:
        """Return True if `release` changes nothing but the encoding of the reply."""
        request = participant.request
        return passes_unchanged(self.config(request.enrolment, request.round), participant)

    def release(self, participant: Participant, work: Callable[[], TrainReply]) -> TrainReply:
        """Release the reply of local training as the configuration, the policy and the ledger allow."""
        run = self.runs.find(participant.request.enrolment).at(participant.request.round)
        return self.releaser.release_update(run.config, run.trainer, participant, work)

    def _evaluate(self, run: EnrolledRun, request: EvaluateRequest, *, compares: bool) -> EvaluateReply:
        (asked, measurement), self._foreseen = self._foreseen, (None, None)
        measurement = measurement if measurement and asked is request else self._prepare(run, request)
        with foreseen(measurement.questions):
            reply, limit, participant = measurement.reply(), self.policy.local_steps, measurement.participant
        return with_alone(run, participant, self.build_learner, limit, request.split, reply) if compares else reply

    def _party(self, run: str) -> Party:
        """Return this client as a member of a run's sums."""
        return find_party(self.store, run, self.client, self._member_key())

    def _prepare(self, run: EnrolledRun, request: EvaluateRequest) -> Measurement:
        adapt = TrainRequest(request.round, request.enrolment, request.model, statics=request.statics, phase=ADAPT)
        member = self._member(run, adapt, self.policy.local_steps(run.config.method_options.steps(ADAPT)))
        return prepare_measurement(run.config, member, request.split, final=request.final)

    def _cluster(self, run: EnrolledRun, request: TrainRequest | EvaluateRequest) -> int:
        """Return the number of this client's model in a request, which it chooses in secure sums of clusters."""
        if not (run.helpers and run.config.capabilities.clusters):
            return 0
        return choose_cluster(self.client, run, self.store, request)

    def _member(self, run: EnrolledRun, request: TrainRequest, steps: int, **release: Any) -> Participant:
        """Return this client as a participant; `release` is the noise, the reservation and the part of a sum."""
        about = (self.client, run.run, run.config.seed, run.learner, self.store, request, steps)
        return Participant(*about, device=self.device, **release)

    def foresee(self, request: Payload | None) -> list[Question]:
        """Return the questions to the client's models in a request; none if they are of no stack."""
        try:
            if isinstance(request, AssignRequest):
                return foresee_assignment(self.runs.find(request.enrolment), self.store, request)
            if isinstance(request, EvaluateRequest) and not request.terms:
                run = self.runs.find(request.enrolment)
                if len(run.split_models(request.model)) == 1 and run.config.capabilities.own_model != "adapted":
                    measurement = self._prepare(run, request)
                    self._foreseen = request, measurement
                    return measurement.questions
        except FedloomError:
            pass
        return []


NameT = TypeVar("NameT")


def cohorts(sessions: Mapping[NameT, Session], request: Payload | None, together: int) -> Iterator[list[NameT]]:
    """Yield the names of clients that reply to one request; what they ask of their models is foreseen.

    At most `together` clients are stacked; one at a time, they measure the bits of single nodes.
    """
    stacks = request is not None and together > 1 and len(sessions) > 1
    asked = {name: session.foresee(request) if stacks else [] for name, session in sessions.items()}
    if others := [name for name, questions in asked.items() if not questions]:
        yield others
    names = sorted((name for name, questions in asked.items() if questions), key=lambda n: asked[n][0].learner.size)
    for cohort in split_cohort(names, lambda name: asked[name][0].learner, together):
        with foreseen(question for name in cohort for question in asked[name]):
            yield cohort
