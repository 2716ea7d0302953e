"""Section on the privacy budget: cost, remaining budget, and the planner's predictions and prices."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from deploy.report.budget_data import BudgetHistory, plan_of
from deploy.report.budget_figures import budget_left, by_spent, costs, paying_clients, prices, rewards
from deploy.report.metric_table import format_value
from deploy.report.run import RunRecord, labels
from deploy.report.sections import Section, Table, figure, section, table
from deploy.report.svg import COLORS
from deploy.report.text import cost, counted

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
