"""Texts of sizes, times and costs, and the privacy statement of a run with what its noise cost."""

import math

from common.metrics import USED
from common.tasks.registry import TASKS
from common.text import count, printable
from common.text import size as size
from deploy.pages.metrics import format_value, measure
from server.record.result import Privacy, Result

COMMAND_MARK = "`"
"""Mark before and after a command in the text of a result."""


def duration(seconds: float) -> str:
    """Return a duration: `0.42 s`, `12.6 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def measured_by(result: Result) -> str:
    """Return the number of clients behind the metrics; empty if all or none of them sent single replies."""
    if result.summed:
        noise = f", each ± {2 * result.summed.noise:.1%} of its range by noise" if result.summed.noise else ""
        return f"plain means over {count(result.summed.clients, 'client')}, from secure sums{noise}"
    shared = (client.metrics.values() for client in result.clients.values())
    measuring, clients = sum(not all(map(math.isnan, values)) for values in shared), len(result.clients)
    if not 0 < measuring < clients:
        return ""
    return f"by {measuring:,} of {clients:,} clients; the rest have no held-out data, share no metrics or are gone"


def unmeasured(result: Result) -> str:
    """Return why a run with noise has no metrics, and how many clients trained; empty if it has some."""
    if result.metrics or result.privacy.unit == "none" or not result.clients:
        return ""
    trained = count(len(result.clients), "client")
    if result.privacy.trust == "helpers":
        return f"no metrics: none are summed (`privacy.metric-share`) or shared (`share-metrics = always`); {trained} trained"
    return f"no metrics: owners share none beside noise (policy `share-metrics = always`); {trained} trained"


def privacy(statement: Privacy) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return the privacy statement as a sentence, and its exact terms by heading if there is a guarantee."""
    if statement.epsilon is None or statement.epsilon_spent_max is None:
        claim = "No differential privacy: clients send exact values, which may reveal information about their data."
        claim = f"No differential privacy: {statement.guarantee}." if statement.guarantee else claim
        claim += f" Except for their counts, which carry {statement.counts}." if statement.counts else ""
        return (f"{claim} Not covered: {', '.join(statement.uncovered)}." if statement.uncovered else claim), {}
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


def strength(epsilon: float) -> str:
    """Return the tier of an ε by Ponomareva et al. 2023, §5.2: up to 1, up to 10, more."""
    if epsilon <= 1:
        return "a strong guarantee (ε up to 1)"
    return "a reasonable guarantee (ε up to 10)" if epsilon <= 10 else "a weak guarantee (ε above 10)"


def counted(account: str) -> str:
    """Return the name of an account's unit: `zCDP (ρ)`."""
    order = account.partition("-")[2]
    return {"zcdp": "zCDP (ρ)", "pure": "pure differential privacy (ε)"}.get(
        account, f"Rényi divergence of order {order}"
    )


def cost(account: str, value: float) -> str:
    """Return a cost in the account's unit: `ρ 0.0155`."""
    return f"{ {'zcdp': 'ρ', 'pure': 'ε'}.get(account, 'RDP') } {value:.3g}"


_HIDDEN = "Noise covers all that a client sends in training; the client adds it before sending."
_SEEN = "From what it sent, nobody, the server included, can"
_BY_UNIT = {
    "client": f"{_SEEN} distinguish its data from any other data better than ε allows.",
    "record": f"{_SEEN} decide if any single record was in its data better than ε allows.",
}


def first_line(reason: str, longest: int = 160) -> str:
    """Return the first line of a reason, shortened to `longest` characters; stack traces stay in the log."""
    return printable(reason.strip().partition("\n")[0], longest)


def without_marks(text: str) -> str:
    """Return a text for people without the marks around its commands."""
    return text.replace(COMMAND_MARK, "")


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
