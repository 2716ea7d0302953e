"""Section on traffic of states: forecasts and properties before the lockdown of 2020 and in it."""

from collections.abc import Iterator

from studies.harness.results import Results
from studies.harness.row import Row, in_order, mean_sd
from studies.harness.table import Table
from studies.traffic.experiments import KINDS
from studies.traffic.sets import FHWA

PARTS = ("origin-1", "origin-0")
"""Test parts: the last tenth of 2018 and 2019, and the second quarter of 2020."""


def section(results: Results) -> Iterator[str]:
    """Yield the section of the page; nothing before a row is measured."""
    parts = [results.rows_of(FHWA.key, part) for part in PARTS]
    rows = in_order(parts[1], FHWA.rows)
    if not rows:
        return
    table = Table(["row", "MSE, end of 2019", "ρ point", "MSE, spring of 2020", "ρ point"])
    for kind, title in KINDS.items():
        truths = [part.get(f"baselines-{kind}") for part in parts]
        cells = [cell for truth in truths for cell in ("0", _cell(truth, "truth_rho_point"))]
        table.rows.append([f"*the truth*, {title}", *cells])
    ridge = [part.get("baselines-calibrated") for part in parts]
    table.rows.append(["*baseline:* profile + own ridge", *(c for one in ridge for c in (_cell(one, "ridge_mse"), ""))])
    for key, row in rows.items():
        pair = [part.get(key) for part in parts]
        table.rows.append([row.title, *(_cell(one, name) for one in pair for name in ("mse", "rho_point"))])
    yield f"## {FHWA.title}\n\n{FHWA.about}\n\n{table}"


def _cell(row: Row | None, metric: str) -> str:
    return mean_sd(row.values(metric).values(), 3, shows_zero=False) if row else ""
