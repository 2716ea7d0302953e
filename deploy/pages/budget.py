"""Section on the privacy budget: spending by round, remaining budget, the planner's predictions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import BGTplanner
from common.metrics import MetricSpec
from common.privacy.mechanisms.registry import build_account
from common.tasks.registry import TASKS
from deploy.pages.figures import COLORS, FAINT, INK, svg
from deploy.pages.view import (
    RunRecord,
    Section,
    Table,
    cost,
    counted,
    figure,
    format_value,
    labels,
    measure,
    section,
    table,
)
from server.planning import bandit as exploration
from server.planning.bandit import MIN_REWARD_SCALE
from server.planning.planner import budget_of
from server.record.events import RoundEvent


@dataclass(frozen=True)
class BudgetHistory:
    """Privacy spending of a run.

    Args:
        label: Display name of the run.
        color: Color of its curves.
        config: Configuration of the run.
        account: Unit of costs, as in `server.record.events.Start`.
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
    rounds: tuple[RoundEvent, ...]
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


def _stages(config: RunConfig, rounds: tuple[RoundEvent, ...]) -> tuple[str, ...]:
    """Return the stage of each round, counted as the planner does: over rounds with a reward."""
    planner = config.planner
    if not isinstance(planner, BGTplanner):
        return ("",) * len(rounds)
    t0 = exploration.limit_t0(planner.t0, planner.arms, config.rounds)
    learnt = [sum("reward" in r.server for r in rounds[:k]) for k in range(len(rounds))]
    return tuple(exploration.stage_of(done, planner.arms, t0) for done in learnt)


def _scale(config: RunConfig, rounds: tuple[RoundEvent, ...], stages: tuple[str, ...]) -> float:
    """Return the largest |r| of stage 1, as `server.planning.bandit` defines it."""
    planner = config.planner
    if isinstance(planner, BGTplanner) and planner.inputs == "code":
        return 1.0
    gains = [abs(r.server.get("reward", 0.0)) for r, stage in zip(rounds, stages, strict=True) if stage != "2"]
    return max([MIN_REWARD_SCALE, *(gain for gain in gains if not math.isnan(gain))])


_DASHED: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (4, 3))}
_DOTS: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.5}


def costs(plans: Sequence[BudgetHistory], absolute: bool) -> str:
    """Plot the cost of each round per client, in the account's unit or as a share of the budget."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            values = np.array(plan.costs) * (1.0 if absolute else 100 / plan.total)
            axes.plot(plan.numbers, values, color=plan.color, linewidth=0.9, alpha=0.6)
            axes.plot(plan.numbers, values, color=plan.color, **_DOTS)
        axes.margins(y=0.15)
        _mark_stages(axes, plans)

    return svg(draw, "Cost per round", x="round")


def budget_left(plans: Sequence[BudgetHistory]) -> str:
    """Plot the remaining budget after each round; dashed: even spending."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            axes.plot((0, *plan.numbers), (100, *plan.left), color=plan.color)
        longest = max(plan.config.rounds for plan in plans)
        for rounds in {plan.config.rounds for plan in plans}:
            axes.plot((0, rounds), (100, 0), color=INK, **_DASHED)
        axes.set_xlim(0, longest)
        axes.set_ylim(0, 103)

    return svg(draw, "Remaining budget per round", x="round")


def rewards(plans: Sequence[BudgetHistory]) -> str:
    """Plot observed rewards as dots, predicted ones as a curve in a band of ± 2 standard deviations."""

    def draw(axes: Axes) -> None:
        axes.axhline(0, color=INK, linewidth=0.7)
        for plan in plans:
            mean, sd = (np.array(plan.server_series(key, plan.scale)) for key in ("predicted", "predicted_sd"))
            axes.fill_between(plan.numbers, mean - 2 * sd, mean + 2 * sd, color=plan.color, alpha=0.15, linewidth=0)
            axes.plot(plan.numbers, mean, color=plan.color, linewidth=1.4)
            axes.plot(plan.numbers, plan.server_series("reward"), color=plan.color, **_DOTS)
        axes.margins(y=0.12)
        _mark_stages(axes, plans)

    return svg(draw, "Reward per round, observed and predicted", x="round")


