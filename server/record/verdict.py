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
from common.metrics import USED
from common.tasks.registry import TASKS
from common.tasks.spec import ALONE, BOTH, PERSONAL, SHARED, SIMPLE, SUMS, AnyTask, uses_key
from server.aggregation.metrics import Evaluation, PairedSums
from server.record.events import Metrics
from server.record.result import Best, ClientResult, Parent, Privacy, Result, Verdict
from server.round.state import RunState

FEWEST_UNITS = 5
"""Number of units below which a verdict says nothing."""

Outcome = Literal["better", "worse", "level", "few"]


def judge_run(task: str, metrics: Metrics, best: Best | None, paired: Mapping[str, PairedSums]) -> Verdict | None:
    """Return the verdict of a run against the strongest rival; None if no unit was compared.

    `paired` has the differences to the rivals, and numbers of units by what they use.
    """
    spec = TASKS[task]
    comparison, metric = spec.comparison, spec.objective.metric
    if comparison is None or metric not in metrics:
        return None
    rival = strongest_rival(spec, metrics)
    simple = paired.get(spec.paired_key(SIMPLE, rival), PairedSums())
    if not simple.units:
        return None
    verdict = Verdict(
        metric=metric,
        better="higher" if spec.higher_is_better else "lower",
        final=metrics.get(f"{USED.prefix}{metric}", metrics[metric]),
        simple=metrics.get(spec.baselines[rival].get(metric, "")),
        simple_name=rival,
        wins_simple=simple.wins,
        units=simple.units,
        unit_name=comparison.units,
        mean_simple=simple.mean,
        se_simple=simple.standard_error,
        helped=simple.wins,
        helped_of=simple.units,
        uses=count_uses(task, paired),
    )
    return replace(verdict, text=describe(verdict, task, best))


def strongest_rival(task: AnyTask, metrics: Metrics) -> str:
    """Return the baseline with the best metric, of those for which clients send nothing."""
    keys = {name: task.baselines[name].get(task.objective.metric, "") for name in task.rivals}
    sign = 1 if task.higher_is_better else -1
    measured = [name for name in keys if not math.isnan(metrics.get(keys[name], math.nan))]
    return max(measured, key=lambda name: sign * metrics[keys[name]], default=task.rivals[0])


def count_uses(task: str, paired: Mapping[str, PairedSums]) -> dict[str, int]:
    """Return the number of units that use each model and baseline; empty if clients chose none."""
    names = PERSONAL, SHARED, SUMS, *TASKS[task].baselines
    return {name: paired[key].wins for name in names if (key := uses_key(name)) in paired}


def describe_uses(verdict: Verdict) -> str:
    """Return how many units use what, in a sentence; empty without a choice."""
    called = {PERSONAL: f"their {PERSONAL}", SHARED: f"the {SHARED}"}
    found = [(number, called.get(name, name)) for name, number in verdict.uses.items()]
    if not found:
        return ""
    (number, model), *rest = found
    others = "".join(f", {count:,} {name}" for count, name in rest if count)
    total, use = sum(verdict.uses.values()), "uses" if number == 1 else "use"
    return f"{number:,} of {total:,} {verdict.unit_name} {use} {model}{others}, by their own validation data."


class Floor(TypedDict, total=False):
    """Metric of the strongest rival and its value, as fields of a result."""

    floor_metric: str
    floor_value: float


def floor_of(task: str, metrics: Metrics) -> Floor:
    """Return the metric of the strongest rival and its value; empty if it was not measured."""
    spec = TASKS[task]
    key = spec.baselines[strongest_rival(spec, metrics)].get(spec.objective.metric, "") if spec.comparison else ""
    return Floor(floor_metric=key, floor_value=metrics[key]) if key in metrics else Floor()


def compare_alone(
    verdict: Verdict, task: str, best: Best | None, value: float, sums: Mapping[str, PairedSums], note: str = ""
) -> Verdict:
    """Return the verdict with the comparison with each client alone.

    `value` and `sums` are of models that clients trained alone, and `note` is an addition to the figures.
    """
    both_key = TASKS[task].paired_key(BOTH, verdict.simple_name)
    alone, both = sums[ALONE], sums[both_key] if verdict.simple is not None else sums[ALONE]
    verdict = replace(verdict, alone=value, wins_alone=alone.wins, mean_alone=alone.mean, se_alone=alone.standard_error)
    verdict = replace(verdict, helped=both.wins, helped_of=both.units)
    return replace(verdict, text=describe(verdict, task, best, note))


def judge(units: int, mean: float | None, standard_error: float | None, better: str) -> Outcome:
    """Return better or worse if the mean difference is at least two standard errors, else level."""
    if units < FEWEST_UNITS or mean is None or standard_error is None:
        return "few"
    gain = mean if better == "higher" else -mean
    if gain == 0 or abs(gain) < 2 * standard_error:
        return "level"
    return "better" if gain > 0 else "worse"


