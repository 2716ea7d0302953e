"""Section of the traffic page on sums over lags with noise."""

from collections.abc import Iterator, Mapping

from common.tasks.counts import LEAST_VISIBLE
from studies.harness.row import Row, in_order
from studies.harness.table import Table

PROTOCOL = "noised-sums"

EPSILONS = (1, 2, 4, 8)
ROWS = {f"epsilon-{epsilon}": f"ε = {epsilon}" for epsilon in EPSILONS}
"""Rows: key -> title."""

ABOUT = """Two helpers add their noise to the sum of the sensors' unit vectors of autocovariances, at the whole ε (δ = 1e-5).
Rows are means of five draws. The noise is real-valued here and has the variance of the helpers' integers. With
`count-offset=auto`, a run uses sums of which at least {least:.0%} is visible."""


def section(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield the section of the page; nothing before it is measured."""
    table = Table(["noise", "visible share", "own ridge", "average with the federated one", "worst draw"])
    for row in in_order(rows, ROWS).values():
        errors = [f"{row.only[name]:.4f}" for name in ("ridge_mse", "mse", "worst_mse")]
        table.rows.append([row.title, f"{row.only['visible']:.2f}", *errors])
    if table.rows:
        yield f"### Noised sums\n\n{ABOUT.format(least=LEAST_VISIBLE)}\n\n{table}"
