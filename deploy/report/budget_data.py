"""What a run spent of its clients' privacy, round by round, and what its planner knew, as its folder tells."""

import math
from dataclasses import dataclass

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import BGTplanner
from common.metrics.spec import MetricSpec
from common.privacy.accounts import build_account
from common.tasks.registry import TASKS
from deploy.report.metric_table import measure
from deploy.report.run import RunRecord
from server.events import Round
from server.planning import exploration
from server.planning.scales import SMALLEST
from server.planning.spending import budget_of


@dataclass(frozen=True)
class BudgetHistory:
    """A run's spending.

    Args:
        label: What the run is called.
        colour: What it is drawn in.
        config: Its configuration.
        account: What costs are counted in, as in `server.events.Start`.
        total: What every client may spend.
        rounds: Those that cost something, in order.
        stages: The planner's stage in each, `1a`, `1b` or `2`; empty texts where it has none.
        scale: The gain that counts as 1 for the planner, in the unit of `judge`.
    """

    label: str
    colour: str
    config: RunConfig
    account: str
    total: float
    rounds: tuple[Round, ...]
    stages: tuple[str, ...]
    scale: float

    @property
    def judge(self) -> MetricSpec:
        """What rounds are judged by."""
        if self.config.planner.observes_norm:
            meaning = "Norm of the noisy update, in clips."
            return MetricSpec("norm", "norm", "Norm of the update", "lower", 3, meaning)
        return measure(TASKS[self.config.task].objective.metric)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Rounds' numbers."""
        return tuple(r.round for r in self.rounds)

    def told(self, key: str, factor: float = 1.0) -> list[float]:
        """One of the server's numbers by round; NaN where it told none."""
        return [factor * r.server.get(key, math.nan) for r in self.rounds]

    @property
    def left(self) -> list[float]:
        """% of the budget left after each round, to the client that has least."""
        return self.told("left", 100)

    @property
    def costs(self) -> list[float]:
        """Of each round, in the account's unit."""
        return self.told("cost")

    @property
    def judged(self) -> bool:
        """Whether rounds gained anything that somebody could see."""
        return any(r.server.get("reward") for r in self.rounds)


def plan_of(history: RunRecord, label: str, colour: str) -> BudgetHistory | None:
    """The run's spending; None where nothing was spent, or the run is of another release."""
    rounds = tuple(r for r in history.rounds if r.server.get("cost", 0) > 0)
    try:
        config = parse({key: value for key, value in history.config.items() if key != "resume"})
    except ConfigError:
        return None
    if not rounds or config.privacy.unit == "none":
        return None
    stages = _stages(config, rounds)
    account = build_account(config.privacy).name
    return BudgetHistory(
        label, colour, config, account, budget_of(config).total, rounds, stages, _scale(config, rounds, stages)
    )


def _stages(config: RunConfig, rounds: tuple[Round, ...]) -> tuple[str, ...]:
    """Counted as the planner counts, over the rounds that it learnt from."""
    planner = config.planner
    if not isinstance(planner, BGTplanner):
        return ("",) * len(rounds)
    t0 = exploration.fitting(planner.t0, planner.arms, config.rounds)
    learnt = [sum("reward" in r.server for r in rounds[:k]) for k in range(len(rounds))]
    return tuple(exploration.stage(done, planner.arms, t0) for done in learnt)


def _scale(config: RunConfig, rounds: tuple[Round, ...], stages: tuple[str, ...]) -> float:
    """Largest |r| of stage 1, as `server.planning.scales` has it."""
    planner = config.planner
    if isinstance(planner, BGTplanner) and planner.inputs == "code":
        return 1.0
    gains = [abs(r.server.get("reward", 0.0)) for r, stage in zip(rounds, stages, strict=True) if stage != "2"]
    return max([SMALLEST, *(gain for gain in gains if not math.isnan(gain))])