def prices(plans: Sequence[BudgetHistory]) -> str:
    """Plot λ of each planner that has it, below its dashed bound Z."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            axes.plot(plan.numbers, plan.server_series("lambda"), color=plan.color)
            axes.plot(plan.numbers, plan.server_series("lambda_max"), color=plan.color, **_DASHED)
        axes.margins(y=0.15)

    return svg(draw, "Price of budget per round", x="round")


def by_spent(plans: Sequence[BudgetHistory]) -> str:
    """Plot the planner's objective against the spent budget."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            spent = 100 - np.array(plan.left)
            axes.plot(spent, [r.metrics.get(plan.objective.key, np.nan) for r in plan.rounds], color=plan.color)
        axes.set_xlim(0, 100)

    return svg(draw, "Metric by budget spent", x="budget spent (%)")


def paying_clients(plans: Sequence[BudgetHistory]) -> str:
    """Plot the number of clients with enough budget for the round; dashed: all clients."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            active, retired = np.array(plan.server_series("active")), np.array(plan.server_series("retired"))
            axes.plot(plan.numbers, active, color=plan.color, drawstyle="steps-mid")
            axes.plot(plan.numbers, active + retired, color=plan.color, **_DASHED)
        axes.set_ylim(bottom=0)

    return svg(draw, "Clients with enough budget per round", x="round")


def _mark_stages(axes: Axes, plans: Sequence[BudgetHistory]) -> None:
    """Mark the first rounds of the planner's stages, if one run is shown."""
    plan = plans[0]
    if len(plans) > 1 or not any(plan.stages):
        return
    for stage, members in groupby(zip(plan.numbers, plan.stages, strict=True), key=lambda pair: pair[1]):
        begin = next(members)[0] - 0.5
        axes.axvline(begin, color=FAINT, linewidth=1.0)
        at_top = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
        axes.annotate(stage, (begin, 1.0), (3, -2), color=INK, fontsize=8.5, **at_top)  # type: ignore[arg-type]


_Column = tuple[str, Callable[[BudgetHistory, int], str]]


def budget(histories: Sequence[RunRecord]) -> Section:
    """Return cost, reward, price and remaining budget by round; an empty section for runs without noise."""
    runs = zip(histories, labels(histories), COLORS * len(histories), strict=False)
    plans = [plan for history, label, color in runs if (plan := plan_of(history, label, color))]
    if not plans:
        return {}
    single = plans[0] if len(plans) == 1 else None
    return section("Privacy budget", _note(plans), _figures(plans), _table(single) if single else None)


def _note(plans: Sequence[BudgetHistory]) -> str:
    if len(plans) > 1:
        all_of = dict.fromkeys(cost(plan.account, plan.total) for plan in plans)
        each = "; ".join(f"{plan.label} {cost(plan.account, plan.total)}" for plan in plans)
        return f"Budget of each client: {next(iter(all_of)) if len(all_of) == 1 else each}."
    [plan] = plans
    options = plan.config.privacy
    delta = "" if plan.account == "pure" else f", δ = {options.delta:g}"
    whole, even = cost(plan.account, plan.total), cost(plan.account, plan.total / plan.config.rounds)
    return (
        f"Every client has a budget of {whole} in this run, which corresponds to ε = {options.epsilon:g}{delta}, "
        f"in {counted(plan.account)}. Spent evenly it is {even} per round."
    )


