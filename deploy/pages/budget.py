"""Section on the privacy budget: spending by round, remaining budget, the planner's predictions."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from common.arrays import Floats
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import BGTplanner
from common.metrics import MetricSpec
from common.privacy.mechanisms import build_account
from common.tasks.registry import TASKS
from deploy.pages.figures import COLORS, FAINT, INK, svg
from deploy.pages.statement import cost, counted, unit_of
from deploy.pages.view import Figure, RunRecord, Section, figure, format_value, labels, measure, section, table
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
        scale: Reward that the planner scales to 1, in the unit of `objective`: the largest |r| of stage 1.
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
    gains = [abs(r.server.get("reward", 0.0)) for r, stage in zip(rounds, stages, strict=True) if stage != "2"]
    scale = max([MIN_REWARD_SCALE, *(gain for gain in gains if not math.isnan(gain))])
    if isinstance(config.planner, BGTplanner) and config.planner.inputs == "code":
        scale = 1.0
    return BudgetHistory(label, color, config, account, budget_of(config).total, rounds, stages, scale)


def _stages(config: RunConfig, rounds: tuple[RoundEvent, ...]) -> tuple[str, ...]:
    """Return the stage of each round, counted as the planner does: over rounds with a reward."""
    planner = config.planner
    if not isinstance(planner, BGTplanner):
        return ("",) * len(rounds)
    t0 = exploration.limit_t0(planner.t0, planner.arms, config.rounds)
    learnt = [sum("reward" in r.server for r in rounds[:k]) for k in range(len(rounds))]
    return tuple(exploration.stage_of(done, planner.arms, t0) for done in learnt)


Points = Callable[[BudgetHistory], tuple[ArrayLike, ArrayLike]]
"""Return x and y of a curve of a run."""

Curve = tuple[Points, dict[str, Any]]
"""Points and style of a curve."""

_DASHED: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (4, 3))}
_DOTS: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.5}


def _series(key: str) -> Points:
    """Return one of the server's numbers by round."""
    return lambda plan: (plan.numbers, plan.server_series(key))


def _predicted(plan: BudgetHistory, deviations: float) -> Floats:
    """Return the predicted reward by round, that many standard deviations higher."""
    mean, sd = (np.array(plan.server_series(key, plan.scale)) for key in ("predicted", "predicted_sd"))
    return mean + deviations * sd


def _plot(
    plans: Sequence[BudgetHistory],
    title: str,
    curves: Sequence[Curve],
    *,
    x: str = "round",
    extra: Callable[[Axes], object] = lambda axes: None,
    **limits: Any,
) -> str:
    """Plot curves of every run; `extra` draws what is beside them, `limits` are properties of the axes."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            for points, style in curves:
                axes.plot(*points(plan), **{"color": plan.color, **style})
        axes.set(**limits)
        extra(axes)

    return svg(draw, title, x=x)


def _costs(plans: Sequence[BudgetHistory]) -> Figure:
    """Return the cost of each round, in the account's unit or, of several, as a share of the budget."""
    is_absolute = len({plan.account for plan in plans}) == 1

    def points(plan: BudgetHistory) -> tuple[Sequence[float], Sequence[float]]:
        return plan.numbers, plan.server_series("cost", 1.0 if is_absolute else 100 / plan.total)

    curves: list[Curve] = [(points, {"linewidth": 0.9, "alpha": 0.6}), (points, _DOTS)]
    drawn = _plot(plans, "Cost per round", curves, ymargin=0.15, extra=partial(_mark_stages, plans=plans))
    unit = unit_of(plans[0].account) if is_absolute else "% of the budget"
    stages = _STAGES if len(plans) == 1 and any(plans[0].stages) else ""
    return figure(f"Cost per round, {unit}", "", drawn, f"Cost to each client.{stages}")


def _left(plans: Sequence[BudgetHistory]) -> Figure:
    """Return the remaining budget after each round, and even spending."""
    curves: list[Curve] = [
        (lambda plan: ((0, *plan.numbers), (100, *plan.left)), {}),
        (lambda plan: ((0, plan.config.rounds), (100, 0)), {"color": INK, **_DASHED}),
    ]
    longest = max(plan.config.rounds for plan in plans)
    drawn = _plot(plans, "Remaining budget per round", curves, xlim=(0, longest), ylim=(0, 103))
    return figure("Remaining budget, %", "", drawn, "Of the client with the least. Dashed: even spending.")


def _rewards(plans: Sequence[BudgetHistory], objective: MetricSpec) -> Figure:
    """Return observed rewards, and predicted ones in a band of ± 2 standard deviations."""

    def extra(axes: Axes) -> None:
        axes.axhline(0, color=INK, linewidth=0.7)
        for plan in plans:
            band = _predicted(plan, -2), _predicted(plan, 2)
            axes.fill_between(plan.numbers, *band, color=plan.color, alpha=0.15, linewidth=0)
        _mark_stages(axes, plans)

    curves: list[Curve] = [
        (lambda plan: (plan.numbers, _predicted(plan, 0)), {"linewidth": 1.4}),
        (_series("reward"), _DOTS),
    ]
    drawn = _plot(plans, "Reward per round, observed and predicted", curves, ymargin=0.12, extra=extra)
    has_curve = any("predicted" in r.server for plan in plans for r in plan.rounds)
    caption = f"Dot: improvement by the round.{_PREDICTED if has_curve else ''}"
    return figure(f"Reward per round, {objective.label}", "higher", drawn, caption)


