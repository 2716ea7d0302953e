"""DRA at common server rates, and what decides the denominators of FedGA."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from common.options import Scalar
from studies.harness.experiment import Experiment
from studies.harness.results import Results
from studies.harness.row import Row, in_order, mean_sd
from studies.harness.table import Table
from studies.sessions.experiments import CLAIMED_SEEDS, SEEDS, make_row

SET, PROTOCOL = "gowalla", "denominators"

NUMBERS = {
    "agreement_p25": "25 % of agreement",
    "agreement_p50": "50 %",
    "agreement_p75": "75 %",
    "case_3": "case 3",
    "moved": "moved",
    "below_tau": "below τ",
}
"""Numbers of a round that are stored as means over all rounds: name -> heading."""

RATES = (0.005, 0.01, 0.02, 0.04)

ABOUT = """FedAdam with and without DRA at one server rate for both, τ = 1e-4, five seeds; and FedGA without DRA at five local
steps of rate .2, three seeds. Agreement is |Δ̄|/Δ' of the parameters that moved, the inverse of DRA's factor. Case 3 of C-SME
is the only one in which `saturated` differs from Adam. Shares and quantiles are over all parameters, and means
over the rounds."""


def _row(key: str, title: str, seeds: int = CLAIMED_SEEDS, **options: Scalar) -> Experiment:
    varied = {name.replace("_", "-"): value for name, value in options.items()}
    one = make_row(key, title, "fedga", ({"tau": 1e-4, "diagnostics": True, **varied},))
    return replace(one, protocol=PROTOCOL, seeds=seeds)


def pair(rate: float) -> tuple[str, str]:
    """Return the keys of the rows with and without DRA at a server rate."""
    return f"dra-{rate:g}", f"adam-{rate:g}"


ROWS = (
    *(
        _row(key, f"{title}, ηₛ {rate:g}", server_lr=rate, second_moment="adam", dra=dra)
        for rate in RATES
        for key, title, dra in zip(pair(rate), ("FedAdam + DRA", "FedAdam"), (True, False), strict=True)
    ),
    _row("csme-steps-5", "C-SME without DRA, 5 local steps", SEEDS, server_lr=0.01, dra=False, local_steps=5, lr=0.2),
)


def section(results: Results) -> Iterator[str]:
    """Yield the section of the page; nothing before a row is measured."""
    rows = in_order(results.rows_of(SET, PROTOCOL), [one.key for one in ROWS])
    if not rows:
        return
    table = Table(["row", "seeds", "HR@20", *NUMBERS.values()])
    table.rows.extend(
        [row.title, str(len(row.trials)), mean_sd(row.values("hr20").values(), 1, scale=100), *_shares(row)]
        for row in rows.values()
    )
    yield f"## Denominators on Gowalla\n\n{ABOUT}\n\n{table}"
    yield from _finding(rows)


def _shares(row: Row) -> list[str]:
    return [f"{row.mean(name):.3f}" for name in NUMBERS]


def _finding(rows: Mapping[str, Row]) -> Iterator[str]:
    """State the effect of DRA at one rate, and at twice the rate of the row without it."""
    if not {key for rate in RATES for key in pair(rate)} <= rows.keys():
        return
    dra, adam = ({rate: 100 * rows[pair(rate)[place]].mean("hr20") for rate in RATES} for place in (0, 1))
    same = ", ".join(f"{dra[rate] - adam[rate]:+.1f}" for rate in RATES)
    twice = ", ".join(f"{dra[rate] - adam[rate / 2]:+.1f}" for rate in RATES[1:])
    yield (
        f"At equal rates DRA changes HR@20 by {same} points, from the smallest rate to the largest. At twice the rate of the"
        f" row without it, by {twice} points."
    )
