"""Secure sums of the metrics of clients."""

import logging
from collections.abc import Iterable

from flwr.app import Message

from common.config.run import RunConfig
from common.errors import WireError
from common.secure.layout import SumLayout
from common.secure.terms import SumTerms
from common.tasks.registry import TASKS
from common.tasks.summed_metrics import summed_metrics
from common.text import count, printable
from common.wire.codec import decode
from common.wire.messages import EvaluateReply
from server.aggregation.metrics import Evaluation, MetricSum, PairedSums, split_alone
from server.clients.enrolment import Enrolment
from server.exchange.grid import content_of
from server.secure.sums import HelperSums, Release, SumLostError, TooFewUploadsError, Total, Upload

log = logging.getLogger("fedloom.server")

CHANNEL = "evaluate"
"""Channel of the sums of metrics.

Its numbers are those of evaluations, and 0 for the only one with noise.
"""


class MetricSums:
    """Metrics of models as plain means over clients, from secure sums."""

    def __init__(self, config: RunConfig, sums: HelperSums) -> None:
        self._sums, self._has_noise, self._rho = sums, config.privacy.unit != "none", config.metric_cost
        self._metrics = summed_metrics(TASKS[config.task], noised=self._has_noise)
        self._terms: SumTerms | None = None

    @property
    def is_announced(self) -> bool:
        """True if the last evaluation has the terms of a sum."""
        return self._terms is not None

    @property
    def largest(self) -> int:
        """Largest size of a reply in the announced sum in bytes; 0 without one."""
        return self._sums.limit(self._terms) if self._terms else 0

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
        number = 0 if self._has_noise else self._sums.store.next_number(CHANNEL)
        self._sums.renew(number, CHANNEL)
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
                reply = decode(EvaluateReply, content_of(message))
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
        self._sums.store.clear(self._terms.round, CHANNEL)
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
