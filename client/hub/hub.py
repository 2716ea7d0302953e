"""Hub: one node that answers for several clients.

Each has its own data, policy, ledger, state and name.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
from flwr.app import Message

from client.app import decode_request, dispatch
from client.hub.state import flush_all
from client.node.flower import failure, failure_reply, log
from client.session import Session, cohorts
from client.trainers.registry import build_trainer
from client.training.local_round import train
from client.training.participant import Participant, split_cohort
from common.arrays import Arrays, norm
from common.config.parse import reason_for_replies
from common.config.run import RunConfig
from common.contribution import GRADIENT, UPDATE, Contribution, Lengths, Member, find_doubtful, rows_of_lengths, typical
from common.errors import RefusedError, RunError, WireError
from common.methods.base import MethodOptions
from common.wire.codec import encode
from common.wire.encodings import unpack_reply
from common.wire.hubs import Answer, SumBlob, addressees, asks_for_sums, join_answers, write_sum
from common.wire.messages import LOCAL, EnrolReply, HelperReply, HelperRequest, Payload, TrainReply, TrainRequest
from common.wire.sparse_rows import expand_reply, numbers_of

Cohort = Sequence[tuple[str, Participant]]
"""Clients that train together, with their names."""

TrainCohorts = Callable[[MethodOptions, Sequence[Cohort]], Iterable[Sequence[TrainReply | Exception]]]
"""Returns the outcome of each client of each cohort, or raises a RunError and changes no state."""


def split(ready: list[tuple[str, Participant]], together: int) -> Iterator[Cohort]:
    """Yield cohorts of clients with equal steps and data of similar size, which need little padding."""
    ready.sort(key=lambda pair: (pair[1].steps, pair[1].learner.size))
    for _, equal in groupby(ready, key=lambda pair: pair[1].steps):
        yield from split_cohort(list(equal), lambda pair: pair[1].learner, together)


ALONE = RefusedError("sums alone may have this client's update, and it would be alone, or is far longer than others")


class HubSum:
    """Sum over the clients of a hub that answer one request.

    `reference` are the typical lengths of the hub's last sum. Updates of `sums_only` leave the hub inside a sum with another
    one, or not at all.
    """

    def __init__(self, request: TrainRequest, reference: Lengths, sums_only: Collection[str] = ()) -> None:
        self._request, self._reference, self._sums_only = request, reference, sums_only
        self._total = Contribution()

    @property
    def lengths(self) -> list[Lengths]:
        """Lengths of each reply in the sum."""
        return [member.lengths for member in self._total.members]

    def add(self, config: RunConfig, replies: Mapping[str, TrainReply]) -> dict[str, TrainReply | RefusedError]:
        """Add the replies of clients that trained together; return what each of them sends.

        A reply that the server may leave out is sent as it is, or refused if sums alone may have it.
        """
        if not replies:
            return {}
        encoding, like = (
            config.federation.encoding,
            build_trainer(config.method_options).template(config.task, self._request),
        )
        whole = {name: unpack_reply(reply, encoding) for name, reply in replies.items()}
        if not config.keeps_rows:
            whole = {name: expand_reply(reply, like) for name, reply in whole.items()}
        lengths = {UPDATE: np.array([norm(numbers_of(reply.update)) for reply in whole.values()])}
        if any(reply.gradient for reply in whole.values()):
            lengths[GRADIENT] = np.array([norm(reply.gradient) for reply in whole.values()])
        limits = np.full(len(whole), config.federation.norm_bound)
        losses = np.array([reply.loss for reply in whole.values()])
        doubtful = {*find_doubtful(self._reference, limits, lengths, losses)}
        sent: dict[str, TrainReply | RefusedError] = {}
        for k, ((name, reply), lengths_of_reply) in enumerate(
            zip(whole.items(), rows_of_lengths(lengths), strict=True)
        ):
            if k in doubtful:
                sent[name] = ALONE if name in self._sums_only else replies[name]
            else:
                self._add(config, like, name, reply, lengths_of_reply)
                sent[name] = replace(reply, update={}, gradient={})
        return sent

    def refuse_alone(self) -> dict[str, RefusedError]:
        """Remove a sum with the update of one client alone, if sums alone may have it; return its error."""
        names = [member.name for member in self._total.members]
        if len(names) != 1 or names[0] not in self._sums_only:
            return {}
        self._total = self._total.empty()
        return {names[0]: ALONE}

    def blob(self) -> SumBlob | None:
        """Return the sum; None if it has no clients."""
        if not self._total:
            return None
        return SumBlob(tuple(member.name for member in self._total.members), write_sum(self._total))

    def _add(self, config: RunConfig, like: Arrays, name: str, reply: TrainReply, lengths: Lengths) -> None:
        if not self._total:
            capabilities, tables = config.capabilities, like if config.keeps_rows else None
            self._total = Contribution(
                per_step=capabilities.per_step, magnitude=capabilities.needs_magnitude, tables=tables
            )
        weight = config.method_options.weight(reply.examples, config.secure_sums.most_examples)
        self._total.add(Member(name, weight, reply.steps, reply.loss, lengths), reply.update, reply.gradient)


WRITERS = 16
"""Number of ledgers that are written at a time: the waits for the disk overlap."""

GONE = WireError("this hub does not host such a client")


SUMS_ONLY = "this client's owner lets a hub send its update inside sums alone"


class Hub:
    """Clients of one node; each answers as it would on a node of its own.

    Args:
        sessions: Clients by their names at the hub.
        together: Largest number of clients that train stacked; 1 gives the bits of single clients.
        sums_only: Clients whose update leaves the hub inside a sum with another one, or not at all.
        workers: Training of cohorts in other processes; None trains them one after another in this one.
    """

    def __init__(
        self,
        sessions: Mapping[str, Session],
        together: int,
        sums_only: Collection[str] = (),
        workers: TrainCohorts | None = None,
    ) -> None:
        self.sessions, self._together, self._sums_only = dict(sessions), together, frozenset(sums_only)
        self._workers = workers
        self._typical: tuple[str, Lengths] = "", {}

    def respond(self, message: Message) -> Message:
        """Return the answers of the clients that a message is for; a failure of all is an answer too."""
        try:
            names, request = addressees(message.content) or [*self.sessions], decode_request(message)
            total = self._open_sum(message, request)
            if isinstance(request, HelperRequest):
                return Message(encode(HelperReply(card="")), reply_to=message)
            answers = self.answer(message.metadata.message_type, request, names, total)
            return Message(join_answers(answers, total.blob() if total else None), reply_to=message)
        except Exception as error:
            return failure_reply(message, error)

    def answer(
        self, kind: str, request: Payload, names: Sequence[str], total: HubSum | None = None
    ) -> dict[str, Answer]:
        """Return each client's answer to one request; `total` takes the arrays of training replies."""
        here = {name: self.sessions[name] for name in names if name in self.sessions}
        if isinstance(request, TrainRequest):
            answers = self._train(kind, request, here, total)
        else:
            names_in_order = (name for cohort in cohorts(here, request, self._together) for name in cohort)
            answers = {name: _attempt(kind, partial(self._reply, name, request)) for name in names_in_order}
        return {name: answers[name] if name in answers else failure(kind, GONE) for name in names}

    def _open_sum(self, message: Message, request: Payload) -> HubSum | None:
        """Return the sum of a request that asks for one.

        Clients that train one by one send single replies, which have the bits of single nodes.
        """
        if not isinstance(request, TrainRequest) or self._together == 1 or not asks_for_sums(message.content):
            return None
        enrolment, lengths = self._typical
        return HubSum(request, lengths if enrolment == request.enrolment else {}, self._sums_only)

    def _reply(self, name: str, request: Payload) -> Payload:
        reply = dispatch(self.sessions[name], request)
        enrolment = reply.enrolment if isinstance(reply, EnrolReply) and name in self._sums_only else ""
        if enrolment and (reason := reason_for_replies(self.sessions[name].config(enrolment))):
            raise RefusedError(f"{SUMS_ONLY}, and this run needs single ones: {reason}")
        return reply

    def _participant(self, name: str, request: TrainRequest, total: HubSum | None) -> Participant:
        if total is None and name in self._sums_only:
            raise RefusedError(SUMS_ONLY)
        return self.sessions[name].participant(request)

    def _train(
        self, kind: str, request: TrainRequest, sessions: Mapping[str, Session], total: HubSum | None
    ) -> dict[str, Answer]:
        """Train in cohorts; see `split`."""
        answers: dict[str, Answer] = {}
        ready: list[tuple[str, Participant]] = []
        for name in sessions:
            try:
                ready.append((name, self._participant(name, request, total)))
            except Exception as error:
                answers[name] = failure(kind, error)
        cohorts = [*split(ready, self._together)]
        for cohort, outcomes in zip(cohorts, self._outcomes_of(cohorts), strict=True):
            released = self._release(cohort, outcomes, encodes=total is None)
            released |= flush_all({name: sessions[name].store for name, _ in cohort})
            replies = {name: reply for name, reply in released.items() if isinstance(reply, TrainReply)}
            if total and replies:
                released |= total.add(sessions[cohort[0][0]].config(request.enrolment, request.round), replies)
            answers |= {name: _answer(kind, outcome) for name, outcome in released.items()}
        if total:
            answers |= {name: failure(kind, error) for name, error in total.refuse_alone().items()}
            self._typical = request.enrolment, typical(total.lengths)
        return answers

    def _release(
        self, cohort: Cohort, outcomes: Sequence[TrainReply | Exception], *, encodes: bool
    ) -> dict[str, TrainReply | Exception]:
        """Return what leaves each client of a trained cohort; its ledgers wait for the disk together."""

        def release(member: tuple[tuple[str, Participant], TrainReply | Exception]) -> TrainReply | Exception:
            (name, participant), outcome = member
            try:
                return _release(self.sessions[name], participant, outcome, encodes=encodes)
            except Exception as error:
                return error

        names, members = [name for name, _ in cohort], [*zip(cohort, outcomes, strict=True)]
        if not any(participant.reservation for _, participant in cohort):
            return dict(zip(names, map(release, members), strict=True))
        with ThreadPoolExecutor(WRITERS) as writers:
            return dict(zip(names, writers.map(release, members), strict=True))

    def _outcomes_of(self, cohorts: Sequence[Cohort]) -> Iterable[Sequence[TrainReply | Exception]]:
        """Return the outcomes of all cohorts; steps with noise, which is charged first, run in this process."""
        is_plain = all(p.noise is None and p.request.phase == LOCAL for cohort in cohorts for _, p in cohort)
        if self._workers and len(cohorts) > 1 and is_plain:
            try:
                return self._workers(self._options(cohorts[0]), cohorts)
            except RunError as error:
                log.warning("%s; this process trains its clients", str(error).partition(";")[0])
        return map(self._outcomes, cohorts)

    def _options(self, cohort: Cohort) -> MethodOptions:
        (name, participant), *_ = cohort
        return self.sessions[name].config(participant.request.enrolment, participant.request.round).method_options

    def _outcomes(self, cohort: Cohort) -> Sequence[TrainReply | Exception]:
        """Return each participant's reply or error; if a cohort fails, its participants train one by one."""
        try:
            return train(self._options(cohort), [participant for _, participant in cohort])
        except Exception as error:
            return [error] if len(cohort) == 1 else [self._outcomes([one])[0] for one in cohort]


def _release(
    session: Session, participant: Participant, outcome: TrainReply | Exception, *, encodes: bool
) -> TrainReply:
    """Return the reply that leaves the client; one that is added up needs no encoding."""
    if encodes or not session.passes_unchanged(participant):
        return session.release(participant, partial(_result, outcome))
    return _result(outcome)


def _result(outcome: TrainReply | Exception) -> TrainReply:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _answer(kind: str, outcome: Payload | Exception) -> Answer:
    return failure(kind, outcome) if isinstance(outcome, Exception) else encode(outcome)


def _attempt(kind: str, work: Callable[[], Payload]) -> Answer:
    try:
        return encode(work())
    except Exception as error:
        return failure(kind, error)
