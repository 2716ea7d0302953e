"""Claims of the rules page: targets, and comparisons of methods and baselines paired by seed."""

from collections.abc import Iterator, Mapping, Sequence

from common.text import count
from studies.harness.claim import Claim, Comparison, compare, verdict
from studies.harness.row import Row, in_order
from studies.harness.table import Table
from studies.rules.experiments import COMMAND, RIDGE

NAMES = {"loss": "loss", "auc": "AUC", "mr0": "MR", "hr20": "HR@20", "filtered_hr20": "HR@20 with rule filter"}
HIGHER_IS_BETTER = {"auc", "hr20", "filtered_hr20"}

TARGETS = {
    "fedrule-adam": {"loss": 0.2, "auc": 0.98, "mr0": 5.0},
    "fedrule-server": {"loss": 0.2, "auc": 0.98, "mr0": 5.0},
    "default-fedrule": {"loss": 0.08, "mr0": 1.0, "hr20": 0.4},
}
"""Row -> metric -> bound on its mean over seeds, on setup A."""

METHODS = (
    ("fedrule-adam", "fedgnn-adam"),
    ("fedrule-adam", "fedgnn-adam-reset"),
    ("fedrule-server", "fedgnn-adam"),
    ("fedrule-server", "fedgnn-server"),
    ("fedrule-sgd", "fedgnn-sgd"),
    ("fedrule-adam", "graphrule-adam"),
    ("default-fedrule", "default-fedgnn"),
    ("default-fedrule", "fedrule-adam"),
)

FINDINGS = (
    ("fedrule-adam", "fedgnn-adam"),
    ("fedrule-server", "fedgnn-adam"),
    ("fedrule-server", "fedgnn-server"),
    ("fedrule-sgd", "fedgnn-sgd"),
    ("default-fedrule", "fedrule-adam"),
    ("default-fedrule", "counts-triple"),
)
"""Pairs that the page states first."""

COUNTED = ("counts-relation", "counts-sides", "counts-triple")
CONTENDERS = ("fedrule-adam", "default-fedrule", "ridge")
BASELINES = tuple((row, baseline) for row in CONTENDERS for baseline in COUNTED)


def claims_of(rows: Mapping[str, Row]) -> list[tuple[str, Claim, str]]:
    """Return (row, claim, measured mean) of every target whose row was measured."""
    found = []
    for key, bounds in TARGETS.items():
        for metric, bound in bounds.items() if key in rows else ():
            mean, higher = rows[key].mean(metric), metric in HIGHER_IS_BETTER
            text = f"{NAMES[metric]} {'≥' if higher else '≤'} {bound:g}"
            found.append((rows[key].title, Claim(text, mean >= bound if higher else mean <= bound), f"{mean:.3f}"))
    return found


def targets(rows: Mapping[str, Row]) -> Table:
    """Return the table of targets."""
    cells = [(title, claim.text, measured, verdict(claim.holds)) for title, claim, measured in claims_of(rows)]
    return Table(["method", "target (mean over seeds)", "measured", "verdict"], cells)


def command_claims(rows: Mapping[str, Row]) -> Iterator[Claim]:
    """State if a user's command prints the number of the table in README.md; nothing before it was run."""
    if COMMAND.keys() <= rows.keys():
        for key, title in COMMAND.items():
            pair = [100 * rows[name].mean("hr20") for name in (key, RIDGE)]
            text = f"{title} prints the HR@20 of the default's row, {pair[0]:.1f} and {pair[1]:.1f} %, as means over"
            text += f" {count(len(rows[key].trials), 'seed')} in whole per cent; it has homes of two devices too"
            yield Claim(text, round(pair[0]) == round(pair[1]))


def comparisons(rows: Mapping[str, Row], pairs: Sequence[tuple[str, str]]) -> Table:
    """Return the table of pairs that were measured, with one column a metric."""
    cells = [
        (rows[a].title, rows[b].title, *(compare_rows(rows[a], rows[b], metric).text() for metric in NAMES))
        for a, b in pairs
        if a in rows and b in rows
    ]
    return Table(["first", "second", *NAMES.values()], cells)


def findings(rows: Mapping[str, Row]) -> list[str]:
    """Return one sentence a compared pair: the better row, the metric, and the number of seeds."""
    return [
        f"{rows[a].title} against {rows[b].title}: "
        + "; ".join(compare_rows(rows[a], rows[b], metric).sentence(name) for metric, name in NAMES.items())
        + "."
        for a, b in FINDINGS
        if a in rows and b in rows
    ]


def against_counts(rows: Mapping[str, Row]) -> list[str]:
    """Return, for each contender, whether its mean is better than that of the best count baseline."""
    counted = list(in_order(rows, COUNTED).values())
    return [
        f"{row.title}: {'; '.join(f'{name} {_best(row, counted, metric)}' for metric, name in NAMES.items())}."
        for row in in_order(rows, CONTENDERS if counted else ()).values()
    ]


def compare_rows(first: Row, second: Row, metric: str) -> Comparison:
    """Compare two rows on the seeds that both have."""
    found = compare(first, second, metric, higher_is_better=metric in HIGHER_IS_BETTER)
    return found or Comparison((), ())


def _best(row: Row, counted: Sequence[Row], metric: str) -> str:
    best = max if metric in HIGHER_IS_BETTER else min
    mean, bound = row.mean(metric), best(one.mean(metric) for one in counted)
    better = mean != bound and best(mean, bound) == mean
    return f"{mean:.3f} {'**is better than**' if better else 'is not better than'} {bound:.3f}"
