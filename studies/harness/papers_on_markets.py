"""Claims of the paper on markets, and the rows that decide them."""

from studies.harness.contrast import Contrast
from studies.harness.paper_claim import PaperClaim
from studies.harness.paper_effects import Reported
from studies.markets.experiments import SMALL
from studies.markets.retail import MARKETS as RETAIL_MARKETS
from studies.markets.retail import RETAIL
from studies.markets.weights import COMPARED, COMPARED_SUMS, SUM_ROUNDS

_TEXTS = (f"{RETAIL}/cold", f"{RETAIL}/pairs")
"""Sets whose items have texts, as the paper's do: new items, and random pairs."""

_ITEMS = (
    "hashed words of short names (Online Retail), hashed ids (XMarket); means over eleven and five markets; not testable with"
    " BERT features, on Home & Kitchen or with the US market, which are not here"
)


def _both(pairs: tuple[tuple[str, str], ...], metric: str) -> tuple[tuple[Reported, ...], tuple[Contrast, ...]]:
    """Return comparisons under the paper's protocol, on both sets with texts, and beyond it, without."""
    reported = tuple(
        Reported(
            "bar charts",
            (Contrast("markets", part, *pair, metric, clients=RETAIL_MARKETS),),
        )
        for part in _TEXTS
        for pair in pairs
    )
    beyond = tuple(
        Contrast("markets", part, *pair, metric, clients=SMALL)
        for part in ("xmarket/cold", "xmarket/pairs")
        for pair in pairs
    )
    return reported, beyond


MARKETS = (
    PaperClaim(
        "PF-GNN+",
        "P1",
        "PF-GNN+ is the best in all markets, and PF-GNN the second",
        *_both((("pfgnn-plus", "pfgnn"), ("pfgnn", "fedavg"), ("pfgnn", "local")), "mrr20"),
        f"{_ITEMS}; fewer local steps than the paper's 20 epochs",
    ),
    PaperClaim(
        "PF-GNN+",
        "P2",
        "Summaries ξ add to φ",
        *_both((("pfgnn-plus", "pfgnn"), ("pfgnn-centroid", "pfgnn")), "ndcg20"),
        _ITEMS,
    ),
    PaperClaim(
        "PF-GNN+",
        "P3",
        "λ_w = 1000 is best for PF-GNN; λ_w = 1 and λ_s = 0.01 for PF-GNN+",
        tuple(
            Reported("text", (Contrast("markets", "xmarket/pairs", *pair, "mrr20", clients=SMALL),))
            for pair in COMPARED_SUMS
        ),
        tuple(Contrast("markets", "xmarket/pairs", *pair, "mrr20", clients=SMALL) for pair in COMPARED),
        f"λ_w beside a sum over pairs, as in the paper, by SGD in {SUM_ROUNDS} rounds of one step: not run yet; beyond: λ_w"
        " beside our loss, a mean, by Adam in ten rounds of 20 steps, where it pulls far more; hashed ids; random pairs; means"
        " over five markets, not the US market, which is not here; for PF-GNN+, four other points",
    ),
)
