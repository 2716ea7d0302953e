"""Results page of the rules study, made from stored results alone."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from studies.harness.claim import bullet_list
from studies.harness.experiment import TUNING_SEED
from studies.harness.results import Results
from studies.harness.row import Metrics, Row, in_order, mean_sd
from studies.harness.table import Table
from studies.rules import claims, demo_homes, drift_section, figures, prose
from studies.rules.experiments import (
    EVALUATE_EVERY,
    RIDGE,
    ROUNDS,
    SETS,
    TITLES,
    VALIDATION_SHARE,
    Setup,
)

SEEDS = 5

PAPER = (  # Table 4: loss, AUC, MR, MR(RT)
    ("*paper:* GraphRule", 0.3238, 0.9491, 9.6997, 9.6745),
    ("*paper:* FedGNN", 0.4905, 0.9072, 12.4479, 12.4240),
    ("*paper:* FedRule", 0.3614, 0.9417, 8.8812, 8.8564),
)

SCORED, SINCE = (RIDGE, "ridge-summed"), "2026-11-27T18:00"
"""Rows whose loss and MR have changed, and the time; HR@N has not."""

COLUMNS = {
    "loss": ("loss",),
    "AUC": ("auc",),
    "MR": ("mr0",),
    "MR(RT)": ("mr_rt",),
    "HR@5/10/20/40": ("hr5", "hr10", "hr20", "hr40"),
}
FILTERED = {"with rule filter: HR@10/20": ("filtered_hr10", "filtered_hr20")}
CONNECTED = {title: tuple(f"connected_{metric}" for metric in metrics) for title, metrics in COLUMNS.items()}


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    sets = {name: in_order(results.rows_of(name), TITLES) for name in SETS}
    seconds = sum(sum(row.about.seconds.values()) for rows in sets.values() for row in rows.values())
    yield prose.INTRODUCTION.format(
        made_by=made_by,
        seconds=seconds,
        rounds=ROUNDS,
        tuning_seed=TUNING_SEED,
        share=f"{VALIDATION_SHARE:.0%}",
        every=EVALUATE_EVERY,
    )
    for name, rows in sets.items():
        if rows and "data" in results.rows_of(name):
            yield from _set(name, rows, results.rows_of(name)["data"].only)
            if found := bullet_list(map(str, claims.command_claims(results.rows_of(name)))):
                yield f"### What the command prints\n\n{found}"
    yield from demo_homes.section(results)
    yield from figures.section(results)
    yield from drift_section.section(results)


def _set(name: Setup, rows: Mapping[str, Row], sizes: Metrics) -> Iterator[str]:
    seeds = max(len(row.trials) for row in rows.values())
    yield prose.SETUP.format(setup=name, about=SETS[name], seeds=seeds, **sizes)
    columns = {**COLUMNS, **FILTERED}
    header = ["method", "chosen", "rounds", "seeds", *columns, "s a run"]
    yield str(
        Table(header, [*(_method_cells(row, columns) for row in rows.values()), *(_paper(*row) for row in PAPER)])
    )
    yield from _missing_runs(rows)
    if name == "A":
        yield f"### Findings\n\n{bullet_list(claims.findings(rows))}"
        yield f"### Targets\n\n{claims.targets(rows)}"
    yield f"### Comparison of methods, paired by seed\n\n{prose.PAIRED}\n\n{claims.comparisons(rows, claims.METHODS)}"
    yield "### Comparison with the count baselines"
    yield bullet_list(claims.against_counts(rows))
    yield str(claims.comparisons(rows, claims.BASELINES))
    yield f"### Results without isolated devices\n\n{prose.LEAK.format(leak=sizes['leaking_share'])}"
    yield str(Table(["method", *CONNECTED], [[row.title, *_cells(row, CONNECTED)] for row in rows.values()]))
    yield f"### Tuning\n\n{prose.TUNED.format(tuning_seed=TUNING_SEED)}"
    yield str(
        Table(["method", "validation loss by point"], [[r.title, _grid(r)] for r in rows.values() if r.about.grid])
    )


def _method_cells(row: Row, columns: Mapping[str, Sequence[str]]) -> list[str]:
    failures = f" ({len(row.about.failures)} more diverged)" if row.about.failures else ""
    chosen, stop = (str(row.about.chosen.get(name, "–")) for name in ("point", "round"))
    seconds = f"{fmean(row.about.seconds.values()):.0f}" if row.about.seconds else ""
    return [row.title, chosen, stop, f"{len(row.trials)}{failures}", *_cells(row, columns), seconds]


def _cells(row: Row, columns: Mapping[str, Sequence[str]]) -> list[str]:
    return [_spread(row, keys[0]) if len(keys) == 1 else _rates(row, keys) for keys in columns.values()]


def _spread(row: Row, metric: str) -> str:
    return mean_sd(row.values(metric).values(), 2 if "mr" in metric else 3)


def _rates(row: Row, metrics: Sequence[str]) -> str:
    return "/".join(f"{row.mean(metric):.2f}".removeprefix("0") for metric in metrics)


def _paper(title: str, *figures: float) -> list[str]:
    return [title, "", "", "", *(f"{figure:.3f}" for figure in figures), "", "", ""]


def _grid(row: Row) -> str:
    return "; ".join(
        f"{point}: {best['loss']:.3f} (round {best['round']:.0f})" if best else f"{point}: diverges"
        for point, best in row.about.grid.items()
    )


def _missing_runs(rows: Mapping[str, Row]) -> Iterator[str]:
    """State which rows are absent or lack seeds."""
    absent = [title for key, title in TITLES.items() if key not in rows]
    short = [row.title for row in rows.values() if len(row.trials) + len(row.about.failures) < SEEDS]
    old = [row.title for key, row in rows.items() if key in SCORED and row.about.made < SINCE]
    if old:
        yield f"Loss and MR from before log-odds were calibrated and triples of a home were scored: {'; '.join(old)}."
    if absent:
        yield f"**Not run yet:** {'; '.join(absent)}."
    if short:
        yield f"**Fewer than {SEEDS} seeds so far:** {'; '.join(short)}. Their ± and comparisons use these seeds alone."
