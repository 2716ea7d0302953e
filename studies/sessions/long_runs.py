"""Long training with a constant server rate: falls from the best result so far."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from studies.harness.experiment import Experiment
from studies.harness.results import Results
from studies.harness.row import Metrics, in_order, mean_sd
from studies.harness.table import Table
from studies.sessions.experiments import CLAIMED_SEEDS, make_row

SET, PROTOCOL = "gowalla", "long"

ROUNDS, EVERY, COHORT = 2000, 50, 0.02

FALL, NEAR = "largest_fall", "share_near_best"
"""Metrics: largest fall of HR@20 from its best so far, and share of rounds within 5 % of the best."""

ABOUT = f"""{ROUNDS:,} rounds of 20 clients, measured every {EVERY} rounds. Rates are constant, each method's tuned one: ηₛ .02
for FedGA, .01 for others. The fall is that of HR@20 from its best so far, in points."""


def _row(method: str, title: str, rate: float) -> Experiment:
    one = make_row(method, title, method, ({"server-lr": rate, "tau": 1e-4},))
    settings = {**one.settings, "rounds": ROUNDS, "evaluate-every": EVERY, "federation.cohort": COHORT}
    return replace(one, settings=settings, protocol=PROTOCOL, seeds=CLAIMED_SEEDS)


ROWS = (
    _row("fedga", "FedGA, `saturated`", 0.02),
    _row("fedadam", "FedAdam", 0.01),
    _row("fedyogi", "FedYogi", 0.01),
)


def falls(curve: Sequence[float]) -> Metrics:
    """Return the largest fall from the running best, the share of values near the best, and the best."""
    best = max(curve)
    fall = max(top - value for top, value in zip(accumulate(curve, max), curve, strict=True))
    return {FALL: fall, NEAR: sum(value >= 0.95 * best for value in curve) / len(curve), "best_hr20": best}


def section(results: Results) -> Iterator[str]:
    """Yield the section of the page; nothing before a row is measured."""
    rows = in_order(results.rows_of(SET, PROTOCOL), [one.key for one in ROWS])
    if not rows:
        return
    table = Table(["row", "seeds", "best HR@20", "last", "largest fall", "share of rounds within 5 % of the best"])
    for row in rows.values():
        points = [mean_sd(row.values(name).values(), 1, scale=100) for name in ("best_hr20", "hr20", FALL)]
        table.rows.append([row.title, str(len(row.trials)), *points, f"{row.mean(NEAR):.2f}"])
    yield f"## Long training on Gowalla\n\n{ABOUT}\n\n{table}"
