"""The results page as Markdown, tables and all."""

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

from benchmarks.rules import prose
from benchmarks.rules.claims import FLOOR_PAIRS, METHODS_PAIRS, NAMES, check, duels, mean_of
from benchmarks.rules.study import Row, Study
from benchmarks.studies import markdown

SETUPS = {
    "A": "whole names, trigger-action pairs used at least 8 times",
    "B": "the names' first words, pairs used at least 5 times",
}

PAPER = (  # Table 4: loss, AUC, MR, MR(RT)
    ("*paper:* GraphRule", 0.3238, 0.9491, 9.6997, 9.6745),
    ("*paper:* FedGNN", 0.4905, 0.9072, 12.4479, 12.4240),
    ("*paper:* FedRule", 0.3614, 0.9417, 8.8812, 8.8564),
)

COLUMNS = {
    "loss": ("loss",),
    "AUC": ("auc",),
    "MR": ("mr0",),
    "MR(RT)": ("mr_rt",),
    "HR@5/10/20/40": ("hr5", "hr10", "hr20", "hr40"),
    "with rule filter: HR@10/20": ("filtered_hr10", "filtered_hr20"),
}
CONNECTED = {
    "loss": ("connected_loss",),
    "AUC": ("connected_auc",),
    "MR": ("connected_mr0",),
    "MR(RT)": ("connected_mr_rt",),
    "HR@5/10/20/40": ("connected_hr5", "connected_hr10", "connected_hr20", "connected_hr40"),
}


def page(studies: Sequence[Study], made_by: str) -> str:
    """The whole page; `made_by` says how and with what it was made."""
    parts = [prose.INTRODUCTION.format(made_by=made_by, **prose.CONSTANTS)]
    for study in studies:
        parts += _setup(study)
    return "\n\n".join(parts) + "\n"


def _setup(study: Study) -> Iterable[str]:
    rows = {row.key: row for row in study.rows if row.seeds}
    yield prose.SETUP.format(
        about=SETUPS[study.setup],
        leak=f"{study.leaking_share:.0%}",
        seeds=max(len(row.seeds) for row in rows.values()),
        **vars(study),
    )
    yield markdown(
        ["method", "chosen", "rounds", "seeds", *COLUMNS, "s a run"],
        [*(_measured(row, COLUMNS) for row in rows.values()), *(_published(*row) for row in PAPER)],
    )
    yield from prose.unfinished(study)
    if study.setup == "A":
        yield "### In short"
        yield prose.in_short(rows)
        yield "### Targets"
        yield markdown(["method", "target (mean over seeds)", "measured", "verdict"], check(rows))
    yield "### Method against method, paired by seed"
    yield prose.PAIRED
    yield markdown(["first", "second", *NAMES.values()], duels(rows, METHODS_PAIRS))
    yield "### Against the count floors"
    yield prose.against_floors(rows)
    yield markdown(["first", "second", *NAMES.values()], duels(rows, FLOOR_PAIRS))
    yield "### Without the rules that leak"
    yield prose.LEAK.format(leak=f"{study.leaking_share:.0%}")
    yield markdown(["method", *CONNECTED], [[row.title, *_cells(row, CONNECTED)] for row in rows.values()])
    yield "### What was tuned"
    yield prose.TUNED.format(**prose.CONSTANTS)
    yield markdown(
        ["method", "validation loss by point"],
        [[r.title, "; ".join(f"{p}: {loss}" for p, loss in r.grid.items())] for r in rows.values() if r.grid],
    )


def _measured(row: Row, columns: dict[str, tuple[str, ...]]) -> list[str]:
    seeds = str(len(row.seeds)) + (f" ({len(row.failures)} more diverged)" if row.failures else "")
    return [
        row.title,
        row.point or "–",
        str(row.round or "–"),
        seeds,
        *_cells(row, columns),
        f"{fmean(row.seconds):.0f}",
    ]


def _cells(row: Row, columns: dict[str, tuple[str, ...]]) -> list[str]:
    return [_spread(row, keys[0]) if len(keys) == 1 else _rates(row, keys) for keys in columns.values()]


def _spread(row: Row, metric: str) -> str:
    values = [metrics[metric] for metrics in row.seeds.values()]
    digits = 2 if "mr" in metric else 3
    return f"{fmean(values):.{digits}f}" + (f" ± {stdev(values):.{digits}f}" if len(values) > 1 else "")


def _rates(row: Row, metrics: Sequence[str]) -> str:
    return "/".join(f"{mean_of(row, metric):.2f}".removeprefix("0") for metric in metrics)


def _published(title: str, *figures: float) -> list[str]:
    return [title, "", "", "", *(f"{figure:.3f}" for figure in figures), "", "", ""]
