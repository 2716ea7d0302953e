"""Round of all methods: enrol, sample the cohort, encode requests, check replies, aggregate.

A method's strategy overrides `update`, and `broadcast` if clients need more than the model.
"""

import logging
import math
from collections.abc import Iterable, Mapping
from functools import partial

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from common.errors import QuorumError
from common.wire.codec import encode, to_record
from common.wire.messages import LOCAL, TRAIN, TrainReply, TrainRequest
from common.wire.sparse_rows import expand_reply
from server.planning.arms import SLACK
from server.plausible import MAX_EXAMPLES, limit_reply
from server.roster import EnrolledClient
from server.sampling import cohort
from server.state import Trained
from server.strategies.evaluation import EvaluatedStrategy, RequestKey
from server.strategies.replies import (
    ExpectedReply,
    Reply,
    average_by_row,
    check_reply,
    read_row_ids,
    split_replies,
)

log = logging.getLogger("fedloom.server")


class RoundStrategy(EvaluatedStrategy):
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

    def _split(self, messages: Iterable[Message], phase: str = LOCAL) -> tuple[list[Reply], dict[str, str]]:
        """Return usable replies, ordered by client name, and client -> reason for failures.

        Failed clients leave the roster and are invited again in the next round.
        """
        roster, limit = self.enrolment.roster, limit_reply(self.state.model)
        accept = partial(self._accept, phase, {c.name: c.examples for c in roster.clients.values()})
        usable, failed = split_replies(messages, roster.name, accept, limit)
        return usable, {roster.leave(node): reason for node, reason in failed.items()}

    def _accept(self, phase: str, enrolled: Mapping[str, int], name: str, reply: TrainReply) -> Reply:
        options, template = self.config.method_options, self.select_uploaded(self.model_for(name))
        expected = ExpectedReply(
            round=self.state.round + 1,
            max_steps=options.steps(phase),
            max_examples=enrolled.get(name, MAX_EXAMPLES),
            task=self.task,
            model=template,
            needs_gradient=self.capabilities.needs_gradient,
        )
        rows = read_row_ids(reply.update) if self.config.task_options.named_rows else {}
        reply = expand_reply(reply, template)
        check_reply(reply, expected)
        return Reply(name, 1.0 if options.weighting == "uniform" else float(reply.examples), reply, rows)
