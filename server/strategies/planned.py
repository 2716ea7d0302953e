"""A planner around any strategy: it decides what a round may spend, the strategy inside does the rest (algorithms.md §4.7)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from common.arrays import Array, Arrays, norm, sub
from common.config.run import RunConfig
from common.errors import BudgetSpentError, QuorumError, RunError
from common.methods.planners import BGTplanner
from common.text import count
from server.evaluation import Evaluation, pool
from server.planning.context import named_items, singular_values, widest
from server.planning.planner import Agreed, Budget, Planner, Stop
from server.planning.preconditions import SHARE, check_judged
from server.planning.registry import build_planner
from server.planning.reward import REWARDS, improvement
from server.planning.spending import Waiting, charge, credit, remaining
from server.planning.state import State, from_groups, recalled, remembered, to_groups
from server.roster import EnrolledClient
from server.state import RunState, Trained
from server.strategies.round import RoundStrategy

SEEN = "planner_seen"
"""What the planner last saw, beside its own groups: what each client told of the metric that it goes by, or the last update's
`norm`, and that update's singular values, `context`."""


class PlannedStrategy(Strategy):
    """Decides a round's cost, tells every request, and learns from what the round gained.

    Args:
        build: Makes the strategy inside, given its two callbacks.
        budget: B of a fresh client and T_max.
        on_trained: Told of each training step, with the plan's numbers.
        on_evaluated: Told of each evaluation, with the round's reward.
        on_observed: Told of the state once the planner has learnt from a round.
        on_decided: Told what a round will cost before anybody is asked, and if too few answered.
        agreed: What was decided before the server went down; of the round that comes now it stands.
    """

    def __init__(
        self,
        build: Callable[..., RoundStrategy],
        budget: Budget,
        on_trained: Callable[[Trained], None],
        on_evaluated: Callable[[int, Evaluation], None],
        on_observed: Callable[[RunState], None],
        on_decided: Callable[[Agreed], None] = lambda agreed: None,
        agreed: Agreed | None = None,
    ) -> None:
        self.inner = build(on_trained=self._trained, on_evaluated=self._evaluated)
        self._budget = budget
        self._on_trained, self._on_evaluated, self._on_observed = on_trained, on_evaluated, on_observed
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
        return self.state.plan.get(SEEN) or {"context": np.zeros(self._values)}

    @property
    def _values(self) -> int:
        """d, numbers of a context."""
        return self.config.planner.context if isinstance(self.config.planner, BGTplanner) else 0

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
        if self._by_test(number):
            reward, seen = 0.0, self._known()
            self._on_evaluated(number, evaluation)
        else:
            reward, seen = self._gain(evaluation, length)
            self._on_evaluated(number, replace(evaluation, notes={"reward": reward}))

        planner = self._planner(len(waiting.decision.active))
        after = planner.observe(self._memory(), waiting.decision, reward, waiting.spent, length)
        seen["context"] = singular_values(self._round(update), self._values)
        self.state = replace(self.state, plan={**to_groups(after), SEEN: seen})
        self._on_observed(self.state)

    def _round(self, update: Arrays) -> Array:
        """What describes the round: M_t where clients name items, else the aggregated update, noise and all."""
        tables = {name for rows in self.inner.named for name in rows}
        if not tables:
            return widest(update)
        [table] = tables
        return named_items([rows[table] for rows in self.inner.named], len(update[table]))

    def _by_test(self, number: int) -> bool:
        """Whether that round's metrics are of test data, by which nothing is planned, and others are held out for that."""
        held_out = self.config.task_options.validation_share > 0
        return held_out and number == self.config.rounds and not self._by_norm

    def _known(self) -> Arrays:
        """What the next round is measured against, where this one told nothing."""
        return {name: a for name, a in self._seen().items() if name != "context"}

    @property
    def _by_norm(self) -> bool:
        planner = self.config.planner
        return isinstance(planner, BGTplanner) and planner.reward == "norm"

    def _gain(self, evaluation: Evaluation, length: float) -> tuple[float, Arrays]:
        """r_t over the clients that told of this round and of an earlier one, and what the next is measured against.

        Over different clients, whoever comes or goes would look like a gain or a loss.

        Raises:
            RunError: The planner goes by metrics that nobody shares, or training diverges.
        """
        if self._by_norm:
            before = self._seen().get("norm", np.array(length))
            return improvement(float(before), length), {"norm": np.array(length)}
        metric, rises = REWARDS[self.config.task]
        now, earlier = evaluation.values_of(metric), recalled(self._seen())
        if not now and isinstance(self.config.planner, BGTplanner):
            raise RunError(f"bgtplanner goes by '{metric}', which no client told this round; {SHARE}")
        both = {name: now[name] for name in now if name in earlier}
        then = {name: (earlier[name], weight) for name, (_, weight) in both.items()}
        reward = improvement(pool(metric, then), pool(metric, both), rises) if both else 0.0
        return reward, remembered({**earlier, **{name: value for name, (value, _) in now.items()}})
