"""Evaluation of models by all clients: requests, checks of the replies, and their means or secure sums."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from common.arrays import Arrays
from common.config.run import RunConfig, metric_cost
from common.errors import WireError
from common.secure.layout import SumLayout
from common.secure.terms import SumTerms
from common.tasks.registry import TASKS
from common.tasks.summed_metrics import summed_metrics
from common.text import count, printable
from common.wire.codec import decode, encode
from common.wire.messages import EVALUATE, EvaluateReply, EvaluateRequest
from server.aggregation.metrics import Evaluation, MetricSum, PairedSums, split_alone, summarize
from server.clients.enrolment import Enrolment
from server.clients.roster import EnrolledClient, cohort
from server.round.checks import SMALL_REPLY, check_metrics, check_paired, content_of, limit_weight
from server.round.method import RoundParts, StrategyBase
from server.secure.protocol import Release, SumProtocol, Total, Upload
from server.secure.sums import SumLostError, TooFewUploadsError

log = logging.getLogger("fedloom.server")

CHANNEL = "evaluate"
"""Channel of the sums of metrics.

Its numbers are those of evaluations, and 0 for the only one with noise.
"""


class MetricSums:
    """Metrics of models as plain means over clients, from secure sums.

    Args:
        config: Configuration of the run.
        sums: Protocol of the sums.
    """

    def __init__(self, config: RunConfig, sums: SumProtocol) -> None:
        self._sums, self._has_noise, self._rho = sums, config.privacy.unit != "none", metric_cost(config)
        self._metrics = summed_metrics(TASKS[config.task], noised=self._has_noise)
        self._terms: SumTerms | None = None

    @property
    def is_announced(self) -> bool:
        """True if the last evaluation has the terms of a sum."""
        return self._terms is not None

    def announce(self, clients: int, *, last: bool) -> str:
        """Return the terms of the next evaluation's sum over at most so many clients; empty without one.

        Args:
            clients: Number of clients.
            last: True for the evaluation of the run's final model; with noise, its metrics alone are summed.
        """
        self._terms = None
        if not clients or (self._has_noise and not (last and self._rho)):
            return ""
        release = Release(self._rho, self._metrics.clip, "positive") if self._has_noise else Release()
        number = 0 if self._has_noise else self._sums.next_number(CHANNEL)
        self._terms = self._sums.terms(number, CHANNEL, self._metrics.template, clients, release)
        self._sums.admit(self._terms, [])
        return self._terms.to_json()

    def evaluate(self, replies: Iterable[Message], enrolment: Enrolment) -> Evaluation:
        """Return the metrics of the announced sum; none if too few clients share theirs, or the sum is lost.

        Raises:
            QuorumError: A helper does not answer.
        """
        assert self._terms is not None  # announced
        uploads: dict[str, Upload] = {}
        dropped: dict[str, str] = {}
        for message in replies:
            node = message.metadata.src_node_id
            client = enrolment.roster.name(node)
            try:
                reply = decode(EvaluateReply, content_of(message, self._sums.limit(self._terms)))
                if reply.masked and self._rho:
                    enrolment.ledgers.note(node, reply.ledger)
                if reply.masked:
                    uploads[client] = self._sums.upload(reply, self._terms)
            except WireError as error:
                log.warning("%s: left out of the evaluation: %s", client, printable(str(error)))
                if not message.has_error():  # the exchange has the reasons of errors
                    dropped[client] = f"left out, {error}"
        enrolment.ledgers.store()
        uploads = {client: uploads[client] for client in self._sums.admit(self._terms, sorted(uploads))}
        try:
            total = self._sums.total(self._terms, uploads, dropped)
        except (SumLostError, TooFewUploadsError) as lost:
            log.warning(
                "metrics are not summed (%s of %d needed): %s", count(len(uploads), "client"), self._terms.min_sum, lost
            )
            return Evaluation({}, {}, dropped=dropped, summed=MetricSum(clients=0))
        self._sums.forget(self._terms.round, CHANNEL)
        return self._read(total, dropped)

    def _read(self, total: Total, dropped: dict[str, str]) -> Evaluation:
        template, clients = self._metrics.template, len(total.clients)
        arrays = SumLayout.of(template).arrays(total.vector, template)
        alone, metrics = split_alone(self._metrics.means(arrays, total.spread))
        paired = {}
        for key, sums in self._metrics.differences(arrays).items():
            n, sum_, squares, wins, losses = sums.tolist()
            paired[key] = PairedSums(round(n), sum_, max(squares, 0.0), round(wins), round(losses))
        return Evaluation(
            metrics,
            {},
            paired=paired,
            alone=alone,
            dropped={**dropped, **total.rejected},
            summed=MetricSum(clients=clients, noise=total.spread / clients),
        )


RequestKey = tuple[str, int, int, tuple[str, ...], int]
"""Enrolment, last aggregated round, cluster, names of statics, group; equal keys share a request."""


MEASURED = 1
"""Stream of the draw of the clients that measure a round."""


class EvaluatedStrategy(StrategyBase):
    """Base of strategies whose model all clients evaluate."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        self._metric_sums = MetricSums(parts.config, parts.sums) if parts.sums else None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the evaluation requests in rounds that evaluate, to all clients or to a drawn share of them."""
        number, final = self.state.round, self.is_over or self.state.round == self.config.rounds
        if number % self.config.evaluate_every and not final:
            return []
        has_validation = self.config.task_options.validation_share > 0
        held_out, self.is_on_test = has_validation and not final, has_validation and final
        return self._evaluations(grid, "validation" if held_out else "test", final=final)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the weighted means of the clients' metrics."""
        evaluation = self._summarize(replies)
        self._on_evaluated(self.state.round, evaluation)
        return MetricRecord(dict(evaluation.metrics)) if evaluation.metrics else None

    def measure(self, grid: Grid, split: str, model: Arrays, *, final: bool = False, number: int = 0) -> Evaluation:
        """Return metrics of one model for all clients.

        Args:
            grid: Connection to the clients.
            split: `validation` or `test`.
            model: The model.
            final: True if clients store it as the finished model.
            number: Its round, to which clients return with layers of their own; 0 for the last round.
        """
        messages = self._evaluations(grid, split, final=final, model=model, number=number)
        return self._summarize(grid.send_and_receive(messages), number)

    def conclude(self, grid: Grid) -> None:
        """Evaluate the final model of a run that ends before its last round."""
        self.is_over = True
        messages = self.configure_evaluate(self.state.round, ArrayRecord(), ConfigRecord(), grid)
        self.aggregate_evaluate(self.state.round, grid.send_and_receive(messages))

    def _evaluations(
        self, grid: Grid, split: str, *, final: bool, model: Arrays | None = None, number: int = 0
    ) -> list[Message]:
        """Return the evaluation requests, of `model` to all clients or of each asked client's own one."""
        clients = self.enrolment.roster.select_trainable(grid.get_node_ids())
        if not final:
            clients = {n: c for n, c in clients.items() if not self.state.guard.sits_out(n, self.state.round)}
        if not final and model is None and self._metric_sums is None:
            share = self.config.federation.evaluate_share
            drawn = cohort(self.config.seed, self.state.round, clients, share, 1, MEASURED)
            clients = {name: clients[name] for name in drawn}
        if model is None:
            self.prepare(clients, grid.send_and_receive, training=False)
        encoded: dict[RequestKey, RecordDict] = {}
        is_last, enrolled = final and model is None, len(self.enrolment.roster.clients)
        terms = self._metric_sums.announce(enrolled, last=is_last) if self._metric_sums else ""
        messages = []
        for name, client in sorted(clients.items()):
            statics = self.statics_for(name)
            key = client.enrolment, 0, self.group_of(name), tuple(statics), 0
            if key not in encoded:
                sent = self.model_for(name) if model is None else model
                of = number or self.state.round
                encoded[key] = encode(EvaluateRequest(of, client.enrolment, sent, split, statics, final, terms=terms))
            messages.append(self._message(client, EVALUATE, encoded[key]))
        return messages

    def _summarize(self, replies: Iterable[Message], number: int = 0) -> Evaluation:
        """Return the means over the clients; replies that cannot be honest are left out and named."""
        if self._metric_sums and self._metric_sums.is_announced:
            return self._metric_sums.evaluate(replies, self.enrolment)
        decoded: dict[str, EvaluateReply] = {}
        dropped: dict[str, str] = {}
        enrolled = self.enrolment.roster.by_name()
        for message in replies:
            name = self.enrolment.roster.name(message.metadata.src_node_id)
            try:
                reply = decode(EvaluateReply, content_of(message, SMALL_REPLY))
                most = self._max_weight(enrolled.get(name))
                check_metrics(reply, number or self.state.round, self.task, most)
                check_paired(reply.paired, self.task, most)
                decoded[name] = reply
            except WireError as error:
                log.warning("%s: left out of the evaluation: %s", name, printable(str(error)))
                if not message.has_error():  # the exchange has the reasons of errors
                    dropped[name] = f"left out, {error}"
        evaluation = summarize(decoded)
        return replace(evaluation, dropped={**evaluation.dropped, **dropped})

    def _max_weight(self, client: EnrolledClient | None) -> float:
        """Return the largest possible weight of a client's metrics."""
        privacy = self.config.privacy
        hidden = client is None or privacy.unit != "none" or privacy.resolved_trust == "helpers"
        examples = 1 if client is None else client.examples
        records = examples * self.task.records_per_example
        return limit_weight(records, self.config.task_options.test_share, hides_examples=hidden)
