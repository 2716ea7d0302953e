"""Sensitivity of FedGA to its server rate and local steps, and the spread of server rates."""

from collections.abc import Iterator
from dataclasses import replace

from common.options import Scalar
from studies.harness.experiment import Experiment
from studies.harness.results import Results
from studies.harness.row import in_order, mean_sd
from studies.harness.table import Table
from studies.sessions.experiments import CLAIMED_SEEDS, PLATEAU, make_row

SET, PROTOCOL = "gowalla", "sensitivity"

POINT = {"server-lr": 0.01, "tau": 1e-4}
"""Setting that the rows vary; the rate is the largest that the paper calls comparable."""

SPREAD, WIDTH = "rate_spread", "rate_width"
"""Metrics of all server rates: ln of the ratio of their 95 % to their 5 % quantile, and difference."""

ABOUT = f"""One setting is varied, with five seeds each: ηₛ = .01, τ = 1e-4, 100 clients a round, 100 rounds, one local step of
rate 1. Rows of {PLATEAU} rounds show where smaller rates end. Server rates are ηₛ/(√v + τ) over all parameters after the last
round; their spread compares the 95 % to the 5 % quantile, as a ratio and as a difference."""


def _row(
    key: str, title: str, method: str = "fedga", cohort: float = 0.0, rounds: int = 0, **options: Scalar
) -> Experiment:
    varied = {name.replace("_", "-"): value for name, value in options.items()}
    one = make_row(key, title, method, ({**POINT, **varied},))
    settings = {**one.settings, **({"federation.cohort": cohort} if cohort else {})}
    settings |= {"rounds": rounds} if rounds else {}
    return replace(one, settings=settings, protocol=PROTOCOL, seeds=CLAIMED_SEEDS)


ROWS = (
    _row("fedga", "FedGA, `saturated`"),
    _row("fedadam", "FedAdam", "fedadam"),
    _row("fedyogi", "FedYogi", "fedyogi"),
    _row("fedga-0.003", "FedGA, ηₛ .003", server_lr=0.003),
    _row("fedga-0.001", "FedGA, ηₛ .001", server_lr=0.001),
    _row("fedga-plateau", f"FedGA, {PLATEAU} rounds", rounds=PLATEAU),
    _row("fedga-0.003-plateau", f"FedGA, ηₛ .003, {PLATEAU} rounds", rounds=PLATEAU, server_lr=0.003),
    _row("fedga-clients-10", "FedGA, 10 clients a round", cohort=0.01),
    _row("fedga-clients-30", "FedGA, 30 clients a round", cohort=0.03),
    _row("fedga-clients-300", "FedGA, 300 clients a round", cohort=0.3),
    _row("fedga-steps-5", "FedGA, 5 local steps of rate 1", local_steps=5),
    _row("fedga-steps-5-slow", "FedGA, 5 local steps of rate .2", local_steps=5, lr=0.2),
)


def section(results: Results) -> Iterator[str]:
    """Yield the section of the page; nothing before a row is measured."""
    rows = in_order(results.rows_of(SET, PROTOCOL), [one.key for one in ROWS])
    if not rows:
        return
    table = Table(["row", "seeds", "HR@20", "MRR@20", "rates: ln of the ratio", "difference"])
    for row in rows.values():
        ranked = [mean_sd(row.values(metric).values(), 1, scale=100) for metric in ("hr20", "mrr20")]
        spreads = [mean_sd(values, 2) if (values := row.values(one).values()) else "" for one in (SPREAD, WIDTH)]
        table.rows.append([row.title, str(len(row.trials)), *ranked, *spreads])
    yield f"## Sensitivity on Gowalla\n\n{ABOUT}\n\n{table}"
    if absent := [one.title for one in ROWS if one.key not in rows]:
        yield f"Not run yet: {', '.join(absent)}."