def _by_spent(plans: Sequence[BudgetHistory], objective: MetricSpec) -> Figure:
    """Return the planner's objective against the spent budget."""

    def points(plan: BudgetHistory) -> tuple[Floats, list[float]]:
        return 100 - np.array(plan.left), [r.metrics.get(objective.key, np.nan) for r in plan.rounds]

    drawn = _plot(plans, "Metric by budget spent", [(points, {})], x="budget spent (%)", xlim=(0, 100))
    caption = f"{objective.meaning} Against the spent budget of the client with the least."
    return figure(f"{objective.label} by budget spent", objective.better, drawn, caption)


def _all_clients(plan: BudgetHistory) -> tuple[Sequence[float], Floats]:
    return plan.numbers, np.array(plan.server_series("active")) + np.array(plan.server_series("retired"))


def _mark_stages(axes: Axes, plans: Sequence[BudgetHistory]) -> None:
    """Mark the first rounds of the planner's stages, if one run is shown."""
    plan = plans[0]
    if len(plans) > 1 or not any(plan.stages):
        return
    for stage, members in groupby(zip(plan.numbers, plan.stages, strict=True), key=lambda pair: pair[1]):
        begin = next(members)[0] - 0.5
        axes.axvline(begin, color=FAINT, linewidth=1.0)
        at_top = axes.get_xaxis_transform()
        axes.text(begin + 0.1, 1.0, stage, transform=at_top, va="top", color=INK, fontsize=8.5)


def budget(histories: Sequence[RunRecord]) -> Section:
    """Return cost, reward, price and remaining budget by round; an empty section for runs without noise."""
    runs = zip(histories, labels(histories), COLORS * len(histories), strict=False)
    plans = [plan for history, label, color in runs if (plan := plan_of(history, label, color))]
    if not plans:
        return {}
    every_round = None
    if len(plans) == 1:
        rows = [_row(plans[0], r, stage) for r, stage in zip(plans[0].rounds, plans[0].stages, strict=True)]
        every_round = table(f"All {len(rows)} rounds", list(rows[0]), [list(row.values()) for row in rows])
    return section("Privacy budget", _note(plans), list(_figures(plans)), every_round)


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


def _figures(plans: Sequence[BudgetHistory]) -> Iterator[Figure]:
    """Yield the figures with data."""
    events = [r for plan in plans for r in plan.rounds]
    objectives = {plan.objective.key: plan.objective for plan in plans if plan.has_rewards}
    objective = next(iter(objectives.values())) if len(objectives) == 1 else None
    yield _costs(plans)
    yield _left(plans)
    if objective:
        yield _rewards(plans, objective)
    if any("lambda" in r.server for r in events):
        curves: list[Curve] = [(_series("lambda"), {}), (_series("lambda_max"), _DASHED)]
        yield figure("λ, price of budget", "", _plot(plans, "Price of budget per round", curves, ymargin=0.15), _PRICE)
    if objective and any(objective.key in r.metrics for r in events):
        yield _by_spent(plans, objective)
    if any(r.server.get("retired", 0) > 0 for r in events):
        curves = [(_series("active"), {"drawstyle": "steps-mid"}), (_all_clients, _DASHED)]
        drawn = _plot(plans, "Clients with enough budget per round", curves, ylim=(0, None))
        yield figure("Clients with enough budget", "", drawn, "Dashed: including exhausted budgets.")


_STAGES = " 1a: every arm in turn; 1b: arms drawn uniformly; 2: by prediction and price."
_PRICE = (
    "Over all clients, of an even share of the budget, in units of the largest reward of stage 1. Dashed: its bound Z."
)
_PREDICTED = (
    " Curve: prediction for the drawn arm, from stage 2 on; band: ± 2 standard deviations of the prediction, without the noise"
    " of single rounds."
)


def _row(plan: BudgetHistory, r: RoundEvent, stage: str) -> dict[str, str]:
    """Return heading -> content of a round."""

    def shown(key: str, form: str, factor: float = 1.0) -> str:
        value = r.server.get(key, math.nan)
        return "–" if math.isnan(value) else format(factor * value, form)

    objective, has_planner = plan.objective, any(plan.stages)
    row = {"Round": str(r.round)}
    if has_planner:
        row |= {"Stage": stage, "Arm": shown("arm", ".0f"), "Probability": shown("p_arm", ".2f")}
    row |= {f"Cost, {unit_of(plan.account)}": shown("cost", ".4g"), "Remaining, %": shown("left", ".1f", 100)}
    if has_planner:
        mean, band = shown("predicted", "+.2g", plan.scale), shown("predicted_sd", ".1g", 2 * plan.scale)
        row["Predicted reward"] = f"{mean} ± {band}" if "predicted" in r.server else "–"
    if plan.has_rewards:
        row["Reward"] = shown("reward", "+.2g")
    if any(objective.key in each.metrics for each in plan.rounds):
        row[objective.label] = format_value(objective, r.metrics.get(objective.key))
    if has_planner:
        row["λ"] = shown("lambda", ".3g")
    return row | {"Enough budget": shown("active", ".0f"), "Exhausted": shown("retired", ".0f")}
