"""One round, composed: price, cohort, requests; intake, checks, server step; evaluation, record.

`Round` is the only Flower strategy here. What differs between runs is in its parts: the method, the intake of replies, the plan
of costs, and the evaluator. `server/compose.py` chooses them.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from common.arrays import Arrays, all_finite, total_of
from common.config.run import RunConfig
from common.errors import BudgetSpentError, PackageError, QuorumError, RefusedError
from common.methods.registry import METHODS
from common.registry import PACKAGE_REMEDY, naming_packages
from common.tasks.registry import TASKS
from common.text import MAX_NAMES, by_reason
from common.wire.codec import encode
from common.wire.messages import EVALUATE, TRAIN, Payload, TrainRequest
from common.wire.sparse_rows import expand
from server.aggregation.alignment import LEVEL, has_majority
from server.aggregation.lengths import find_outliers
from server.aggregation.metrics import LOSS, Evaluation
from server.aggregation.replies import Reply, are_summed
from server.clients.enrolment import Enrolment
from server.clients.roster import EnrolledClient, cohort
from server.exchange.grid import limit_to
from server.round.checks import ASSIGN_REPLY
from server.round.evaluation import Evaluator
from server.round.intake import Intake, Intaken
from server.round.method import Method, RoundContext, Talk, check_step
from server.round.plan import CostPlan, Price
from server.round.state import SUMS, RunState, Trained

log = logging.getLogger("fedloom.server")


@dataclass(frozen=True)
class RoundObserver:
    """Callbacks of a round, for the record of a run.

    Args:
        on_round: Called before each round, with the state after the last one.
        on_trained: Called after each training step.
        on_evaluated: Called after each evaluation.
        on_observed: Called with the state after a planner has observed the round.
        reason_to_stop: Return why the run ends before the next round; empty if it continues.
        find_explosion: Return why the step before an evaluation is taken back; empty if it stays.
    """

    on_round: Callable[[RunState], None] = lambda state: None
    on_trained: Callable[[Trained], None] = lambda trained: None
    on_evaluated: Callable[[int, Evaluation], None] = lambda number, evaluation: None
    on_observed: Callable[[RunState], None] = lambda state: None
    reason_to_stop: Callable[[], str] = lambda: ""
    find_explosion: Callable[[Evaluation], str] = lambda evaluation: ""


@dataclass(frozen=True)
class Step:
    """Server step that its evaluation may take back."""

    at: RoundContext
    results: Intaken
    trained: Trained


@dataclass(frozen=True)
class Phase:
    """Rounds of a run with one method."""

    config: RunConfig
    method: Method
    intake: Intake
    plan: CostPlan


class Round(Strategy):
    """Flower strategy of all methods.

    It has one of `phases` for each of `RunConfig.phases`.

    Attributes:
        state: State of the run; replaced after each round, never modified.
    """

    def __init__(
        self,
        config: RunConfig,
        state: RunState,
        phases: Sequence[Phase],
        evaluator: Evaluator,
        enrolment: Enrolment,
        observer: RoundObserver,
    ) -> None:
        self.config, self.observer, self._phases = config, observer, phases
        self.state = phases[-1].method.assignment.start(state, config)
        self._phase = self._phase_of(state.round + 1)
        """Phase of the round that is made, until the next one opens."""
        self._evaluator, self._enrolment = evaluator, enrolment
        self._client_only = TASKS[config.task].client_only
        self._price = Price({})
        self._at: RoundContext | None = None
        self._grid: Grid | None = None
        self._step: Step | None = None
        self._is_over = self._is_on_test = self._can_exclude = False
        self._unusable: dict[str, str] = {}
        self._costs: dict[str, float] = {}
        """Numbers of the plan on the round."""

    @property
    def method(self) -> Method:
        """Server step of the round."""
        return self._phase.method

    @property
    def intake(self) -> Intake:
        """Intake of the round."""
        return self._phase.intake

    @property
    def plan(self) -> CostPlan:
        """Plan of the round's cost."""
        return self._phase.plan

    def take(self, node: int, answer: Message) -> None:
        """Examine a reply of the round as it arrives."""
        self.intake.take(node, answer)

    def _phase_of(self, number: int) -> Phase:
        return self._phases[0 if number <= self.config.first_rounds else -1]

    # --- training ------------------------------------------------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Price the round, sample the cohort, and return its training requests.

        Raises:
            BudgetSpentError: The run ends early.
            QuorumError: Too few clients are online.
            DataError: The method cannot do the round.
        """
        self.observer.on_round(self.state)
        if reason := self.observer.reason_to_stop():
            raise BudgetSpentError(reason)
        self._grid, number = grid, self.state.round + 1
        self._phase = self._phase_of(number)
        is_pending = self.intake.is_pending(number)
        is_free = is_pending and not self.plan.needs_clients
        clients = {} if is_free else self._enrolment.gather(grid, self.config.federation.min_replies)
        self._price, self._at = self.plan.open(self.state, clients), None
        at = self._context()
        self.method.check(at)
        terms = self.intake.open(at, [] if is_pending else self._sample(number, self._price.payers))
        asked = {name: self._price.payers[name] for name in terms}
        if asked:
            self.state = self.method.assignment.prepare(at, asked, self._talk(at), training=True)
        messages = self._messages([*asked.values()], TRAIN, self._requests(self._context(), terms))
        self._costs = self.plan.charge(self.intake.paying, self.state.model)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Make one server step from the replies; the model is in the state, so that Flower gets none.

        Raises:
            QuorumError: Fewer usable replies than `federation.min-replies`, or too few for a secure sum.
        """
        try:
            at = self._context()
            self._step = self._advance(at, self.intake.close(at, self._with_late(at, replies)))
            self.observer.on_trained(self._step.trained)
        except QuorumError:
            if not self.intake.has_final(self.state.round + 1):
                self.plan.fail()
            raise
        self.intake.forget(self.state.round)
        return None, None

    def _with_late(self, at: RoundContext, replies: Iterable[Message]) -> Iterable[Message]:
        """Return the replies, with those of clients that joined while the sum of a closed form was open.

        Clients of masked or noised sums are fixed when these are opened.
        """
        if not at.capabilities.closed_form or at.is_summed or at.cost or self._grid is None:
            return replies
        asked, found = {*self._price.payers}, [*replies]
        while late := [c for c in self._enrolment.gather(self._grid, 0).values() if c.name not in asked]:
            asked |= {client.name for client in late}
            found += self._send(late, TRAIN, self._requests(at, dict.fromkeys(asked, "")))
        if number := len(asked) - len(self._price.payers):
            self._costs = {**self._costs, "late": float(number)}
        return found

    def can_exclude(self, grid: Grid) -> bool:
        """Return True if the clients without unusable replies in a failed round make a quorum."""
        clients = self._enrolment.roster.select_trainable(grid.get_node_ids())
        others = self.state.reply_memory.without_excluded(clients, self.state.round + 1)
        return self._can_exclude and len(others) >= self.config.federation.min_replies

    def _context(self) -> RoundContext:
        """Return the facts of the round under the state as it is now."""
        at, config = self._at, self._phase_of(self.state.round + 1).config
        if at is None or at.state is not self.state or at.config is not config:
            at = self._at = RoundContext(config, self.state, self._price.cost, self._price.clip)
        return at

    def _sample(self, number: int, payers: Mapping[str, EnrolledClient]) -> list[str]:
        """Return the cohort among the clients that can pay, of those that do not sit out if they are enough."""
        federation = self.config.federation
        trusted = self.state.reply_memory.without_excluded(payers, number)
        able = trusted if len(trusted) >= federation.min_replies else payers
        return cohort(self.config.seed, number, able, federation.cohort, federation.min_replies)

    def _requests(self, at: RoundContext, terms: Mapping[str, str]) -> Callable[[EnrolledClient], TrainRequest]:
        """Return the request of each client, the same object for equal ones."""
        assignment, memory = self.method.assignment, at.state.memory
        requests: dict[tuple[Any, ...], TrainRequest] = {}

        def request(client: EnrolledClient) -> TrainRequest:
            name, last = client.name, at.counted.get(client.name, 0)
            shared, statics = self.method.broadcast(memory, last), assignment.statics_for(at, client.name)
            last = last if shared else 0  # else equal requests would be encoded for each
            key = client.enrolment, last, assignment.group_of(at.state, name), tuple(statics), terms[name]
            if key not in requests:
                requests[key] = TrainRequest(
                    round=at.number,
                    enrolment=client.enrolment,
                    model=assignment.model_for(at, name),
                    shared=shared,
                    shared_round=last,
                    statics=statics,
                    cost=at.cost,
                    clip=at.clip,
                    clients=len(terms),
                    terms=terms[name],
                )
            return requests[key]

        return request

    # --- the server step -------------------------------------------------------------------------------------------

    def _advance(self, at: RoundContext, results: Intaken) -> Step:
        """Make the server step, without the longest updates if it is not finite.

        A secure sum whose step is not finite, or that is lost, leaves the model unchanged.

        Raises:
            RefusedError: A sum of a closed form is lost.
            QuorumError: Fewer usable replies than `federation.min-replies`; the senders of others sit out this round.
            PackageError: The method's step is not finite, whatever it gets.
        """
        blamed: list[str] = []
        while True:
            results = results if results.lost else self.intake.add_up(at, results)
            if results.total is None and not results.lost:
                self._require_quorum(results)
            if results.lost and at.capabilities.closed_form:
                raise RefusedError(f"{results.lost}; a closed form needs each of its sums, so start a new run")
            state = replace(at.state, round=at.number) if results.lost else self._next_state(at, results)
            if all_finite(state.model) and all(map(all_finite, state.memory.values())):
                break
            if not results.replies:
                names = results.total.names if results.total else []
                reason = f"round {at.number}: the step from the sum is not finite"
                results = replace(results, lost=reason, rejected={**results.rejected, **dict.fromkeys(names, reason)})
                continue
            if len(results.replies) == 1 and blamed and METHODS.packages(name := self.config.method_options.name):
                label = METHODS.label(name)
                raise PackageError(f"{label}: no step from {len(blamed) + 1} updates is finite; {PACKAGE_REMEDY}")
            longest = max(results.replies, key=lambda reply: reply.lengths["update"]).client
            blamed.append(longest)
            reason = self._blame("the step with its update is not finite", at.number)
            results = results.without([longest], {longest: reason})
        end = self._end_of_penalty(at.number)
        reply_memory = results.reply_memory.record(at.noise, results.lengths).exclude(blamed, end)
        self.state = replace(state, reply_memory=reply_memory)
        return Step(at, results, self._describe(at, results))

    def _next_state(self, at: RoundContext, results: Intaken) -> RunState:
        """Return the state after the method's step from the total."""
        before, total = at.state, results.total
        assert total is not None  # added up
        shared = {name: a for name, a in before.model.items() if not name.startswith(self._client_only)}
        with np.errstate(over="ignore", invalid="ignore"):
            with naming_packages(METHODS.packages(self.config.method_options.name)):
                updated, memory, statics = self.method.step(at, before.memory_of(at.capabilities), shared, total)
                check_step(shared, updated, memory)
            model = {**before.model, **updated}
            names = [reply.client for reply in results.replies] or total.names  # a robust rule may leave some out
            model = self.method.assignment.refine(at, model, names, self._talk(at))
        memory = {**{n: g for n, g in before.memory.items() if n == SUMS}, **memory}
        return replace(before.next(model, memory, names), statics=statics)

    def _describe(self, at: RoundContext, results: Intaken) -> Trained:
        """Return the report of a step; the loss is known only of plaintext replies to training."""
        groups = self.method.assignment.groups(self.state)
        found = {} if results.lost else {**self.method.diagnostics(at, self.state.memory), **results.notes}
        numbers = {"lost": 1.0} if results.lost else {name: float(value) for name, value in found.items()}
        weight = total_of(r.weight for r in results.replies)
        is_known = bool(results.replies) and not at.cost and not at.capabilities.closed_form
        loss = total_of(r.weight * r.train.loss for r in results.replies) / weight if is_known else math.nan
        names = {reply.client for reply in results.replies}
        shortened = {client: why for client, why in results.shortened.items() if client in names}
        numbers |= self._costs
        return Trained(self.state, loss, results.rejected, numbers, groups, self._unusable, shortened)

    def _require_quorum(self, results: Intaken) -> None:
        quorum, number = self.config.federation.min_replies, self.state.round + 1
        self.state = replace(self.state, reply_memory=results.reply_memory.exclude(results.rejected, number))
        self._can_exclude = not results.rejected.keys() <= self._unusable.keys()
        self._unusable |= results.rejected
        reasons = "".join(f"; {one}" for one in by_reason(sorted(results.rejected.items()))[:MAX_NAMES])
        raise QuorumError(f"round {number}: {len(results.replies)} usable replies, {quorum} needed{reasons}")

    def _retry(self, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of the step, or of the one without outliers if its validation loss exploded.

        If that one fails as well, no client is to blame: the model before the step stays. It also stays if the round has
        sums in place of single updates, among which no outlier can be found.
        """
        step, find_explosion = self._step, self.observer.find_explosion
        if step is None or self._grid is None or step.at.cost or self._is_on_test:  # noise may ruin a model, too
            return evaluation
        if not (reason := find_explosion(evaluation)):
            return self._vote(step, evaluation)
        number, after, before, results = step.at.number, self.state, step.at.state, step.results
        remedy = "" if self.config.capabilities.closed_form else "; if further ones are, lower training.lr"
        log.warning("round %d is taken back: %s%s", number, reason, remedy)
        single = [] if are_summed(results.replies) else results.replies
        outliers = find_outliers({r.client: partial(_expand, r, before.model) for r in single})
        if outliers and self._can_spare(step, outliers):
            again = self._make_again(step, step.results.without(outliers, {}))
            self._step = self._name(again, outliers, reason)
            self.observer.on_trained(self._step.trained)
            evaluation = self._evaluate_again()
            if not find_explosion(evaluation):
                return evaluation
        self.state = replace(before, round=number, reply_memory=after.reply_memory)
        numbers = {"taken_back": 1.0, **self._costs}
        back = replace(step.trained, state=self.state, loss=math.nan, server=numbers, shortened={})
        self._step = replace(step, trained=back)
        self.observer.on_trained(back)
        return self._evaluate_again()

    def _can_spare(self, step: Step, clients: Collection[str]) -> bool:
        return len(step.results.without(clients, {}).replies) >= self.config.federation.min_replies

    def _make_again(self, step: Step, results: Intaken) -> Step:
        """Return the step anew from these results; its state is that of the run."""
        self.state = step.at.state
        return self._advance(step.at, results)

    def _name(self, step: Step, clients: Collection[str], reason: str) -> Step:
        """Return the newest step with a report that names these clients, which sit out the penalty."""
        number, reply_memory = step.at.number, self.state.reply_memory
        self.state = replace(self.state, reply_memory=reply_memory.exclude(clients, self._end_of_penalty(number)))
        rejected = {**step.results.rejected, **dict.fromkeys(clients, self._blame(reason, number))}
        results = replace(step.results, rejected=rejected)
        return Step(step.at, results, self._describe(step.at, results))

    def _vote(self, step: Step, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of the step, or of that without the suspects if it is better for most clients.

        Each client whose loss on its validation data differs has one vote; suspects have none. A suspect is named by the votes
        of all its rounds, since one vote may be against an honest client whose data differ.
        """
        number, suspects, with_all = step.at.number, step.results.suspects, self.state
        has_validation = self.config.task_options.validation_share > 0
        if not suspects or not has_validation or not self._can_spare(step, suspects):
            return evaluation
        again = self._make_again(step, step.results.set_aside(suspects))
        without = self._evaluate_again()
        pairs = [
            (found[LOSS], without.clients[client][LOSS])
            for client, found in evaluation.clients.items()
            if client not in suspects and LOSS in found.keys() & without.clients.get(client, {}).keys()
        ]
        votes = [second < first for first, second in pairs if first != second]
        memory = with_all.reply_memory.poll(suspects, votes)
        if not has_majority(sum(votes), len(votes)):
            self.state = replace(with_all, reply_memory=memory)
            self._step = replace(step, trained=replace(step.trained, state=self.state))
            self.observer.on_trained(self._step.trained)
            return evaluation
        self.state = replace(self.state, reply_memory=memory)
        named = [c for c in suspects if has_majority(*memory.votes[c], LEVEL / (number * (number + 1)))]
        self._step = self._name(again, named, "most clients' validation data are against its updates")
        self.observer.on_trained(self._step.trained)
        return without

    def _end_of_penalty(self, number: int) -> int:
        return number + self.config.federation.penalty

    def _blame(self, reason: str, number: int) -> str:
        penalty = f"; sits out until round {self._end_of_penalty(number)}" if self.config.federation.penalty else ""
        return f"{reason}{penalty}"

    # --- evaluation ------------------------------------------------------------------------------------------------

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the evaluation requests in rounds that evaluate, to all clients or to a drawn share of them."""
        number, final = self.state.round, self._is_over or self.state.round == self.config.rounds
        if number % self._phase_of(number).config.evaluate_every and not final:
            return []
        has_validation = self.config.task_options.validation_share > 0
        self._is_on_test = has_validation and final
        return self._evaluations(grid, "validation" if has_validation and not final else "test", final=final)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the weighted means of the clients' metrics, after taking back a step that ruined the model."""
        evaluation = self._retry(self._evaluator.summarize(replies, self.state.round))
        evaluation = self.plan.grade(self.state, evaluation)
        row_ids = [reply.rows for reply in self._step.results.replies] if self._step else []
        self._step, self._unusable = None, {}
        self.observer.on_evaluated(self.state.round, evaluation)
        if plan := self.plan.observe(self.state, row_ids):
            self.state = replace(self.state, plan=plan)
            self.observer.on_observed(self.state)
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
        return self._evaluator.summarize(grid.send_and_receive(messages), number or self.state.round)

    def evaluate(self, grid: Grid) -> None:
        """Evaluate the model of the last round outside of Flower's loop."""
        messages = self.configure_evaluate(self.state.round, ArrayRecord(), ConfigRecord(), grid)
        self.aggregate_evaluate(self.state.round, grid.send_and_receive(messages))

    def conclude(self, grid: Grid) -> None:
        """Evaluate the final model of a run that ends before its last round."""
        self._is_over = True
        self.evaluate(grid)

    def summary(self) -> None:
        """Log the method and its options; Flower calls this at the start."""
        log.info("%s with %s", type(self.method).__name__, self._phase.config.method_options)

    def _evaluations(
        self, grid: Grid, split: str, *, final: bool, model: Arrays | None = None, number: int = 0
    ) -> list[Message]:
        """Return the evaluation requests, of `model` to all clients or of each asked client's own one."""
        self._grid = grid
        at = self._context()
        clients = self._evaluator.select(at, grid.get_node_ids(), final=final, one_model=model is not None)
        if model is None:
            assignment = self._phase_of(at.number).method.assignment
            self.state = assignment.prepare(at, clients, self._talk(at), training=False)
            at = self._context()
        request = self._evaluator.requests(at, clients, split, final=final, model=model, number=number)
        return self._messages([client for _, client in sorted(clients.items())], EVALUATE, request)

    def _evaluate_again(self) -> Evaluation:
        assert self._grid is not None  # that of the evaluation before
        messages = self.configure_evaluate(self.state.round, ArrayRecord(), ConfigRecord(), self._grid)
        return self._evaluator.summarize(self._grid.send_and_receive(messages), self.state.round)

    # --- messages --------------------------------------------------------------------------------------------------

    def _messages(
        self, clients: Sequence[EnrolledClient], kind: str, payload: Callable[[EnrolledClient], Payload]
    ) -> list[Message]:
        """Return a message to each client; equal payload objects are encoded once."""
        encoded: dict[int, tuple[Payload, RecordDict]] = {}
        most = {TRAIN: self.intake.largest, EVALUATE: self._evaluator.largest}.get(kind, ASSIGN_REPLY)
        messages, ttl, group = [], self.config.federation.deadline, str(self.state.round + 1)
        for client in clients:
            content = payload(client)
            if id(content) not in encoded:
                encoded[id(content)] = content, encode(content)
            message = Message(encoded[id(content)][1], client.node, kind, ttl=ttl, group_id=group)
            messages.append(limit_to(message, most))
        return messages

    def _talk(self, at: RoundContext) -> Talk:
        return Talk(at, self.intake, self._enrolment, self._send)

    def _send(
        self, clients: Sequence[EnrolledClient], kind: str, payload: Callable[[EnrolledClient], Payload]
    ) -> Iterable[Message]:
        messages = self._messages(clients, kind, payload)
        return self._grid.send_and_receive(messages) if messages and self._grid else []


def _expand(reply: Reply, model: Arrays) -> Arrays:
    return expand(reply.update, model)