def _figures(plans: Sequence[BudgetHistory]) -> list[dict[str, str]]:
    """Return the figures with data."""
    accounts = {plan.account for plan in plans}
    unit = cost(plans[0].account, 0).split()[0] if len(accounts) == 1 else "% of the budget"
    several = len(plans) > 1
    stages = "" if several or not any(plans[0].stages) else _STAGES
    figures = [
        figure(f"Cost per round, {unit}", "", costs(plans, len(accounts) == 1), f"Cost to each client.{stages}"),
        figure("Remaining budget, %", "", budget_left(plans), "Of the client with the least. Dashed: even spending."),
    ]
    objectives = {plan.objective.key: plan.objective for plan in plans if plan.has_rewards}
    if len(objectives) == 1:
        [objective] = objectives.values()
        figures.append(figure(f"Reward per round, {objective.label}", "higher", rewards(plans), _gain_caption(plans)))
    if any("lambda" in r.server for plan in plans for r in plan.rounds):
        figures.append(figure("λ, price of budget", "", prices(plans), _PRICE))
    if len(objectives) == 1 and any(objective.key in r.metrics for plan in plans for r in plan.rounds):
        caption = f"{objective.meaning} Against the spent budget of the client with the least."
        figures.append(figure(f"{objective.label} by budget spent", objective.better, by_spent(plans), caption))
    if any(retired > 0 for plan in plans for retired in plan.server_series("retired")):
        figures.append(
            figure("Clients with enough budget", "", paying_clients(plans), "Dashed: including exhausted budgets.")
        )
    return figures


_STAGES = " 1a: every arm in turn; 1b: arms drawn uniformly; 2: by prediction and price."
_PRICE = (
    "Over all clients, of an even share of the budget, in units of the largest reward of stage 1. Dashed: its bound Z."
)


def _gain_caption(plans: Sequence[BudgetHistory]) -> str:
    observed = "Dot: improvement by the round."
    if not any("predicted" in r.server for plan in plans for r in plan.rounds):
        return observed
    curve = "Curve: prediction for the drawn arm, from stage 2 on"
    return f"{observed} {curve}; band: ± 2 standard deviations of the prediction, without the noise of single rounds."


def _table(plan: BudgetHistory) -> Table:
    """Return a table with one row per round."""
    columns = [*_columns(plan)]
    rows = [[content(plan, k) for _, content in columns] for k in range(len(plan.rounds))]
    return table(f"All {len(rows)} rounds", [name for name, _ in columns], rows)


def _columns(plan: BudgetHistory) -> list[_Column]:
    unit, objective = cost(plan.account, 0).split()[0], plan.objective
    arms = [("Stage", _stage), ("Arm", _server_number("arm", ".0f")), ("Probability", _server_number("p_arm", ".2f"))]
    forecast: list[_Column] = [("Predicted reward", _predicted), ("λ", _server_number("lambda", ".3g"))]
    shown: list[_Column] = [("Round", lambda plan, k: str(plan.rounds[k].round))]
    shown += arms if any(plan.stages) else []
    shown += [(f"Cost, {unit}", _server_number("cost", ".4g")), ("Remaining, %", _server_number("left", ".1f", 100))]
    shown += forecast[:1] if any(plan.stages) else []
    shown += [("Reward", _server_number("reward", "+.2g"))] if plan.has_rewards else []
    if any(objective.key in r.metrics for r in plan.rounds):
        shown.append(
            (objective.label, lambda plan, k: format_value(objective, plan.rounds[k].metrics.get(objective.key)))
        )
    shown += forecast[1:] if any(plan.stages) else []
    return [*shown, ("Enough budget", _server_number("active", ".0f")), ("Exhausted", _server_number("retired", ".0f"))]


def _stage(plan: BudgetHistory, k: int) -> str:
    return plan.stages[k]


def _predicted(plan: BudgetHistory, k: int) -> str:
    numbers = plan.rounds[k].server
    if "predicted" not in numbers:
        return "–"
    mean, band = plan.scale * numbers["predicted"], 2 * plan.scale * numbers["predicted_sd"]
    return f"{mean:+.2g} ± {band:.1g}"


def _server_number(key: str, form: str, factor: float = 1.0) -> Callable[[BudgetHistory, int], str]:
    """Return the content of a column with one of the server's numbers in that format."""

    def content(plan: BudgetHistory, k: int) -> str:
        value: Any = plan.rounds[k].server.get(key, math.nan)
        return "–" if math.isnan(value) else format(factor * value, form)

    return content
