"""Privacy statement of a run as pages show it, with what its noise cost."""

import math

from common.metrics import USED
from common.tasks.registry import TASKS
from deploy.pages.view import format_value, measure
from server.record.result import Parent, Privacy, Result
from server.record.verdict import Outcome, outcome_of

_HIDDEN = "Noise covers all that a client sends in training; the client adds it before sending."
_SEEN = "From what it sent, nobody, the server included, can"
_BY_UNIT = {
    "client": f"{_SEEN} distinguish its data from any other data better than ε allows.",
    "record": f"{_SEEN} decide if any single record was in its data better than ε allows.",
}

HEADING = "cost of noise"

FALLS_BACK = "; recommend and forecast answer by that baseline where a client's own held-out data agree"

USES = "; {value} as clients use it, each by the better of both on its own validation data"

_JUDGED: dict[Outcome, str] = {
    "few": "too few units to say if training gained more than its noise cost",
    "better": "training gained more than its noise cost",
    "level": "noise cost all that training gained",
    "worse": "noise cost more than training gained; this model is worse than what every client has without the federation",
}


def statement_of(result: Result) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return the privacy statement as a sentence, and its exact terms by heading, with what noise cost."""
    claim, terms = describe(result.privacy)
    cost = noise_cost(result)
    return claim, {**terms, HEADING: (cost,)} if cost else terms


def noise_cost(result: Result) -> str:
    """Compare a run with noise with the simple baseline that sends nothing; empty without either."""
    comparison = TASKS[result.task].comparison if result.task in TASKS else None
    if comparison is None or result.floor_value is None or not result.privacy.epsilon:
        return ""
    task = TASKS[result.task]
    m, final, floor = measure(task.objective.metric), _final(result, task.objective.metric), result.floor_value
    if math.isnan(final) or math.isnan(floor):
        return ""
    shown = [format_value(m, value) for value in (final, floor)]
    outcome: Outcome = "better" if (final > floor) == task.higher_is_better else "worse"
    used, outcome = _final(result, f"{USED.prefix}{m.key}"), "level" if shown[0] == shown[1] else outcome
    if result.verdict and math.isnan(used):  # else the verdict is on what clients use
        outcome = outcome_of(result.verdict)
    rest = FALLS_BACK * (outcome != "better")
    rest = rest if math.isnan(used) else USES.format(value=f"{m.short} {format_value(m, used)}")
    floors = {task.baselines[name].get(m.key): name for name in task.rivals}
    name = floors.get(result.floor_metric, comparison.baseline)
    return f"{m.short} {shown[0]} against {shown[1]} by '{name}', which sends nothing: {_JUDGED[outcome]}{rest}"


def _final(result: Result, metric: str) -> float:
    return (result.metrics or result.local).get(metric, math.nan)


def describe(statement: Privacy) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return the privacy statement as a sentence, and its exact terms by heading."""
    if statement.epsilon is None or statement.epsilon_spent_max is None:
        claim = "No differential privacy: clients send exact values, which may reveal information about their data."
        claim = f"No differential privacy: {statement.guarantee}." if statement.guarantee else claim
        return claim, {"not covered": tuple(statement.uncovered)} if statement.uncovered else {}
    delta = "" if statement.delta is None else f", δ = {statement.delta:g}"
    limit = (
        f"Each client's own ledger stops at ε = {statement.epsilon:g}{delta} for this run, whatever the server requests"
    )
    exact = (
        f"unit {statement.unit}",
        statement.neighbours,
        statement.mechanism,
        f"counted in {counted(statement.account)}",
        *([f"weights {statement.weights}"] if statement.weights else []),
    )
    spent = (
        f"at most ε = {statement.epsilon_spent_max:.3g}{delta} requested from a client; for planning, not the guarantee"
    )
    claim = f"Secure sums: {statement.guarantee}." if statement.guarantee else f"{_HIDDEN} {_BY_UNIT[statement.unit]}"
    return (
        f"{claim} {limit}: {strength(statement.epsilon)}.",
        {"spent": (spent,), "terms": exact, "not covered": tuple(statement.uncovered)},
    )


def describe_parent(parent: Parent) -> str:
    """Return the run from which another one started, and how much its sums count."""
    weight = f", {parent.days:.3g} days before, with weight {parent.weight:.3g}" if parent.weight < 1 else ""
    return f"run {parent.run}{weight}"


def strength(epsilon: float) -> str:
    """Return the tier of an ε by Ponomareva et al. 2023, §5.2: up to 1, up to 10, more."""
    if epsilon <= 1:
        return "a strong guarantee (ε up to 1)"
    return "a reasonable guarantee (ε up to 10)" if epsilon <= 10 else "a weak guarantee (ε above 10)"


def counted(account: str) -> str:
    """Return the name of an account's unit: `zCDP (ρ)`."""
    kind, _, order = account.partition("-")
    names = {"gdp": "Gaussian DP (μ²/2)", "zcdp": "zCDP (ρ)", "pure": "pure differential privacy (ε)"}
    names |= {"prv": "Gaussian DP (μ²/2) of all releases together"}
    return names.get(kind, f"Rényi divergence of order {order}")


def unit_of(account: str) -> str:
    """Return the symbol of an account's unit: `ρ`."""
    return {"gdp": "μ²/2", "prv": "μ²/2", "zcdp": "ρ", "pure": "ε"}.get(account.partition("-")[0], "RDP")


def cost(account: str, value: float) -> str:
    """Return a cost in the account's unit: `ρ 0.0155`."""
    return f"{unit_of(account)} {value:.3g}"
