"""Privacy spending of a run by round, and its planner's predictions, from the run's folder."""

import math
from dataclasses import dataclass

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import BGTplanner
from common.metrics.spec import MetricSpec
from common.privacy.mechanisms.registry import build_account
from common.tasks.registry import TASKS
from deploy.report.metric_table import measure
from deploy.report.run import RunRecord
from server.events import Round
from server.planning import exploration
from server.planning.scales import SMALLEST
from server.planning.spending import budget_of


@dataclass(frozen=True)
class BudgetHistory:
    """Privacy spending of a run.

    Args:
        label: Display name of the run.
        color: Color of its curves.
        config: Configuration of the run.
        account: Unit of costs, as in `server.events.Start`.
        total: Budget of every client.
        rounds: Rounds with a cost, in order.
        stages: Stage of the planner in each round, `1a`, `1b` or `2`; empty without a planner.
        scale: Reward that the planner scales to 1, in the unit of `objective`.
    """

    label: str
    color: str
    config: RunConfig
    account: str
    total: float
    rounds: tuple[Round, ...]
    stages: tuple[str, ...]
    scale: float

    @property
    def objective(self) -> MetricSpec:
        """Metric by which the planner rewards rounds."""
        if self.config.planner.observes_norm:
            meaning = "Norm of the noisy update, in clips."
            return MetricSpec("norm", "norm", "Norm of the update", "lower", 3, meaning)
        return measure(TASKS[self.config.task].objective.metric)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the rounds."""
        return tuple(r.round for r in self.rounds)

    def server_series(self, key: str, factor: float = 1.0) -> list[float]:
        """Return one of the server's numbers by round; NaN where it is missing."""
        return [factor * r.server.get(key, math.nan) for r in self.rounds]

    @property
    def left(self) -> list[float]:
        """Remaining budget after each round in %, of the client with the least."""
        return self.server_series("left", 100)

    @property
    def costs(self) -> list[float]:
        """Cost of each round, in the account's unit."""
        return self.server_series("cost")

    @property
    def has_rewards(self) -> bool:
        """True if any round has a non-zero reward."""
        return any(r.server.get("reward") for r in self.rounds)


def plan_of(history: RunRecord, label: str, color: str) -> BudgetHistory | None:
    """Return the spending of a run; None if nothing was spent, or the run is of another release."""
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
        label, color, config, account, budget_of(config).total, rounds, stages, _scale(config, rounds, stages)
    )


def _stages(config: RunConfig, rounds: tuple[Round, ...]) -> tuple[str, ...]:
    """Return the stage of each round, counted as the planner does: over rounds with a reward."""
    planner = config.planner
    if not isinstance(planner, BGTplanner):
        return ("",) * len(rounds)
    t0 = exploration.fitting(planner.t0, planner.arms, config.rounds)
    learnt = [sum("reward" in r.server for r in rounds[:k]) for k in range(len(rounds))]
    return tuple(exploration.stage(done, planner.arms, t0) for done in learnt)


def _scale(config: RunConfig, rounds: tuple[Round, ...], stages: tuple[str, ...]) -> float:
    """Return the largest |r| of stage 1, as `server.planning.scales` defines it."""
    planner = config.planner
    if isinstance(planner, BGTplanner) and planner.inputs == "code":
        return 1.0
    gains = [abs(r.server.get("reward", 0.0)) for r, stage in zip(rounds, stages, strict=True) if stage != "2"]
    return max([SMALLEST, *(gain for gain in gains if not math.isnan(gain))])
