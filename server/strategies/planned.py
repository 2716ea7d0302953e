"""A planner around any strategy: it decides what a round may spend, the strategy inside does the rest (algorithms.md §4.7)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from common.arrays import Arrays, norm, sub
from common.config.run import RunConfig
from common.errors import BudgetSpentError, QuorumError
from common.text import count
from server.evaluation import Evaluation
from server.planning.context import singular_values
from server.planning.planner import Agreed, Budget, Planner, Stop
from server.planning.preconditions import check_judged
from server.planning.registry import build_planner
from server.planning.spending import Waiting, charge, credit, remaining
from server.planning.state import State, from_groups, to_groups
from server.roster import EnrolledClient
from server.state import RunState, Trained
from server.strategies.observed import context_of, is_on_test_data, reward_of
from server.strategies.registry import build_strategy
from server.strategies.spec import RoundParts

SEEN = "planner_seen"
"""What the planner last saw, beside its own groups: what each client told of the metric that it goes by, or the last update's
`norm`, and that update's singular values, `context`."""


class PlannedStrategy(Strategy):
    """Decides a round's cost, tells every request, and learns from what the round gained.

    Args:
        parts: Parts of the inner strategy; the callbacks get the plan's numbers and rewards too.
        budget: B of a fresh client and T_max.
        on_observed: Called with the state after the planner has learned from a round.
        on_decided: Called with a round's cost before any client is asked, and again if too few replied.
        agreed: Decision made before the server crashed; it stands for the coming round.
    """

    def __init__(
        self,
        parts: RoundParts,
        budget: Budget,
        on_observed: Callable[[RunState], None],
        on_decided: Callable[[Agreed], None] = lambda agreed: None,
        agreed: Agreed | None = None,
    ) -> None:
        self.inner = build_strategy(replace(parts, on_trained=self._trained, on_evaluated=self._evaluated))
        self._budget = budget
        self._on_trained, self._on_evaluated, self._on_observed = parts.on_trained, parts.on_evaluated, on_observed
        self._on_decided, self._agreed = on_decided, agreed
        self._waiting: Waiting | None = None

    @property
    def config(self) -> RunConfig:
        """The run's configuration."""
        return self.inner.config

    @property
    def state(self) -> RunState:
        """Where the run stands, the planner's memory included."""
        return self.inner.state

    @state.setter
    def state(self, state: RunState) -> None:
        self.inner.state = state

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose what the round spends, and ask those who can pay.

        Raises:
            BudgetSpentError: Nobody can, or the planner sees no use in another round.
            RunError: The planner could not learn what the round gained; nobody is asked to spend anything.
        """
        roster, number = self.inner.enrolment.roster, self.state.round + 1
        able = self.inner.enrolment.gather(grid, self.config.federation.min_replies)
        check_judged(self.config, able.values())
        self._agreed = self._decided(number, able)
        decision = self._agreed.decision
        self._on_decided(self._agreed)
        self.inner.cost, self.inner.clip = decision.cost / self.inner.releases, decision.clip
        messages = list(self.inner.configure_train(server_round, arrays, config, grid))
        asked = [message.metadata.dst_node_id for message in messages]
        self._waiting = charge(roster, decision, asked, self._budget.total, self.state.model)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The step of the strategy inside.

        Raises:
            QuorumError: Too few answered.
        """
        try:
            return self.inner.aggregate_train(server_round, replies)
        except QuorumError:
            if self._agreed is not None:
                self._on_decided(replace(self._agreed, failed=True))
            raise

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As the strategy inside."""
        return self.inner.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """As the strategy inside."""
        return self.inner.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """As the strategy inside."""
        self.inner.summary()

    def conclude(self, grid: Grid) -> None:
        """As the strategy inside."""
        self.inner.conclude(grid)

    def _decided(self, number: int, able: Mapping[str, EnrolledClient]) -> Agreed:
        """What the round costs: as clients were told before the server went down, or as the planner says now.

        Raises:
            BudgetSpentError: As `configure_train`; of a round that failed before, if the planner sees no other.
        """
        left, agreed = remaining(self.inner.enrolment.roster, able, self._budget.total), self._agreed
        stands = agreed is not None and agreed.number == number
        if agreed is not None and stands and not agreed.failed:
            credit(self.inner.enrolment.roster, agreed)
            return agreed
        rng = np.random.default_rng([self.config.seed, number])
        decision = self._planner(len(able)).decide(self._memory(), self._seen()["context"], left, rng)
        if isinstance(decision, Stop):
            raise BudgetSpentError(decision.reason)
        needed = self.config.federation.min_replies
        if len(decision.active) < needed:
            paying = count(len(decision.active), "client")
            raise BudgetSpentError(f"{paying} can pay another round, the round needs {needed}")
        if agreed is not None and stands:  # those who answered it answer it on no other terms
            credit(self.inner.enrolment.roster, agreed)
            return agreed
        return Agreed(number, decision, left)

    def _planner(self, clients: int) -> Planner:
        return build_planner(self.config.planner, replace(self._budget, clients=max(clients, 1)))

    def _memory(self) -> State:
        return from_groups(self.state.plan) if self.state.plan else self._planner(1).start()

    def _seen(self) -> Arrays:
        """What came of the last round; of a fresh run, a context of zeros."""
        return self.state.plan.get(SEEN) or {"context": np.zeros(self.config.planner.context_size)}

    def _trained(self, trained: Trained) -> None:
        numbers = self._waiting.numbers() if self._waiting else {}
        self._on_trained(replace(trained, server={**trained.server, **numbers}))

    def _evaluated(self, number: int, evaluation: Evaluation) -> None:
        """Learn what the round gained, where a round waits for it."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            self._on_evaluated(number, evaluation)
            return
        update = sub({name: waiting.start[name] for name in self.state.model}, self.state.model)
        length = norm(update) / self.config.privacy.clip
        if is_on_test_data(self.config, number):
            reward, seen = 0.0, {name: a for name, a in self._seen().items() if name != "context"}
            self._on_evaluated(number, evaluation)
        else:
            reward, seen = reward_of(self.config, evaluation, length, self._seen())
            self._on_evaluated(number, replace(evaluation, notes={"reward": reward}))

        planner = self._planner(len(waiting.decision.active))
        after = planner.observe(self._memory(), waiting.decision, reward, waiting.spent, length)
        seen["context"] = singular_values(context_of(update, self.inner.named), self.config.planner.context_size)
        self.state = replace(self.state, plan={**to_groups(after), SEEN: seen})
        self._on_observed(self.state)
