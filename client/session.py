"""One client at work: its data, its policy, its private state, and what it answers to each request."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from safetensors.numpy import load, save

from client.enrolment import accepted, check_same_run, fingerprint, remember
from client.privacy.pseudo_items import among_pseudo_items
from client.privacy.release import Releaser
from client.state import Store
from client.tasks.learner import (
    ExcludesOwnCounts,
    HasCounts,
    HasProperty,
    Learner,
    PrivatizesCounts,
    SharesWindows,
    training_loss,
)
from client.trainers.registry import build_trainer
from client.training.client_state import HEAD, load_group
from client.training.cohort import train, zero_reply
from client.training.evaluation import measured
from client.training.failures import DivergedError, run_or_zeros
from client.training.participant import ADAPT, Participant
from common.arrays import Arrays, check_like, group
from common.config.flatten import from_json, names_in
from common.config.run import RunConfig
from common.errors import DataError, FedloomError, RefusedError
from common.models import parameters
from common.tasks.registry import TASKS, read_vocabulary
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import (
    LOCAL,
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
from common.wire.sparse_rows import compress_reply

MODEL, COUNTS = "model.safetensors", "counts.safetensors"
"""Documents a client keeps of each run: the finished model, and the counts that it sent."""

TIE = 1e-6
"""Weight of the training loss where models are judged by L_p: it decides between models that obey alike."""

UNFIT = "its data cannot be used in this run; the client's own log says why"

LOOK_AGAIN = 300.0
"""Seconds after which data that did not fit are read again for the same run: an owner may have mended them."""

BuildLearner = Callable[[RunConfig, Vocabulary], Learner]


@lru_cache(maxsize=4)
def _vocabulary(task: str, text: str) -> Vocabulary:
    """Read a vocabulary once for all clients of a process."""
    return read_vocabulary(task, text)


@dataclass(frozen=True)
class Enrolled:
    """A run this client takes part in, with its data made ready for it."""

    run: str
    config: RunConfig
    names: Vocabulary
    learner: Learner


class Session:
    """A client's side of the conversation.

    Args:
        client: Stable public name.
        build_learner: Reads the private data under a run's catalogue.
        store: Private state.
        guard: What answers pass on their way out; it knows the owner's terms.
    """

    def __init__(self, client: str, build_learner: BuildLearner, store: Store, guard: Releaser) -> None:
        self.client, self.store, self.policy, self.guard = client, store, guard.policy, guard
        self._build_learner = build_learner
        self._enrolled: dict[str, Enrolled] = {}
        self._unfit: dict[str, float] = {}

    def enrol(self, request: EnrolRequest) -> EnrolReply:
        """Accept an invitation.

        Raises:
            RefusedError: The policy forbids the run, or the data do not fit its catalogue.
        """
        enrolment = fingerprint(request)
        if enrolment in self._unfit and time.monotonic() < self._unfit[enrolment]:
            raise RefusedError(UNFIT)
        enrolled = self._enrolled.get(enrolment) or self._open(enrolment, request)
        reply = self.guard.enrolled(enrolled.config, EnrolReply(self.client, enrolment, enrolled.learner.examples))
        remember(self.store, request)
        return reply

    def counts(self, request: CountsRequest) -> CountsReply:
        """Counts: with noise where the run promises it, else in clear, for clients whose owner allows that."""
        enrolled = self._find(request.enrolment)
        learner, noisy = enrolled.learner, enrolled.config.task_options.count_privacy.unit != "none"
        if not noisy and not self.policy.allow_counts:
            raise RefusedError("counts in clear are not allowed by this client's policy")
        if enrolled.config.privacy.unit != "none":
            raise RefusedError("counts carry none of the noise that this run promises on all that leaves")
        if not enrolled.config.task_options.count_offset or (noisy and not isinstance(learner, PrivatizesCounts)):
            raise RefusedError("this run was not announced as one that takes such counts")
        if isinstance(learner, PrivatizesCounts) and noisy:
            counts = self.guard.release_counts(enrolled.config, enrolled.run, learner.private_counts)
        elif isinstance(learner, HasCounts):
            counts = learner.counts()
        else:
            raise RefusedError("this task has no counts")
        self.store.write(enrolled.run, COUNTS, save(counts))
        return CountsReply(counts)

    def _others(self, enrolled: Enrolled, statics: Arrays) -> Arrays:
        """The sums over clients without this one's part, for learners that know how to do without.

        Others take their own counts off what they train with, so a client that came after the sums were made adds its own.
        """
        if not statics:
            return statics
        if enrolled.config.privacy.unit != "none" and not statics.keys() <= TASKS[enrolled.config.task].pooled:
            raise RefusedError("the server adds sums over clients, which no client of a run with noise gives")
        learner, sent = enrolled.learner, self.store.read(enrolled.run, COUNTS)
        if isinstance(learner, ExcludesOwnCounts):
            return learner.without_own(statics, load(sent) if sent else {})
        if sent or not isinstance(learner, HasCounts):
            return statics
        return TASKS[learner.task].add_counts(statics, learner.counts(), enrolled.names)

    def assign(self, request: AssignRequest) -> AssignReply:
        """How well each of several models suits this client's data, and its property's parameters."""
        enrolled = self._find(request.enrolment)
        return self.guard.release_assignment(enrolled.config, request, lambda: self._assess(enrolled, request))

    def _assess(self, enrolled: Enrolled, request: AssignRequest) -> AssignReply:
        learner, memory, template = enrolled.learner, self.store.load(enrolled.run), parameters(enrolled.learner.module)
        obeys, statics = request.criterion == "property", self._others(enrolled, request.statics)
        upcoming = TrainRequest(request.round, request.enrolment, {})  # asked for again, a round starts where it did
        head = {n: t.numpy() for n, t in load_group(memory, upcoming, HEAD).items()}
        losses = {}
        for key in sorted({name.partition("/")[0] for name in request.models}):
            model = group(key, request.models)
            check_like(model, template, f"model {key}")
            suits = partial(_suits, learner, {**model, **head}, statics, obeys=obeys)
            losses[key] = run_or_zeros(suits, float) if enrolled.config.privacy.unit != "none" else suits()
        inferred = learner.property() if isinstance(learner, HasProperty) else {}
        if request.criterion == "sample":
            return AssignReply(request.round, {}, {**inferred, **self._sample(enrolled)})
        return AssignReply(request.round, losses, inferred if obeys else {})

    def _sample(self, enrolled: Enrolled) -> Arrays:
        """Training windows in clear: only in a run that its configuration, and so the policy, knows as one that takes them."""
        learner, windows = enrolled.learner, enrolled.config.capabilities.shared_windows
        if not windows or not isinstance(learner, SharesWindows):
            raise RefusedError("this run was not announced as one that takes windows of training data")
        return learner.windows(windows)

    def train(self, request: TrainRequest) -> TrainReply:
        """One round of local training."""
        member = self.member(request)

        def work() -> TrainReply:
            [reply] = train(self.config(request.enrolment).method_options, [member])
            if isinstance(reply, FedloomError):
                raise reply
            return reply

        return self.as_sent(request, member.steps, work)

    def as_sent(self, request: TrainRequest, steps: int, work: Callable[[], TrainReply]) -> TrainReply:
        """What `work` came to, as the run's configuration, the policy and the ledger let it travel."""
        config = self.config(request.enrolment)
        learner, generator = self._find(request.enrolment).learner, self.guard.generator
        if config.privacy.unit != "none":
            failures = DivergedError if config.privacy.unit == "record" else Exception
            work = partial(
                run_or_zeros, work, partial(zero_reply, config.method_options, learner, request, steps), failures
            )
        work = among_pseudo_items(work, learner, config, request.round, generator)
        reply = self.guard.release_update(config, request, steps, work)
        self._remember(config, request, reply, steps)
        sparse = (
            config.federation.updates == "auto" and config.privacy.unit == "none" and not config.task_options.named_rows
        )
        return compress_reply(reply) if sparse else reply

    def _remember(self, config: RunConfig, request: TrainRequest, reply: TrainReply, steps: int) -> None:
        """Keep what left, where a method needs that; without noise the training kept it."""
        if config.privacy.unit == "none" or request.phase != LOCAL:
            return
        run, trainer = self._find(request.enrolment).run, build_trainer(config.method_options)
        released = trainer.released(reply.update, reply.gradient, steps)
        if released and (memory := self.store.load(run)).round == request.round:
            groups = {key: {**memory.groups.get(key, {}), **kept} for key, kept in released.items()}
            self.store.save(run, replace(memory, groups={**memory.groups, **groups}))

    def member(self, request: TrainRequest) -> Participant:
        """This client as one of a cohort that trains together."""
        enrolled = self._find(request.enrolment)
        check_like(request.model, parameters(enrolled.learner.module), "the server's model")
        steps = self.policy.local_steps(enrolled.config.method_options.steps(request.phase))
        noise = self.guard.admit(enrolled.config, request, steps)
        request = replace(request, statics=self._others(enrolled, request.statics))
        about = (self.client, enrolled.run, enrolled.config.seed, enrolled.learner, self.store)
        return Participant(*about, request, steps, noise)

    def evaluate(self, request: EvaluateRequest) -> EvaluateReply:
        """Metrics of the global model here, if they may leave; the finished model is kept for the client's own use."""
        enrolled, untold = self._find(request.enrolment), EvaluateReply(request.round, {}, {})
        shares = self.policy.shares_metrics(enrolled.config.privacy)
        if not shares and not request.final:
            return untold
        check_like(request.model, parameters(enrolled.learner.module), "the server's model")
        if request.final:
            self.store.write(enrolled.run, MODEL, save({**request.model, **request.statics}))
        if shares:
            return self._measured(enrolled, request)
        run_or_zeros(partial(self._measured, enrolled, request), lambda: untold)  # makes the model its own all the same
        return untold

    def _measured(self, enrolled: Enrolled, request: EvaluateRequest) -> EvaluateReply:
        statics = self._others(enrolled, request.statics)
        learner, chosen = enrolled.learner, enrolled.config.method_options
        asked = TrainRequest(request.round, request.enrolment, request.model, statics=statics, phase=ADAPT)
        about = (self.client, enrolled.run, enrolled.config.seed, learner, self.store)
        member = Participant(*about, asked, self.policy.local_steps(chosen.steps(ADAPT)))
        metrics, weights = measured(chosen, learner, member, request.split, final=request.final)
        return EvaluateReply(request.round, metrics, weights)

    def config(self, enrolment: str) -> RunConfig:
        """Configuration of a run this client enrolled in."""
        return self._find(enrolment).config

    def _find(self, enrolment: str) -> Enrolled:
        known = self._enrolled.get(enrolment)
        return known or self._open(enrolment, accepted(self.store, enrolment))

    def _open(self, enrolment: str, request: EnrolRequest) -> Enrolled:
        self.policy.check_names(*names_in(request.config))
        config = from_json(request.config)
        self.policy.check(config)
        check_same_run(self.store, request.run, config)
        names = _vocabulary(config.task, request.catalogue)
        try:
            learner = self._build_learner(config, names)
        except DataError as error:
            self._unfit = {enrolment: time.monotonic() + LOOK_AGAIN}
            raise RefusedError(UNFIT) from error
        self._enrolled = {enrolment: Enrolled(request.run, config, names, learner)}
        return self._enrolled[enrolment]


def _suits(learner: Learner, model: Arrays, statics: Arrays, *, obeys: bool) -> float:
    """How little a model suits the client: its training loss, or how far it is from obeying the client's property."""
    loss = training_loss(learner, model, statics)
    return learner.violation(model) + TIE * loss if obeys and isinstance(learner, HasProperty) else loss
