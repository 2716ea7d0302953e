"""Round of all methods: enrol, sample the cohort, encode requests, check replies, aggregate.

A method's strategy overrides `update`, and `broadcast` if clients need more than the model.
"""

import logging
import math
from collections.abc import Iterable

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from common.arrays import Arrays
from common.errors import QuorumError, WireError
from common.text import printable
from common.wire.codec import decode, encode, to_record
from common.wire.messages import EVALUATE, LOCAL, TRAIN, EvaluateReply, EvaluateRequest, TrainReply, TrainRequest
from common.wire.sparse_rows import expand_reply
from server.evaluation import Evaluation, summarize
from server.planning.arms import SLACK
from server.roster import EnrolledClient
from server.sampling import cohort
from server.state import Trained
from server.strategies.base import StrategyBase
from server.strategies.replies import (
    ExpectedReply,
    Reply,
    average_by_row,
    check_reply,
    content_of,
    read_row_ids,
    split_replies,
)

log = logging.getLogger("fedloom.server")

RequestKey = tuple[str, int, int, tuple[str, ...]]
"""Enrolment, last aggregated round, group, names of statics; equal keys share an encoded request."""


class RoundStrategy(StrategyBase):
    """Flower strategy of one round; subclasses implement the server step."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Sample the cohort, and return its training requests.

        Raises:
            BudgetSpentError: The run ends early.
        """
        self.require_progress()
        clients = self.enrolment.gather(grid, self.config.federation.min_replies)
        minimum = self.cost * self.releases * (1 - SLACK)
        clients = {name: client for name, client in clients.items() if minimum <= client.budget}
        federation, number = self.config.federation, self.state.round + 1
        sampled = cohort(self.config.seed, number, clients, federation.cohort, federation.min_replies)
        self._send = grid.send_and_receive
        self.prepare({name: clients[name] for name in sampled}, self._send, training=True)
        encoded: dict[RequestKey, RecordDict] = {}
        return [self._message(clients[name], TRAIN, self._encode_for(clients[name], encoded)) for name in sampled]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Make one server step from the replies.

        Raises:
            QuorumError: Fewer usable replies than `federation.min-replies`.
        """
        usable, rejected = self._split(replies)
        quorum = self.config.federation.min_replies
        if len(usable) < quorum:
            reasons = "".join(f"; {name}: {reason}" for name, reason in sorted(rejected.items()))
            raise QuorumError(f"round {self.state.round + 1}: {len(usable)} usable replies, {quorum} needed{reasons}")
        shared = {name: a for name, a in self.state.model.items() if not self.task.is_client_only(name)}
        self.row_ids = [reply.rows for reply in usable]
        updated, state = self.update(self.state.memory, shared, average_by_row(usable))
        model = self.refine({**self.state.model, **updated}, usable)
        self.state = self.state.next(model, state, [r.client for r in usable])
        is_noisy = self.cost > 0  # noisy replies have no loss
        loss = math.nan if is_noisy else sum(r.weight * r.train.loss for r in usable) / sum(r.weight for r in usable)
        self._on_trained(Trained(self.state, loss, rejected, self.diagnostics(state), self.groups()))
        return to_record(model), MetricRecord({} if is_noisy else {"loss": loss})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the evaluation requests to all clients, in rounds that evaluate."""
        number, final = self.state.round, self.is_over or self.state.round == self.config.rounds
        if number % self.config.evaluate_every and not final:
            return []
        held_out = not final and self.config.task_options.validation_share > 0
        return self._evaluations(grid, "validation" if held_out else "test", final=final)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the weighted means of the clients' metrics."""
        evaluation = self._summarize(replies)
        self._on_evaluated(self.state.round, evaluation)
        return MetricRecord(dict(evaluation.metrics)) if evaluation.metrics else None

    def measure(self, grid: Grid, split: str, model: Arrays, *, final: bool = False) -> Evaluation:
        """Return metrics of one model for all clients; `final`: clients store it as the finished model."""
        messages = self._evaluations(grid, split, final=final, model=model)
        return self._summarize(grid.send_and_receive(messages))

    def conclude(self, grid: Grid) -> None:
        """Evaluate the final model of a run that ends before its last round."""
        self.is_over = True
        messages = self.configure_evaluate(self.state.round, ArrayRecord(), ConfigRecord(), grid)
        self.aggregate_evaluate(self.state.round, grid.send_and_receive(messages))

    def _evaluations(self, grid: Grid, split: str, *, final: bool, model: Arrays | None = None) -> list[Message]:
        """Return the evaluation requests to all clients, of `model` or of each client's own one."""
        clients = self.enrolment.roster.select_trainable(grid.get_node_ids())
        if model is None:
            self.prepare(clients, grid.send_and_receive, training=False)
        encoded: dict[RequestKey, RecordDict] = {}
        messages = []
        for name, client in sorted(clients.items()):
            statics = self.statics_for(name)
            key = client.enrolment, 0, self.group_of(name), tuple(statics)
            if key not in encoded:
                sent = self.model_for(name) if model is None else model
                request = EvaluateRequest(self.state.round, client.enrolment, sent, split, statics, final)
                encoded[key] = encode(request)
            messages.append(self._message(client, EVALUATE, encoded[key]))
        return messages

    def _summarize(self, replies: Iterable[Message]) -> Evaluation:
        decoded: dict[str, EvaluateReply] = {}
        for message in replies:
            name = self.enrolment.roster.name(message.metadata.src_node_id)
            try:
                decoded[name] = decode(EvaluateReply, content_of(message))
            except WireError as error:
                log.warning("%s: left out of the evaluation: %s", name, printable(str(error)))
        return summarize(decoded)

    def summary(self) -> None:
        """Log the method and its options; Flower calls this at the start."""
        log.info("%s with %s", type(self).__name__, self.config.method_options)

    def _encode_for(self, client: EnrolledClient, encoded: dict[RequestKey, RecordDict]) -> RecordDict:
        """Return the encoded request of a client; `encoded` stores it for clients with an equal request."""
        last = self.state.counted.get(client.name, 0)
        key = client.enrolment, last, self.group_of(client.name), tuple(self.statics_for(client.name))
        if key not in encoded:
            encoded[key] = encode(self._request(client, last))
        return encoded[key]

    def _request(self, client: EnrolledClient, last: int) -> TrainRequest:
        return TrainRequest(
            round=self.state.round + 1,
            enrolment=client.enrolment,
            model=self.model_for(client.name),
            shared=self.broadcast(self.state.memory, last),
            shared_round=last,
            statics=self.statics_for(client.name),
            cost=self.cost,
            clip=self.clip,
        )

    def _message(self, client: EnrolledClient, kind: str, content: RecordDict) -> Message:
        return Message(
            content, client.node, kind, ttl=self.config.federation.deadline, group_id=str(self.state.round + 1)
        )

    def _split(self, messages: Iterable[Message], phase: str = LOCAL) -> tuple[list[Reply], dict[str, str]]:
        """Return usable replies, ordered by client name, and client -> reason for failures.

        Failed clients leave the roster and are invited again in the next round.
        """
        roster = self.enrolment.roster
        usable, failed = split_replies(messages, roster.name, lambda name, reply: self._accept(name, reply, phase))
        return usable, {roster.leave(node): reason for node, reason in failed.items()}

    def _accept(self, name: str, reply: TrainReply, phase: str) -> Reply:
        options, template = self.config.method_options, self.select_uploaded(self.model_for(name))
        expected = ExpectedReply(self.state.round + 1, options.steps(phase), template, self.capabilities.needs_gradient)
        rows = read_row_ids(reply.update) if self.config.task_options.named_rows else {}
        reply = expand_reply(reply, template)
        check_reply(reply, expected)
        return Reply(name, 1.0 if options.weighting == "uniform" else float(reply.examples), reply, rows)
