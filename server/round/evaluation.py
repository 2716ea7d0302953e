"""Evaluation of models by all clients: requests, checks of the replies, and their means."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from flwr.app import Message

from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import WireError
from common.tasks.registry import TASKS
from common.text import printable
from common.wire.codec import decode
from common.wire.messages import EvaluateReply, EvaluateRequest
from server.aggregation.metrics import Evaluation, summarize
from server.clients.enrolment import Enrolment
from server.clients.roster import EnrolledClient, cohort
from server.exchange.grid import content_of
from server.round.checks import SMALL_REPLY, check_metrics, check_paired, limit_weight
from server.round.method import Assignment, RoundContext

log = logging.getLogger("fedloom.server")

MEASURED = 1
"""Stream of the draw of the clients that measure a round."""


class MetricIntake(Protocol):
    """Secure sum of metrics, in place of the clients' own ones."""

    @property
    def is_announced(self) -> bool:
        """True if the last evaluation has the terms of a sum."""

    @property
    def largest(self) -> int:
        """Largest size of a reply in the announced sum in bytes."""

    def announce(self, clients: int, *, last: bool) -> str:
        """Return the terms of the next evaluation's sum over at most so many clients; empty without one."""

    def evaluate(self, replies: Iterable[Message], enrolment: Enrolment) -> Evaluation:
        """Return the metrics of the announced sum."""


class Evaluator:
    """Evaluation of a run's models.

    Without `sums`, clients send their own metrics.
    """

    def __init__(
        self, config: RunConfig, enrolment: Enrolment, assignment: Assignment, sums: MetricIntake | None = None
    ) -> None:
        self._config, self._enrolment, self._assignment, self._sums = config, enrolment, assignment, sums
        self._task, privacy = TASKS[config.task], config.privacy
        self._hides_examples = privacy.unit != "none" or privacy.resolved_trust == "helpers"

    @property
    def largest(self) -> int:
        """Largest size of a reply to the last requests in bytes."""
        return self._sums.largest if self._sums and self._sums.is_announced else SMALL_REPLY

    def select(
        self, at: RoundContext, online: Iterable[int], *, final: bool, one_model: bool
    ) -> dict[str, EnrolledClient]:
        """Return the clients that evaluate: all of a final model, else a drawn share."""
        clients = self._enrolment.roster.select_trainable(online)
        if final:
            return clients
        state = at.state
        clients = state.reply_memory.without_excluded(clients, state.round)
        if one_model or self._sums is not None:
            return clients
        drawn = cohort(self._config.seed, state.round, clients, self._config.federation.evaluate_share, 1, MEASURED)
        return {name: clients[name] for name in drawn}

    def requests(
        self,
        at: RoundContext,
        clients: Mapping[str, EnrolledClient],
        split: str,
        *,
        final: bool,
        model: Arrays | None,
        number: int,
    ) -> Callable[[EnrolledClient], EvaluateRequest]:
        """Return the evaluation request of each client, the same object for equal ones.

        Args:
            at: The round.
            clients: Clients that are asked.
            split: `validation` or `test`.
            final: True if clients store the model as the finished one.
            model: One model for all; None: that of each client.
            number: Round of the model; 0 for the last round.
        """
        is_last, enrolled = final and model is None, len(self._enrolment.roster.clients)
        terms = self._sums.announce(enrolled, last=is_last) if self._sums else ""
        requests: dict[tuple[str, int, tuple[str, ...]], EvaluateRequest] = {}

        def request(client: EnrolledClient) -> EvaluateRequest:
            statics = self._assignment.statics_for(at, client.name)
            key = client.enrolment, self._assignment.group_of(at.state, client.name), tuple(statics)
            if key not in requests:
                sent = self._assignment.model_for(at, client.name) if model is None else model
                of = number or at.state.round
                requests[key] = EvaluateRequest(of, client.enrolment, sent, split, statics, final, terms=terms)
            return requests[key]

        return request

    def summarize(self, replies: Iterable[Message], number: int) -> Evaluation:
        """Return the means over the clients of the model of a round; replies that cannot be honest are named."""
        if self._sums and self._sums.is_announced:
            return self._sums.evaluate(replies, self._enrolment)
        decoded: dict[str, EvaluateReply] = {}
        dropped: dict[str, str] = {}
        enrolled = self._enrolment.roster.by_name()
        for message in replies:
            name = self._enrolment.roster.name(message.metadata.src_node_id)
            try:
                reply = decode(EvaluateReply, content_of(message))
                client = enrolled.get(name)
                records = self._task.records_per_example * (1 if client is None else client.examples)
                is_hidden = self._hides_examples or client is None
                most = limit_weight(records, self._config.task_options.test_share, hides_examples=is_hidden)
                check_metrics(reply, number, self._task, most)
                check_paired(reply.paired, self._task, most)
                decoded[name] = reply
            except WireError as error:
                log.warning("%s: left out of the evaluation: %s", name, printable(str(error)))
                if not message.has_error():  # the exchange has the reasons of errors
                    dropped[name] = f"left out, {error}"
        evaluation = summarize(decoded)
        return replace(evaluation, dropped={**evaluation.dropped, **dropped})
