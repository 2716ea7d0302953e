"""Section and figure of the drift laboratory."""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from common.text import count
from studies.harness.claim import Comparison, compare
from studies.harness.contrast import SMALLEST
from studies.harness.figure_file import drawn
from studies.harness.results import Results
from studies.harness.row import Row, in_order, mean_sd
from studies.harness.table import Table
from studies.rules import prose
from studies.rules.curves import RISE
from studies.rules.drift import (
    COHORT_SPECIALISATION,
    COHORTS,
    DISSIMILARITY,
    DISSIMILARITY_ROUNDS,
    DRIFT,
    ENDS,
    HOMES,
    LEAST_RULES,
    MANY,
    MEASURED_GRADIENTS,
    METHODS,
    ROUNDS,
    SAME_TYPE,
    SERVER,
    SGD,
    SPECIALISATIONS,
    STEPS,
    TWINS,
    busy_set,
    drift_set,
)

METRICS = ("loss", "auc", "mr0")

LEAST = SMALLEST["rules"]["loss"]

STYLES = {1: ("#5b6570", "x"), 3: ("#e69f00", "^"), 12: ("#0072b2", "o"), 30: ("#d55e00", "s")}
"""Local steps -> colour (Okabe and Ito) and mark."""


def section(results: Results) -> Iterator[str]:
    """Yield the tables of the laboratory and of homes with twins; nothing without rows."""
    ends = [f"{metric}, {title}" for metric in ("loss", "rise", "MR") for title, *_ in METHODS.values()]
    table = Table(["specialisation", "rows", "seeds", *ends, "MR, FedRule − FedGNN"])
    for name, specialisation, suffix, title in _places():
        if pair := _pair(results, name, suffix):
            table.rows.append([f"{specialisation:g}", title, *_cells(*pair)])
    if table.rows:
        about = prose.DRIFT.format(homes=HOMES, least=LEAST_RULES, rounds=ROUNDS, rate=SGD["lr"], clip=SGD["clip-norm"])
        yield about
        yield from _finding(results)
        yield str(table)
    twins = in_order(results.rows_of(TWINS, DRIFT), (one.key for one in SAME_TYPE)).values()
    if twins:
        cells = [[row.title, str(len(row.trials)), *(_text(row, metric) for metric in METRICS)] for row in twins]
        yield f"{prose.TWINS}\n\n{Table(['method', 'seeds', 'loss', 'AUC', 'MR'], cells)}"


def gaps(results: Results, steps: int) -> dict[float, float]:
    """Return specialisation -> mean loss of FedRule less that of FedGNN."""
    pairs = {one: _pair(results, drift_set(one), f"{steps}") for one in SPECIALISATIONS}
    found = {one: compare(pair[1], pair[0], "loss") for one, pair in pairs.items() if pair}
    return {one: round(comparison.mean, 6) + 0.0 for one, comparison in found.items() if comparison}


def dissimilarities(results: Results) -> dict[float, float]:
    """Return specialisation -> B²."""
    rows = {one: results.rows_of(drift_set(one), DISSIMILARITY) for one in SPECIALISATIONS}
    key = MEASURED_GRADIENTS.key
    return {one: found[key].mean(DISSIMILARITY) for one, found in rows.items() if key in found}


def is_complete(results: Results) -> bool:
    """Return True if every specialisation has its rows of all numbers of steps, and its B²."""
    found = (dissimilarities(results), *(gaps(results, steps) for steps in STEPS))
    return all(one.keys() == set(SPECIALISATIONS) for one in found)


def draw(results: Results, path: Path) -> None:
    """Write two panels of complete rows: difference of the losses by specialisation, and by B²."""
    apart = dissimilarities(results)
    with drawn(path, 7.2, 2.8) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for steps, (colour, mark) in STYLES.items():
            points = gaps(results, steps)
            style = {"color": colour, "markersize": 4, "label": count(steps, "local step")}
            left.plot(list(points), list(points.values()), f"{mark}-", **style)
            right.plot([apart[one] for one in points], list(points.values()), mark, **style)
        for axes, title in ((left, "specialisation of households"), (right, "gradient dissimilarity B²")):
            axes.axhline(0.0, color="#5b6570", linewidth=0.8)
            axes.set_xlabel(title, fontsize=8)
            axes.grid(axis="y", color="#d9dde2", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(length=0, labelsize=8)
        left.set_ylabel("test loss, FedRule − FedGNN", fontsize=8)
        left.legend(fontsize=7.5, frameon=False)


def _finding(results: Results) -> Iterator[str]:
    """Yield the figure, and where FedRule begins to win; nothing before all is measured."""
    if not is_complete(results):
        return
    apart, found = dissimilarities(results), {steps: gaps(results, steps) for steps in STEPS}
    words = "; ".join(
        f"{count(steps, 'local step')} {', '.join(f'{gap:.3f}' for gap in one.values())}"
        for steps, one in found.items()
    )
    yield f"![Loss of FedRule less that of FedGNN, by specialisation: {words}](assets/rules-drift.svg)"
    listed = ", ".join(f"{value:.1f}" for value in apart.values())
    yield (
        f"B² = mean ‖∇L_k‖² / ‖mean ∇L_k‖², after {DISSIMILARITY_ROUNDS} rounds of FedGNN with {MANY} steps, is {listed} from"
        f" the smallest specialisation to the largest. {_wins(apart, found)}"
    )


def _wins(apart: Mapping[float, float], found: Mapping[int, Mapping[float, float]]) -> str:
    """State for each number of steps at which B² the loss of FedRule is lower by the smallest effect."""
    parts = []
    for steps, points in found.items():
        others = sorted(apart[one] for one, gap in points.items() if gap > -LEAST)
        listed = ", ".join(f"{one:.1f}" for one in others)
        where = "at no B²" if len(others) == len(apart) else f"at all but {listed}" if others else "at every B²"
        parts.append(f"{where} with {count(steps, 'local step')}")
    return f"FedRule's loss is lower by at least {LEAST:g} {', '.join(parts)}."


def _places() -> Iterator[tuple[str, float, str, str]]:
    """Yield data set, specialisation, end of the keys and title of each pair of rows."""
    for one, steps in product(SPECIALISATIONS, STEPS):
        yield drift_set(one), one, f"{steps}", count(steps, "local step")
    for one in SPECIALISATIONS:
        yield drift_set(one), one, SERVER, f"{MANY}, server Adam"
    for cohort in COHORTS:
        yield (
            drift_set(COHORT_SPECIALISATION),
            COHORT_SPECIALISATION,
            f"{MANY}-cohort-{cohort:g}",
            f"{MANY}, cohort {cohort:g}",
        )
    for one in ENDS:
        yield busy_set(one), one, f"{MANY}", f"{MANY}, homes of 20 rules or more"


def _pair(results: Results, name: str, suffix: str) -> list[Row]:
    """Return the rows of FedGNN and FedRule; empty unless both are measured."""
    rows = results.rows_of(name, DRIFT)
    pair = [rows[key] for method in METHODS if (key := f"{method}-{suffix}") in rows]
    return pair if len(pair) == len(METHODS) else []


def _cells(first: Row, second: Row) -> list[str]:
    found: Comparison | None = compare(second, first, "mr0")
    values = [_text(row, metric) for metric in ("loss", RISE, "mr0") for row in (first, second)]
    return [str(found.seeds if found else 0), *values, found.text(2) if found else ""]


def _text(row: Row, metric: str) -> str:
    return mean_sd(row.values(metric).values(), 2 if metric == "mr0" else 3)
