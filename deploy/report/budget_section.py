"""What the page says of a privacy budget: what rounds cost, what was left, and what the planner made of it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from deploy.report.budget_data import BudgetHistory, plan_of
from deploy.report.budget_figures import budget_left, by_spent, costs, gains, payers, prices
from deploy.report.metric_table import format_value
from deploy.report.run import RunRecord, labels
from deploy.report.sections import Section, Table, figure, section, table
from deploy.report.svg import COLOURS
from deploy.report.text import cost, counted

_Column = tuple[str, Callable[[BudgetHistory, int], str]]


def budget(histories: Sequence[RunRecord]) -> Section:
    """Cost, gain, price and what was left, by round; nothing for runs without noise."""
    found = zip(histories, labels(histories), COLOURS * len(histories), strict=False)
    plans = [plan for history, label, colour in found if (plan := plan_of(history, label, colour))]
    if not plans:
        return {}
    single = plans[0] if len(plans) == 1 else None
    return section("Privacy budget", _note(plans), _figures(plans), _table(single) if single else None)


def _note(plans: Sequence[BudgetHistory]) -> str:
    if len(plans) > 1:
        all_of = dict.fromkeys(cost(plan.account, plan.total) for plan in plans)
        each = "; ".join(f"{plan.label} {cost(plan.account, plan.total)}" for plan in plans)
        return f"What a client may spend in all: {next(iter(all_of)) if len(all_of) == 1 else each}."
    [plan] = plans
    options = plan.config.privacy
    delta = "" if plan.account == "pure" else f", δ = {options.delta:g}"
    whole, even = cost(plan.account, plan.total), cost(plan.account, plan.total / plan.config.rounds)
    return (
        f"Every client may spend {whole} in this run, as much as ε = {options.epsilon:g}{delta} allows, "
        f"in {counted(plan.account)}. Evenly spent that is {even} a round."
    )


def _figures(plans: Sequence[BudgetHistory]) -> list[dict[str, str]]:
    """Those that there is something to draw for."""
    accounts = {plan.account for plan in plans}
    unit = cost(plans[0].account, 0).split()[0] if len(accounts) == 1 else "% of the budget"
    several = len(plans) > 1
    stages = "" if several or not any(plans[0].stages) else _STAGES
    figures = [
        figure(f"Cost per round, {unit}", "", costs(plans, len(accounts) == 1), f"What each client paid.{stages}"),
        figure("Budget left, %", "", budget_left(plans), "To the client with the least. Dashed: spent evenly."),
    ]
    judges = {plan.judge.key: plan.judge for plan in plans if plan.judged}
    if len(judges) == 1:
        [judge] = judges.values()
        figures.append(figure(f"Gain per round, {judge.label}", "higher", gains(plans), _gain_caption(plans)))
    if any("lambda" in r.server for plan in plans for r in plan.rounds):
        figures.append(figure("λ, what budget is worth", "", prices(plans), _PRICE))
    if len(judges) == 1 and any(judge.key in r.metrics for plan in plans for r in plan.rounds):
        caption = f"{judge.meaning} Against what the client with the least left has spent."
        figures.append(figure(f"{judge.label} by budget spent", judge.better, by_spent(plans), caption))
    if any(retired > 0 for plan in plans for retired in plan.told("retired")):
        figures.append(figure("Clients that can pay", "", payers(plans), "Dashed: with those whose budget is spent."))
    return figures


_STAGES = " 1a: every arm in turn; 1b: arms drawn evenly; 2: by prediction and price."
_PRICE = (
    "Over all clients, of an even share of the budget, in units of the largest gain of stage 1. Dashed: its bound Z."
)


def _gain_caption(plans: Sequence[BudgetHistory]) -> str:
    seen = "Dot: how much better the round made it."
    if not any("predicted" in r.server for plan in plans for r in plan.rounds):
        return seen
    line = "Line: predicted for the arm that was drawn, from stage 2 on"
    return f"{seen} {line}; band: ± 2 standard deviations of it, to which a single round adds noise."


def _table(plan: BudgetHistory) -> Table:
    """A row a round."""
    columns = [*_columns(plan)]
    rows = [[content(plan, k) for _, content in columns] for k in range(len(plan.rounds))]
    return table(f"All {len(rows)} rounds", [name for name, _ in columns], rows)


def _columns(plan: BudgetHistory) -> list[_Column]:
    unit, judge = cost(plan.account, 0).split()[0], plan.judge
    arms = [("Stage", _stage), ("Arm", _told("arm", ".0f")), ("Chance", _told("p_arm", ".2f"))]
    forecast: list[_Column] = [("Predicted gain", _predicted), ("λ", _told("lambda", ".3g"))]
    shown: list[_Column] = [("Round", lambda plan, k: str(plan.rounds[k].round))]
    shown += arms if any(plan.stages) else []
    shown += [(f"Cost, {unit}", _told("cost", ".4g")), ("Left, %", _told("left", ".1f", 100))]
    shown += forecast[:1] if any(plan.stages) else []
    shown += [("Gain", _told("reward", "+.2g"))] if plan.judged else []
    if any(judge.key in r.metrics for r in plan.rounds):
        shown.append((judge.label, lambda plan, k: format_value(judge, plan.rounds[k].metrics.get(judge.key))))
    shown += forecast[1:] if any(plan.stages) else []
    return [*shown, ("Can pay", _told("active", ".0f")), ("Cannot", _told("retired", ".0f"))]


def _stage(plan: BudgetHistory, k: int) -> str:
    return plan.stages[k]


def _predicted(plan: BudgetHistory, k: int) -> str:
    numbers = plan.rounds[k].server
    if "predicted" not in numbers:
        return "–"
    mean, band = plan.scale * numbers["predicted"], 2 * plan.scale * numbers["predicted_sd"]
    return f"{mean:+.2g} ± {band:.1g}"


def _told(key: str, form: str, factor: float = 1.0) -> Callable[[BudgetHistory, int], str]:
    """A number that the server told, in that format."""

    def content(plan: BudgetHistory, k: int) -> str:
        value: Any = plan.rounds[k].server.get(key, math.nan)
        return "–" if math.isnan(value) else format(factor * value, form)

    return content
