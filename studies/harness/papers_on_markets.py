"""Claims of the paper on markets, and the rows that decide them."""

from collections.abc import Iterable

from studies.harness.contrast import Contrast
from studies.harness.paper_claim import PaperClaim
from studies.harness.paper_effects import Reported
from studies.markets.experiments import SMALL
from studies.markets.retail import EFFORT, EFFORT_STEPS, RETAIL
from studies.markets.retail import MARKETS as RETAIL_MARKETS
from studies.markets.weights import COMPARED, COMPARED_SUMS, SUM_ROUNDS, SUMMARIES_OF_SUM

_COLD, _PAIRS = f"{RETAIL}/cold", f"{RETAIL}/pairs"
"""Sets whose items have texts, as the paper's do: new items, and random pairs."""

_IDS = "xmarket/pairs"

_ITEMS = (
    "hashed words of short names (Online Retail), hashed ids (XMarket); means over eleven and five markets; not testable with"
    " BERT features, on Home & Kitchen or with the US market, which are not here"
)

Pairs = tuple[tuple[str, str], ...]

_ORDER: Pairs = (("pfgnn-plus", "pfgnn"), ("pfgnn", "fedavg"), ("pfgnn", "local"))
_EFFORT: Pairs = (
    *((f"{first}{EFFORT}", f"{second}{EFFORT}") for first, second in _ORDER[:2]),
    (f"pfgnn{EFFORT}", "local"),
)
"""The same with the paper's local effort; a local GNN has had it after ten rounds of 20 steps."""

_SUMMARIES: Pairs = (("pfgnn-plus", "pfgnn"), ("pfgnn-centroid", "pfgnn"))
_SUMMARIES_OF_SUM: Pairs = ((SUMMARIES_OF_SUM[0].key, SUMMARIES_OF_SUM[0].tuned_as),)
"""PF-GNN+ against PF-GNN: with the same λ_w beside a sum, 1, and the same rate and rounds."""


def _on(part: str, pairs: Pairs, metric: str) -> tuple[Contrast, ...]:
    """Return comparisons on one set, means over its markets; of XMarket over the small ones."""
    clients = RETAIL_MARKETS if part.startswith(RETAIL) else SMALL
    return tuple(Contrast("markets", part, *pair, metric, clients=clients) for pair in pairs)


def _as_reported(contrasts: Iterable[Contrast], source: str = "bar charts") -> tuple[Reported, ...]:
    """Return effects of which the paper states the direction alone."""
    return tuple(Reported(source, (one,)) for one in contrasts)


def _without_texts(pairs: Pairs, metric: str) -> tuple[Contrast, ...]:
    """Return comparisons on the set whose items have no texts."""
    return *_on("xmarket/cold", pairs, metric), *_on(_IDS, pairs, metric)


MARKETS = (
    PaperClaim(
        "PF-GNN+",
        "P1",
        "PF-GNN+ is the best in all markets, and PF-GNN the second",
        _as_reported((*_on(_COLD, _ORDER, "mrr20"), *_on(_PAIRS, (*_ORDER, *_EFFORT), "mrr20"))),
        _without_texts(_ORDER, "mrr20"),
        f"{_ITEMS}; ten of the paper's 200 rounds, of 20 local steps; on random pairs also of {EFFORT_STEPS}, near its 20"
        " epochs, and without divergence",
    ),
    PaperClaim(
        "PF-GNN+",
        "P2",
        "Summaries ξ add to φ",
        _as_reported(
            (
                *_on(_COLD, _SUMMARIES, "ndcg20"),
                *_on(_PAIRS, _SUMMARIES, "ndcg20"),
                *_on(_IDS, _SUMMARIES_OF_SUM, "ndcg20"),
            )
        ),
        _without_texts(_SUMMARIES, "ndcg20"),
        f"{_ITEMS}; ten rounds of 20 steps of Adam, and weights beside a sum as for P3",
    ),
    PaperClaim(
        "PF-GNN+",
        "P3",
        "λ_w = 1000 is best for PF-GNN; λ_w = 1 and λ_s = 0.01 for PF-GNN+",
        _as_reported(_on(_IDS, COMPARED_SUMS, "mrr20"), "text"),
        _on(_IDS, COMPARED, "mrr20"),
        f"λ_w beside a sum over pairs, as in the paper, by SGD in at most {SUM_ROUNDS} of its 200 rounds, of one step; rate and"
        " rounds by held-out pairs;"
        " beyond: λ_w beside our loss, a mean, by Adam in ten rounds of 20 steps, where it pulls far"
        " more; hashed ids; random pairs; means over five markets, not the US market, which is not here; for PF-GNN+, four"
        " other points",
    ),
)
