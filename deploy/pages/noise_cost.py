"""Privacy statement of a run with what its noise cost, against the simple baseline that sends nothing."""

import math

from common.metrics import USED
from common.tasks.registry import TASKS
from deploy.pages.view import format_value, measure, privacy
from server.record.result import Result
from server.record.verdict import Outcome, outcome_of

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
    claim, terms = privacy(result.privacy)
    cost = noise_cost(result)
    return claim, {**terms, HEADING: (cost,)} if cost else terms


def noise_cost(result: Result) -> str:
    """Compare a run with noise with the simple baseline that sends nothing; empty without either."""
    comparison = TASKS[result.task].comparison if result.task in TASKS else None
    if comparison is None or result.floor_value is None or not (result.privacy.counts or result.privacy.epsilon):
        return ""
    task = TASKS[result.task]
    m, final, floor = measure(task.objective.metric), _final(result, task.objective.metric), result.floor_value
    if math.isnan(final) or math.isnan(floor):
        return ""
    shown = [format_value(m, value) for value in (final, floor)]
    outcome: Outcome = "better" if (final > floor) == task.higher_is_better else "worse"
    outcome = outcome_of(result.verdict) if result.verdict else "level" if shown[0] == shown[1] else outcome
    used = _final(result, f"{USED.prefix}{m.key}")
    rest = FALLS_BACK * (outcome != "better" and comparison.answers)
    rest = rest if math.isnan(used) else USES.format(value=f"{m.short} {format_value(m, used)}")
    return f"{m.short} {shown[0]} against {shown[1]} by '{comparison.baseline}', which sends nothing: {_JUDGED[outcome]}{rest}"


def _final(result: Result, metric: str) -> float:
    return (result.metrics or result.local).get(metric, math.nan)
