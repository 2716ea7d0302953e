"""Claims of the paper on markets, and the rows that decide them."""

from studies.harness.contrast import Contrast
from studies.harness.paper_claim import PaperClaim
from studies.markets.experiments import SMALL
from studies.markets.retail import MARKETS as RETAIL_MARKETS
from studies.markets.retail import RETAIL
from studies.markets.weights import COMPARED

_MARKETS = tuple(
    (f"{name}/{protocol}", clients)
    for name, clients in ((RETAIL, RETAIL_MARKETS), ("xmarket", SMALL))
    for protocol in ("cold", "pairs")
)
_ITEMS = (
    "hashed words of short names (Online Retail), hashed ids (XMarket); means over eleven and five markets; not testable with"
    " BERT features, on Home & Kitchen or with the US market, which are not here"
)

MARKETS = (
    PaperClaim(
        "PF-GNN+",
        "P1",
        "PF-GNN+ is the best in all markets, and PF-GNN the second",
        tuple(
            Contrast("markets", part, *pair, "mrr20", clients=clients)
            for part, clients in _MARKETS
            for pair in (("pfgnn-plus", "pfgnn"), ("pfgnn", "fedavg"), ("pfgnn", "local"))
        ),
        _ITEMS,
    ),
    PaperClaim(
        "PF-GNN+",
        "P2",
        "Summaries ξ add to φ",
        tuple(
            Contrast("markets", part, f"pfgnn-{kind}", "pfgnn", "ndcg20", clients=clients)
            for part, clients in _MARKETS
            for kind in ("plus", "centroid")
        ),
        _ITEMS,
    ),
    PaperClaim(
        "PF-GNN+",
        "P3",
        "λ_w = 1000 is best for PF-GNN; λ_w = 1 and λ_s = 0.01 for PF-GNN+",
        tuple(Contrast("markets", "xmarket/pairs", *pair, "mrr20", clients=SMALL) for pair in COMPARED),
        "hashed ids; random pairs; means over five markets, not the US market, which is not here; loss a mean over triples; for"
        " PF-GNN+, four other points",
    ),
)
