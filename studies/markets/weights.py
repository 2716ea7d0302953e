"""Rows of other weights λ_w and λ_s of PF-GNN and PF-GNN+, on random pairs of XMarket."""

from dataclasses import replace

from studies.harness.experiment import Experiment, Settings, method_options
from studies.markets.experiments import EXPERIMENTS

PULL, SUMMARIES = "pfgnn", "pfgnn-plus"
"""Rows at λ_w = 1, and at λ_w = 1 and λ_s = .01."""

PAIRS = 8_019
"""Training pairs of a market, mean of the seven: the paper's loss is their sum, ours their mean.

A weight λ_w beside the sum is λ_w / `PAIRS` beside the mean. λ_s is divided by n² in any case.
"""

SUMMED = "-sum"
"""Part of the key of rows whose λ_w weighs a sum."""

SUM_ROUNDS, SUM_STRIDE = 100, 25
"""Largest number of rounds of rows of sums, half of the paper's, and their stride in tuning."""

SUM_RATES = (80.0, 250.0, 800.0)
"""Rates of rows of sums: the paper's .01, .03 and .1 beside a sum, times `PAIRS`."""

DESCENT: Settings = {"optimizer": "sgd", "clip-norm": 0.0, "local-steps": 1}
"""Local training of rows of sums.

Adam's steps have no scale: sum and mean would be one. A round has one step, since the pull bounds what more would add.
"""


def _weighted(key: str, weights: Settings, name: str, *, summed: bool = False) -> Experiment:
    """Return a row with other weights, tuned over the same rates.

    Of a sum, by SGD, λ_w is the paper's. Rate and rounds are those of PF-GNN with this λ_w.
    """
    one = next(one for one in EXPERIMENTS if one.key == key)
    values = "-".join(f"{value:g}" for value in weights.values())
    if not summed:
        settings = {**one.settings, **method_options("pfgnn", weights)}
        return replace(one, key=f"{key}-{values}", title=f"{one.title}, {name}", settings=settings)
    ours = {**weights, "lambda-w": float(weights["lambda-w"]) / PAIRS, **DESCENT}
    # The last round is measured on the test split alone, so the longest run that is compared ends a round before it.
    rounds: Settings = {"rounds": SUM_ROUNDS + 1, "evaluate-every": SUM_STRIDE}
    settings = {**one.settings, **rounds, **method_options("pfgnn", ours)}
    grid = tuple(method_options("pfgnn", {"lr": rate}) for rate in SUM_RATES)
    tuned_as = f"{PULL}{SUMMED}-{weights['lambda-w']:g}"
    key, title = f"{key}{SUMMED}-{values}", f"{one.title}, {name} of a sum"
    return replace(one, key=key, title=title, settings=settings, grid=grid, tuned_as=tuned_as)


def _of_pull(*, summed: bool = False) -> tuple[Experiment, ...]:
    """Return rows with λ_w of the paper's grid, the one that it names best first; 1 of a mean is `PULL`."""
    grid = (1000.0, 100.0, 10.0, *((1.0,) if summed else ()), 0.1)
    return tuple(_weighted(PULL, {"lambda-w": w}, f"λ_w = {w:g}", summed=summed) for w in grid)


def _of_summaries(points: tuple[tuple[float, float], ...], *, summed: bool = False) -> tuple[Experiment, ...]:
    """Return rows with these λ_w and λ_s."""
    return tuple(
        _weighted(SUMMARIES, {"lambda-w": w, "lambda-s": s}, f"λ_w = {w:g}, λ_s = {s:g}", summed=summed)
        for w, s in points
    )


OTHER_POINTS = ((1000.0, 0.01), (10.0, 0.01), (1.0, 1.0), (1.0, 0.001))
"""Four points of the paper's grid beside its best, λ_w = 1 with λ_s = .01."""

OF_PULL, OF_SUMMARIES = _of_pull(), _of_summaries(OTHER_POINTS)

PULL_OF_SUM, SUMMARIES_OF_SUM = _of_pull(summed=True), _of_summaries(((1.0, 0.01), *OTHER_POINTS), summed=True)

OF_MEANS, OF_SUMS = (*OF_PULL, *OF_SUMMARIES), (*PULL_OF_SUM, *SUMMARIES_OF_SUM)

WEIGHTED = (*OF_MEANS, *OF_SUMS)

COMPARED = (
    *((OF_PULL[0].key, key) for key in (PULL, *(one.key for one in OF_PULL[1:]))),
    *((SUMMARIES, one.key) for one in OF_SUMMARIES),
)
"""Pairs of rows; the paper says that the first is better: λ_w = 1000, or λ_w = 1 with λ_s = .01."""

COMPARED_SUMS = tuple((rows[0].key, other.key) for rows in (PULL_OF_SUM, SUMMARIES_OF_SUM) for other in rows[1:])
"""The same pairs with weights of sums."""
