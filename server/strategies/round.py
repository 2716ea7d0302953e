"""The round, once for all methods: enrol, sample, encode, sort out failures, decode, weigh; the only user of the Grid.

A paper's strategy overrides `update`, and `shared` if it broadcasts more than the model.
"""

import logging
import math
from collections.abc import Iterable

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from common.errors import QuorumError, WireError
from common.wire.codec import decode, encode, to_record
from common.wire.messages import EVALUATE, LOCAL, TRAIN, EvaluateReply, EvaluateRequest, TrainReply, TrainRequest
from common.wire.sparse_rows import expand_reply
from server.evaluation import summarize
from server.planning.arms import SLACK
from server.roster import EnrolledClient
from server.sampling import cohort
from server.state import Trained
from server.strategies.base import StrategyBase
from server.strategies.replies import Reply, ReplyTerms, check, content_of, rows_alone, rows_named, sort_out

log = logging.getLogger("fedloom.server")


class RoundStrategy(StrategyBase):
    """Flower's strategy with the verbs of a round filled in."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask this round's cohort to train."""
        able = self.enrolment.gather(grid, self.config.federation.min_replies)
        due = self.cost * self.releases * (1 - SLACK)
        able = {name: client for name, client in able.items() if due <= client.budget}
        federation, number = self.config.federation, self.state.round + 1
        chosen = cohort(self.config.seed, number, able, federation.cohort, federation.min_replies)
        self._ask = grid.send_and_receive
        self.prepare({name: able[name] for name in chosen}, self._ask, training=True)
        made: dict[tuple[str, int, int, tuple[str, ...]], RecordDict] = {}
        return [self._message(able[name], TRAIN, self._content_for(able[name], made)) for name in chosen]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Take one server step from what came back.

        Raises:
            QuorumError: Fewer usable replies than `federation.min-replies`.
        """
        usable, rejected = self._sort(replies)
        needed = self.config.federation.min_replies
        if len(usable) < needed:
            reasons = "".join(f"; {name}: {reason}" for name, reason in sorted(rejected.items()))
            raise QuorumError(f"round {self.state.round + 1}: {len(usable)} usable replies, {needed} needed{reasons}")
        shared = {name: a for name, a in self.state.model.items() if not self.task.is_client_only(name)}
        self.named = [reply.rows for reply in usable]
        moved, memory = self.update(self.state.memory, shared, rows_alone(usable))
        model = self.polish({**self.state.model, **moved}, usable)
        self.state = self.state.next(model, memory, [r.client for r in usable])
        hidden = self.cost > 0  # a reply with noise tells no loss
        loss = math.nan if hidden else sum(r.weight * r.train.loss for r in usable) / sum(r.weight for r in usable)
        self._on_trained(Trained(self.state, loss, rejected, self.diagnostics(memory), self.groups()))
        return to_record(model), MetricRecord({} if hidden else {"loss": loss})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask every client for metrics, in rounds that evaluate."""
        number, final = self.state.round, self.over or self.state.round == self.config.rounds
        if number % self.config.evaluate_every and not final:
            return []
        held_out = not final and self.config.task_options.validation_share > 0
        split = "validation" if held_out else "test"
        able = self.enrolment.roster.select_trainable(grid.get_node_ids())
        self.prepare(able, grid.send_and_receive, training=False)
        made: dict[tuple[str, int, tuple[str, ...]], RecordDict] = {}
        messages = []
        for name, client in sorted(able.items()):
            statics = self.statics_for(name)
            key = client.enrolment, self.group_of(name), tuple(statics)
            if key not in made:
                model = self.model_for(name)
                made[key] = encode(EvaluateRequest(number, client.enrolment, model, split, statics, final))
            messages.append(self._message(client, EVALUATE, made[key]))
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Weigh the clients' metrics."""
        answered: dict[str, EvaluateReply] = {}
        for message in replies:
            name = self.enrolment.roster.name(message.metadata.src_node_id)
            try:
                answered[name] = decode(EvaluateReply, content_of(message))
            except WireError as error:
                log.warning("%s: left out of the evaluation: %s", name, error)
        evaluation = summarize(answered)
        self._on_evaluated(self.state.round, evaluation)
        return MetricRecord(dict(evaluation.metrics)) if evaluation.metrics else None

    def conclude(self, grid: Grid) -> None:
        """Measure the model and hand it out, where a run ends before its last round."""
        self.over = True
        messages = self.configure_evaluate(self.state.round, ArrayRecord(), ConfigRecord(), grid)
        self.aggregate_evaluate(self.state.round, grid.send_and_receive(messages))

    def summary(self) -> None:
        """Say which method runs (Flower calls this at the start)."""
        log.info("%s with %s", type(self).__name__, self.config.method_options)

    def _content_for(
        self, client: EnrolledClient, made: dict[tuple[str, int, int, tuple[str, ...]], RecordDict]
    ) -> RecordDict:
        """Clients that need the same share one encoded request, which nobody changes."""
        last = self.state.counted.get(client.name, 0)
        key = client.enrolment, last, self.group_of(client.name), tuple(self.statics_for(client.name))
        if key not in made:
            made[key] = encode(self._request(client, last))
        return made[key]

    def _request(self, client: EnrolledClient, last: int) -> TrainRequest:
        return TrainRequest(
            round=self.state.round + 1,
            enrolment=client.enrolment,
            model=self.model_for(client.name),
            shared=self.shared(self.state.memory, last),
            shared_round=last,
            statics=self.statics_for(client.name),
            cost=self.cost,
            clip=self.clip,
        )

    def _message(self, client: EnrolledClient, kind: str, content: RecordDict) -> Message:
        return Message(
            content, client.node, kind, ttl=self.config.federation.deadline, group_id=str(self.state.round + 1)
        )

    def _sort(self, messages: Iterable[Message], phase: str = LOCAL) -> tuple[list[Reply], dict[str, str]]:
        """Usable replies in the order of names, and why the others are not; who failed is invited anew next round."""
        roster = self.enrolment.roster
        usable, failed = sort_out(messages, roster.name, lambda name, reply: self._checked(name, reply, phase))
        return usable, {roster.leave(node): reason for node, reason in failed.items()}

    def _checked(self, name: str, reply: TrainReply, phase: str) -> Reply:
        options, wanted = self.config.method_options, self.wanted(self.model_for(name))
        terms = ReplyTerms(self.state.round + 1, options.steps(phase), wanted, self.capabilities.needs_gradient)
        rows = rows_named(reply.update) if self.config.task_options.named_rows else {}
        reply = expand_reply(reply, wanted)
        check(reply, terms)
        return Reply(name, 1.0 if options.weighting == "uniform" else float(reply.examples), reply, rows)