def outcome_of(verdict: Verdict) -> Outcome:
    """Return the worst outcome against what a client has without the federation."""
    outcomes = [outcome for _, outcome, _ in _comparisons(verdict)]
    return next((each for each in _WORST_FIRST if each in outcomes), "few")


_WORST_FIRST: tuple[Outcome, ...] = ("few", "worse", "level", "better")

_SAYS: dict[Outcome, str] = {
    "better": "The federation pays",
    "level": "The federation makes no clear difference",
    "worse": "The federation does not pay",
}


def describe(verdict: Verdict, task: str, best: Best | None, note: str = "") -> str:
    """Return the verdict in a sentence, how many units use what, and the sentence on the best round.

    A difference is a mean over units, where a metric is one over records; the value after ± is two standard errors.
    """
    sentences = [_sentence(verdict, task, note)] if verdict.simple is not None or verdict.alone is not None else []
    if uses := describe_uses(verdict):
        sentences.append(uses)
    if best is not None and best.test:
        goal = _short(task, TASKS[task].objective.metric)
        sentences.append(
            f"By validation {goal} round {best.round} was better than the last: `--checkpoint best` is used."
        )
    return " ".join(sentences)


def _sentence(verdict: Verdict, task: str, note: str) -> str:
    compared, outcome = _comparisons(verdict), outcome_of(verdict)
    digits = max(_digits(verdict.se_simple), _digits(verdict.se_alone))
    first, _, rest = _short(task, verdict.metric).partition(" ")
    figures = f"{' '.join(filter(None, (first.upper(), rest)))} {_number(verdict.final, digits)}{note}"
    rivals = " and than ".join(name for name, _, _ in compared)
    if outcome == "few":
        few = f"Too few {verdict.unit_name} ({min(verdict.units, verdict.helped_of)})"
        return f"{few} to say if they do better than {rivals} ({figures})."
    versus = ", ".join(f"{_range(verdict, name, digits)} against {name}" for name, _, _ in compared)
    versus = f"mean over {verdict.unit_name} {versus}"
    helped = (
        f"{verdict.helped:,} of {verdict.helped_of:,} {verdict.unit_name} {'does' if verdict.helped == 1 else 'do'}"
    )
    advice = " or ".join(remedy for _, each, remedy in compared if each == outcome)
    advice = "" if outcome == "better" else f"; let more {verdict.unit_name} take part, or {advice}"
    return f"{_SAYS[outcome]}: {helped} better than {rivals} ({figures}; {versus}){advice}."


def _comparisons(verdict: Verdict) -> list[tuple[str, Outcome, str]]:
    """Return name, outcome and remedy of each comparison."""
    found: list[tuple[str, Outcome, str]] = []
    if verdict.alone is not None:
        outcome = judge(verdict.helped_of, verdict.mean_alone, verdict.se_alone, verdict.better)
        found.append(("alone", outcome, "train each alone with `--method local`"))
    if verdict.simple is not None:
        outcome = judge(verdict.units, verdict.mean_simple, verdict.se_simple, verdict.better)
        found.append((f"'{verdict.simple_name}'", outcome, f"use '{verdict.simple_name}', which sends nothing"))
    return found


def _range(verdict: Verdict, name: str, digits: int) -> str:
    alone = (verdict.mean_alone, verdict.se_alone)
    mean, error = alone if name == "alone" else (verdict.mean_simple, verdict.se_simple)
    assert mean is not None  # else the units are too few
    assert error is not None
    return f"{_number(mean, digits, signed=True)} ± {_number(2 * error, digits)}"


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
    parent: Parent | None = None,
) -> Result:
    """Return the result of a run.

    `last` evaluates the final model on test data, `used` the model that is used. `traffic` has bytes to and from the clients.
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
        parent=parent,
        model_sha256=sha256({**state.model, **state.statics} if config.has_closed_form else state.model),
        error=type(error).__name__ if error else "",
        summed=last.summed,
        verdict=_judge(config, used, best),
        **floor_of(config.task, last.metrics),
        versions={**{p: version(p) for p in ("fedloom", "flwr", "torch")}, "python": python_version()},
    )


def _judge(config: RunConfig, used: Evaluation, best: Best | None) -> Verdict | None:
    """Return the verdict, with the comparison with clients alone if each that compares has measured it."""
    verdict = judge_run(config.task, used.metrics, best, used.paired)
    if verdict is None or verdict.metric not in used.alone or not {ALONE, BOTH} <= used.paired.keys():
        return verdict
    if missing := max(verdict.units - used.paired[ALONE].units, 0):
        note = f"; not compared with alone, unfinished for {missing:,} of {verdict.units:,} {verdict.unit_name}"
        return replace(verdict, text=describe(verdict, config.task, best, note))
    return compare_alone(verdict, config.task, best, used.alone[verdict.metric], used.paired)
