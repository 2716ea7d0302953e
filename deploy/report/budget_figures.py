"""Figures of a privacy budget: cost, reward, predictions and prices by round."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes

from deploy.report.budget_data import BudgetHistory
from deploy.report.svg import FAINT, INK, svg

_DASHED = (0, (4, 3))


def costs(plans: Sequence[BudgetHistory], absolute: bool) -> str:
    """Plot the cost of each round per client, in the account's unit or as a share of the budget."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            values = np.array(plan.costs) * (1.0 if absolute else 100 / plan.total)
            axes.plot(plan.numbers, values, color=plan.color, linewidth=0.9, alpha=0.6)
            axes.plot(plan.numbers, values, color=plan.color, linestyle="none", marker="o", markersize=3.5)
        axes.margins(y=0.15)
        _stages(axes, plans)
        axes.set_xlabel("round")

    return svg(draw, "Cost per round")


def budget_left(plans: Sequence[BudgetHistory]) -> str:
    """Plot the remaining budget after each round; dashed: even spending."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            axes.plot((0, *plan.numbers), (100, *plan.left), color=plan.color)
        longest = max(plan.config.rounds for plan in plans)
        for rounds in {plan.config.rounds for plan in plans}:
            axes.plot((0, rounds), (100, 0), color=INK, linewidth=1.0, linestyle=_DASHED)
        axes.set_xlim(0, longest)
        axes.set_ylim(0, 103)
        axes.set_xlabel("round")

    return svg(draw, "Remaining budget per round")


def rewards(plans: Sequence[BudgetHistory]) -> str:
    """Plot observed rewards as dots, predicted ones as a curve in a band of ± 2 standard deviations."""

    def draw(axes: Axes) -> None:
        axes.axhline(0, color=INK, linewidth=0.7)
        for plan in plans:
            mean, sd = (np.array(plan.server_series(key, plan.scale)) for key in ("predicted", "predicted_sd"))
            axes.fill_between(plan.numbers, mean - 2 * sd, mean + 2 * sd, color=plan.color, alpha=0.15, linewidth=0)
            axes.plot(plan.numbers, mean, color=plan.color, linewidth=1.4)
            axes.plot(
                plan.numbers,
                plan.server_series("reward"),
                color=plan.color,
                linestyle="none",
                marker="o",
                markersize=3.5,
            )
        axes.margins(y=0.12)
        _stages(axes, plans)
        axes.set_xlabel("round")

    return svg(draw, "Reward per round, observed and predicted")


def prices(plans: Sequence[BudgetHistory]) -> str:
    """Plot λ of each planner that has it, below its dashed bound Z."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            axes.plot(plan.numbers, plan.server_series("lambda"), color=plan.color)
            axes.plot(
                plan.numbers, plan.server_series("lambda_max"), color=plan.color, linewidth=1.0, linestyle=_DASHED
            )
        axes.margins(y=0.15)
        axes.set_xlabel("round")

    return svg(draw, "Price of budget per round")


def by_spent(plans: Sequence[BudgetHistory]) -> str:
    """Plot the planner's objective against the spent budget."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            spent = 100 - np.array(plan.left)
            axes.plot(spent, [r.metrics.get(plan.objective.key, np.nan) for r in plan.rounds], color=plan.color)
        axes.set_xlim(0, 100)
        axes.set_xlabel("budget spent (%)")

    return svg(draw, "Metric by budget spent")


def paying_clients(plans: Sequence[BudgetHistory]) -> str:
    """Plot the number of clients with enough budget for the round; dashed: all clients."""

    def draw(axes: Axes) -> None:
        for plan in plans:
            active, retired = np.array(plan.server_series("active")), np.array(plan.server_series("retired"))
            axes.plot(plan.numbers, active, color=plan.color, drawstyle="steps-mid")
            axes.plot(plan.numbers, active + retired, color=plan.color, linewidth=1.0, linestyle=_DASHED)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("round")

    return svg(draw, "Clients with enough budget per round")


def _stages(axes: Axes, plans: Sequence[BudgetHistory]) -> None:
    """Mark the first rounds of the planner's stages, if one run is shown."""
    plan = plans[0]
    if len(plans) > 1 or not any(plan.stages):
        return
    for stage, members in groupby(zip(plan.numbers, plan.stages, strict=True), key=lambda pair: pair[1]):
        begin = next(members)[0] - 0.5
        axes.axvline(begin, color=FAINT, linewidth=1.0)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
        axes.annotate(stage, (begin, 1.0), (3, -2), color=INK, fontsize=8.5, **place)  # type: ignore[arg-type]
