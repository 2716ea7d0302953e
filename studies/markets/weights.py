"""Rows of other weights λ_w and λ_s of PF-GNN and PF-GNN+, on random pairs of XMarket."""

from dataclasses import replace

from studies.harness.experiment import Experiment, Settings, method_options
from studies.markets.experiments import EXPERIMENTS

PULL, SUMMARIES = "pfgnn", "pfgnn-plus"
"""Rows at λ_w = 1, and at λ_w = 1 and λ_s = .01."""


def _weighted(key: str, weights: Settings, name: str) -> Experiment:
    """Return a row with other weights, tuned over the same rates."""
    one = next(one for one in EXPERIMENTS if one.key == key)
    values = "-".join(f"{value:g}" for value in weights.values())
    settings = {**one.settings, **method_options("pfgnn", weights)}
    return replace(one, key=f"{key}-{values}", title=f"{one.title}, {name}", settings=settings)


OF_PULL = tuple(_weighted(PULL, {"lambda-w": w}, f"λ_w = {w:g}") for w in (1000.0, 100.0, 10.0, 0.1))
"""The other λ_w of the paper's grid."""

OF_SUMMARIES = tuple(
    _weighted(SUMMARIES, {"lambda-w": w, "lambda-s": s}, f"λ_w = {w:g}, λ_s = {s:g}")
    for w, s in ((1000.0, 0.01), (10.0, 0.01), (1.0, 1.0), (1.0, 0.001))
)
"""Four other points of the paper's grid."""

WEIGHTED = (*OF_PULL, *OF_SUMMARIES)

COMPARED = (
    *((OF_PULL[0].key, key) for key in (PULL, *(one.key for one in OF_PULL[1:]))),
    *((SUMMARIES, one.key) for one in OF_SUMMARIES),
)
"""Pairs of rows; the paper says that the first is better: λ_w = 1000, or λ_w = 1 with λ_s = .01."""
