"""Privacy statement of a finished run, with what its noise cost."""

import math

from common.metrics.known import USED
from common.tasks.registry import TASKS
from deploy.report.metric_table import format_value, measure
from deploy.report.text import privacy
from server.result import Result

HEADING = "cost of noise"

FALLS_BACK = "; recommend and forecast answer by that baseline where a client's own held-out data agree"

USES = "; {value} as clients use it, each by the better of both on its own validation data"

_JUDGED = {
    1: "training gained more than its noise cost",
    0: "noise cost all that training gained",
    -1: "noise cost more than training gained; this model is worse than what every client has without the federation",
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
    m, final, floor = measure(comparison.metric), _final(result, comparison.metric), result.floor_value
    if math.isnan(final) or math.isnan(floor):
        return ""
    shown = [format_value(m, value) for value in (final, floor)]
    gain = 0 if shown[0] == shown[1] else 1 if (final > floor) == comparison.higher_is_better else -1
    used = _final(result, f"{USED.prefix}{comparison.metric}")
    rest = FALLS_BACK * (gain < 1 and comparison.answers)
    rest = rest if math.isnan(used) else USES.format(value=f"{m.short} {format_value(m, used)}")
    return f"{m.short} {shown[0]} against {shown[1]} by '{comparison.baseline}', which sends nothing: {_JUDGED[gain]}{rest}"


def _final(result: Result, metric: str) -> float:
    return (result.metrics or result.local).get(metric, math.nan)
