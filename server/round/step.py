"""Server step from checked replies, which is taken back if it spoils the model."""

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from common.arrays import Arrays, all_finite
from common.errors import QuorumError
from common.wire.sparse_rows import expand
from server.aggregation.blocks import are_folded, collect, select_whole
from server.aggregation.lengths import find_outliers
from server.aggregation.metrics import Evaluation
from server.aggregation.results import Collected, Replies, Reply
from server.aggregation.robust import robust_replies
from server.round.checks import average_by_row
from server.round.intake import IntakeStrategy
from server.round.method import RoundParts
from server.round.state import RunState, Trained

log = logging.getLogger("fedloom.server")


class StepStrategy(IntakeStrategy):
    """Base of strategies that step from the replies of a round."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        self._find_explosion = parts.find_explosion
        self._before: RunState | None = None
        self._trained: Trained | None = None
        self._replies: list[Reply] = []
        self._grid: Grid | None = None
        self._unusable, self._can_exclude = dict[str, str](), False

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the weighted means of the clients' metrics, after taking back a step that ruined the model."""
        evaluation = self._summarize(replies)
        if self._trained is not None and not self.cost and not self.is_on_test:  # noise may ruin a model, too
            evaluation = self._retry(evaluation)
        self._before, self._trained, self._replies, self._unusable = None, None, [], {}
        self._on_evaluated(self.state.round, evaluation)
        return MetricRecord(dict(evaluation.metrics)) if evaluation.metrics else None

    def can_exclude(self, grid: Grid) -> bool:
        """Return True if the clients without unusable replies in a failed round make a quorum."""
        clients = self.enrolment.roster.select_trainable(grid.get_node_ids())
        others = [name for name in clients if not self.state.guard.sits_out(name, self.state.round + 1)]
        return self._can_exclude and len(others) >= self.config.federation.min_replies

    def _advance(self, usable: list[Reply], rejected: dict[str, str]) -> list[Reply]:
        """Make the server step, without the longest updates if it is not finite; return the replies in it.

        Raises:
            QuorumError: Fewer usable replies than `federation.min-replies`; the senders of others sit out this round.
        """
        self._before, blamed = self.state, list[str]()
        while True:
            usable = select_whole(usable, rejected, self.select_uploaded(self.state.model), self.capabilities)
            self._require_quorum(usable, rejected)
            with np.errstate(over="ignore", invalid="ignore"):
                state = self._next_state(usable)
            if all_finite(state.model) and all(map(all_finite, state.memory.values())):
                break
            longest = max(usable, key=lambda reply: reply.lengths["update"])
            rejected[longest.client] = self._blame("the step with its update is not finite", self.state.round + 1)
            blamed.append(longest.client)
            usable = [reply for reply in usable if reply is not longest]
        guard = state.guard.record(self._noise, self._typical)
        self.state = replace(state, guard=guard.exclude(blamed, self._end_of_penalty(state.round)))
        self._replies = usable
        return usable

    def _next_state(self, usable: list[Reply]) -> RunState:
        shared = {name: a for name, a in self.state.model.items() if not self.task.is_client_only(name)}
        self.row_ids = [reply.rows for reply in usable]
        updated, memory = self.update(self.state.memory, shared, self._collect(usable, self.select_uploaded(shared)))
        names = [reply.client for reply in usable]
        return self.state.next(self.refine({**self.state.model, **updated}, names), memory, names)

    def _collect(self, usable: list[Reply], model: Arrays) -> Collected:
        per_step = self.capabilities.per_step
        if are_folded(usable):
            return collect(usable, per_step=per_step, with_magnitude=self.capabilities.needs_magnitude)
        return Replies(self.combine(usable), per_step, model if self.config.task_options.gathers_rows else None)

    def combine(self, usable: list[Reply]) -> list[Reply]:
        """Return replies whose weighted mean is the aggregate by `federation.robust`."""
        federation = self.config.federation
        return robust_replies(average_by_row(usable), federation.robust, federation.attackers, self.group_of)

    def _report(self, usable: list[Reply], rejected: dict[str, str]) -> float:
        """Record the step and return its training loss; noisy replies have none."""
        weight = sum(r.weight for r in usable)
        loss = math.nan if self.cost > 0 or not usable else sum(r.weight * r.train.loss for r in usable) / weight
        numbers = self.diagnostics(self.state.memory) if usable else {"taken_back": 1.0}
        shortened = {r.client: self._shortened[r.client] for r in usable if r.client in self._shortened}
        self._trained = Trained(self.state, loss, rejected, numbers, self.groups(), self._unusable, shortened)
        self._on_trained(self._trained)
        return loss

    def _retry(self, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of the step, or of the one without outliers if its validation loss exploded.

        If that one fails as well, no client is to blame: the model before the step stays. It also stays if the round has
        sums in place of single updates, among which no outlier can be found.
        """
        reason, before, trained = self._find_explosion(evaluation), self._before, self._trained
        if not reason or before is None or trained is None or self._grid is None:
            return evaluation
        log.warning("round %d is taken back: %s", self.state.round, reason)
        after, number = self.state, self.state.round
        single = [] if are_folded(self._replies) else self._replies
        outliers = find_outliers({r.client: partial(_expand, r, before.model) for r in single})
        kept = [reply for reply in self._replies if reply.client not in outliers]
        rejected = {**trained.rejected, **dict.fromkeys(outliers, self._blame(reason, number))}
        if outliers and len(kept) >= self.config.federation.min_replies:
            self.state = before
            kept = self._advance(kept, rejected)
            self.state = replace(self.state, guard=self.state.guard.exclude(outliers, self._end_of_penalty(number)))
            self._report(kept, rejected)
            evaluation = self._evaluate_again(self._grid)
            if not self._find_explosion(evaluation):
                return evaluation
        self.state = replace(before, round=number, guard=after.guard)
        self._report([], trained.rejected)
        return self._evaluate_again(self._grid)

    def _evaluate_again(self, grid: Grid) -> Evaluation:
        messages = self.configure_evaluate(self.state.round, ArrayRecord(), ConfigRecord(), grid)
        return self._summarize(grid.send_and_receive(messages))

    def _require_quorum(self, usable: list[Reply], rejected: Mapping[str, str]) -> None:
        quorum = self.config.federation.min_replies
        if len(usable) < quorum:
            self.state = replace(self.state, guard=self.state.guard.exclude(rejected, self.state.round + 1))
            self._can_exclude = not rejected.keys() <= self._unusable.keys()
            self._unusable |= rejected
            reasons = "".join(f"; {name}: {reason}" for name, reason in sorted(rejected.items()))
            raise QuorumError(f"round {self.state.round + 1}: {len(usable)} usable replies, {quorum} needed{reasons}")

    def _end_of_penalty(self, number: int) -> int:
        return number + self.config.federation.penalty

    def _blame(self, reason: str, number: int) -> str:
        penalty = f"; sits out until round {self._end_of_penalty(number)}" if self.config.federation.penalty else ""
        return f"{reason}{penalty}"


def _expand(reply: Reply, model: Arrays) -> Arrays:
    return expand(reply.update, model)
