"""Result of a run from its final state, metrics and totals, with its verdict in plain words.

The verdict compares the model with a simple baseline and with each client alone.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from platform import python_version
from typing import Literal, TypedDict

from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import FedloomError
from common.tasks.registry import TASKS
from common.tasks.spec import ALONE, ALONE_PREFIX, ALONE_ROUNDS, SIMPLE
from server.aggregation.metrics import Evaluation, PairedSums
from server.record.events import Metrics
from server.record.result import Best, ClientResult, Privacy, Result, Verdict
from server.round.state import RunState

FEWEST_UNITS = 5
"""Number of units below which a verdict says nothing."""

Outcome = Literal["better", "worse", "level", "few"]


def judge_run(task: str, metrics: Metrics, best: Best | None, simple: PairedSums) -> Verdict | None:
    """Return the verdict of a run against the simple baseline; None if no unit was compared.

    Args:
        task: Name of the task.
        metrics: Metrics of the model that is used, on test data.
        best: Best round of the run.
        simple: Differences to the simple baseline.
    """
    spec = TASKS[task]
    comparison = spec.comparison
    if comparison is None or comparison.metric not in metrics or not simple.units:
        return None
    verdict = Verdict(
        metric=comparison.metric,
        better="higher" if comparison.higher_is_better else "lower",
        final=metrics[comparison.metric],
        simple=metrics.get(spec.simple.get(comparison.metric, "")),
        simple_name=comparison.baseline,
        wins_simple=simple.wins,
        units=simple.units,
        unit_name=comparison.units,
        mean_simple=simple.mean,
        se_simple=simple.standard_error,
    )
    return replace(verdict, text=describe(verdict, task, best))


class Floor(TypedDict, total=False):
    """Metric of the simple baseline and its value, as fields of a result."""

    floor_metric: str
    floor_value: float


def floor_of(task: str, metrics: Metrics) -> Floor:
    """Return the metric of the simple baseline and its value; empty if it was not measured."""
    spec = TASKS[task]
    key = spec.simple.get(spec.comparison.metric, "") if spec.comparison else ""
    return Floor(floor_metric=key, floor_value=metrics[key]) if key in metrics else Floor()


def compare_alone(
    verdict: Verdict, task: str, best: Best | None, value: float, alone: PairedSums, note: str
) -> Verdict:
    """Return the verdict with the comparison with each client alone.

    Args:
        verdict: Verdict without it.
        task: Name of the task.
        best: Best round of the run.
        value: Metric of the models that clients trained alone.
        alone: Differences to these models.
        note: Addition to the sentence, such as the number of rounds they trained.
    """
    verdict = replace(verdict, alone=value, wins_alone=alone.wins, mean_alone=alone.mean, se_alone=alone.standard_error)
    return replace(verdict, text=describe(verdict, task, best, alone, note))


def judge(units: int, mean: float | None, standard_error: float | None, better: str) -> Outcome:
    """Return better or worse if the mean difference is at least two standard errors, else level."""
    if units < FEWEST_UNITS or mean is None or standard_error is None:
        return "few"
    gain = mean if better == "higher" else -mean
    if gain == 0 or abs(gain) < 2 * standard_error:
        return "level"
    return "better" if gain > 0 else "worse"


def describe(verdict: Verdict, task: str, best: Best | None, alone: PairedSums | None = None, note: str = "") -> str:
    """Return the verdict in sentences. The value after ± is two standard errors."""
    sentences = [_against_alone(verdict, task, alone, note)] if alone is not None and alone.units else []
    sentences += [_against_simple(verdict)] if verdict.simple is not None else []
    if best is not None and best.test:
        goal = _short(task, (TASKS[task].comparison or TASKS[task].objective).metric)
        sentences.append(
            f"By validation {goal} round {best.round} was better than the last: `--checkpoint best` is used."
        )
    return " ".join(sentences)


def _against_alone(verdict: Verdict, task: str, alone: PairedSums, note: str) -> str:
    assert verdict.alone is not None  # set with the sums
    assert alone.mean is not None
    digits = _digits(verdict.se_alone)
    figures = f"{_short(task, verdict.metric).upper()} {_number(verdict.final, digits)}"
    figures += f" against {_number(verdict.alone, digits)}"
    outcome = judge(alone.units, alone.mean, alone.standard_error, verdict.better)
    if outcome == "few" or verdict.se_alone is None:
        return f"Too few {verdict.unit_name} ({alone.units}) to say if they do better than alone ({figures}{note})."
    figures += f", {_number(alone.mean, digits, signed=True)} ± {_number(2 * verdict.se_alone, digits)}{note}"
    level = ": level" if outcome == "level" else ""
    units = f"{alone.units:,} {verdict.unit_name}"
    do = "does" if alone.wins == 1 else "do"
    return f"Of {units}, {alone.wins:,} {do} better than alone ({figures}) and {alone.losses:,} worse{level}."


def _against_simple(verdict: Verdict) -> str:
    assert verdict.simple is not None  # checked by the caller
    value = _number(verdict.simple, _digits(verdict.se_simple))
    name = f"the simple baseline '{verdict.simple_name}' ({value})"
    match judge(verdict.units, verdict.mean_simple, verdict.se_simple, verdict.better):
        case "better":
            return f"Better than {name}."
        case "worse":
            return f"Worse than {name}."
        case "level":
            return f"Level with {name}."
        case "few":
            return f"Too few {verdict.unit_name} ({verdict.units}) to compare with {name}."


def _short(task: str, key: str) -> str:
    """Return the short name of a metric: `hr@20`, `rmse`."""
    for metric in TASKS[task].metrics:
        if metric.key == key:
            return metric.short
        if metric.key.endswith("*") and key.startswith(metric.key[:-1]) and key[len(metric.key) - 1 :].isdigit():
            return metric.short.replace("*", key[len(metric.key) - 1 :])
    return key


def _digits(standard_error: float | None) -> int:
    """Return the number of digits that show two standard errors, 2 to 4."""
    if not standard_error:
        return 2
    return min(max(math.ceil(-math.log10(2 * standard_error)), 2), 4)


def _number(value: float, digits: int, *, signed: bool = False) -> str:
    """Return a number without a zero before the point: `.54`, `+.15`, `1.20`."""
    text = f"{abs(value):.{digits}f}"
    text = text[1:] if text.startswith("0.") else text
    sign = "−" if value < 0 and float(f"{value:.{digits}f}") else "+" if signed else ""
    return f"{sign}{text}"


def build_result(
    config: RunConfig,
    state: RunState,
    last: Evaluation,
    used: Evaluation,
    *,
    best: Best | None,
    seconds: float,
    traffic: tuple[int, int],
    examples: Mapping[str, int],
    privacy: Privacy,
    reason: str,
    error: FedloomError | None,
) -> Result:
    """Return the result of a run.

    Args:
        config: Configuration of the run.
        state: Final state.
        last: Evaluation of the final model on test data.
        used: That of the model that is used.
        best: Best evaluated round.
        seconds: Duration of the run.
        traffic: Bytes to and from the clients.
        examples: Client -> number of records.
        privacy: Privacy statement.
        reason: Reason of an early end.
        error: Error that ended the run; None if it completed.
    """
    names = sorted({*last.clients, *state.counted})
    return Result(
        run=config.run_id,
        method=config.method,
        task=config.task,
        model=config.model,
        seed=config.seed,
        rounds=config.rounds,
        rounds_done=state.round,
        status="failed" if error else "completed",
        reason=str(error) if error else reason,
        metrics=dict(last.metrics),
        best=best,
        clients={n: ClientResult(examples=examples.get(n, 0), metrics=last.clients.get(n, {})) for n in names},
        seconds=seconds,
        bytes_down=traffic[0],
        bytes_up=traffic[1],
        privacy=privacy,
        model_sha256=sha256(state.model),
        error=type(error).__name__ if error else "",
        summed=last.summed,
        verdict=_judge(config, used, best, state.round),
        **floor_of(config.task, last.metrics),
        versions={**{p: version(p) for p in ("fedloom", "flwr", "torch")}, "python": python_version()},
    )


def _judge(config: RunConfig, used: Evaluation, best: Best | None, done: int) -> Verdict | None:
    """Return the verdict, with the comparison with clients alone if they measured it."""
    verdict = judge_run(config.task, used.metrics, best, used.paired.get(SIMPLE, PairedSums()))
    sums = used.paired.get(ALONE, PairedSums())
    if verdict is None or not sums.units or verdict.metric not in used.alone:
        return verdict
    rounds = round(used.alone.get(ALONE_ROUNDS.removeprefix(ALONE_PREFIX), done))
    note = f"; alone for {rounds} of {done} rounds" if rounds < done else ""
    return compare_alone(verdict, config.task, best, used.alone[verdict.metric], sums, note)
