"""Markets task: related items in a small market, trained with larger markets (algorithms.md §5)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from common.methods.pfgnn import PFGNN
from common.metrics import LOSS, MODEL_FAMILIES, MRR, NDCG, MetricFamily, share
from common.tasks.closed_form import ClosedForm, limit_masked
from common.tasks.markets import blend
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue, demo_market_catalogue
from common.tasks.options import VARIANTS
from common.tasks.spec import Comparison, Objective, TaskRun, TaskSpec

if TYPE_CHECKING:
    from torch import nn


TOPS = (10, 20)
"""Cut-offs of the ranking metrics."""


def build_model(run: TaskRun[MarketsOptions, MarketCatalogue]) -> "nn.Module":
    """Return the paper's network of the options, or the default pair scorer."""
    if run.model not in VARIANTS:
        from common.tasks.package_networks import MarketsNetwork

        sizes = run.options.width, run.options.embedding
        return MarketsNetwork(run.model, *sizes, noised=run.privacy.unit != "none")
    from common.tasks.markets.model import PairScorer, build_market_model

    if run.model == "default":
        return PairScorer(on_top=run.on_top)
    pfgnn = run.method if isinstance(run.method, PFGNN) else None
    return build_market_model(run.vocabulary, run.options, pfgnn=pfgnn)


TASK = TaskSpec(
    name="markets",
    summary="Recommend related items across markets",
    options=MarketsOptions,
    vocabulary=MarketCatalogue,
    demo=demo_market_catalogue,
    build_model=build_model,
    metrics=(
        LOSS,
        replace(MRR, cuts=TOPS),
        replace(NDCG, cuts=TOPS),
        share("recall*", "recall@*", "Recall @*", "Share of all right answers among the first *.", cuts=(20,)),
    ),
    families=(
        *MODEL_FAMILIES,
        MetricFamily("walk_", "random walk", baseline=True),
        MetricFamily("degree_", "popularity", baseline=True),
        MetricFamily("shared_", "popularity and other markets", baseline=True),
        MetricFamily("seen_", "items of other markets"),
    ),
    objective=Objective("ndcg20"),
    # Link function, prior and clusters (§5.3); last layer; item vectors.
    head=("theta", "alpha", "kappa", "tower.output", "ids"),
    client_only=("ids",),  # vectors of the market's items
    closed_form=ClosedForm(
        sums=7,
        noised_sums=1,
        start=lambda run: blend.sizes(run.vocabulary, run.privacy.unit != "none"),
        template=blend.template,
        solve=blend.solve,
        limit_masked=limit_masked(blend.SIZES, blend.MOST_MASKED_ITEMS),
        lasting=blend.LASTING,
        entries=blend.ENTRIES,
        noised_sign="positive",
    ),
    defaults={"method": "ridge"},  # docs/results/markets.md
    network={
        "method": "fedavg",
        "rounds": 20,
        "training.optimizer": "adam",
        "training.lr": 0.05,
        "training.local-steps": 10,
    },
    paper={
        "method": "pfgnn",
        "rounds": 10,
        "training.optimizer": "adam",
        "training.lr": 0.32,
        "algorithm.pfgnn.beta": 1.0,
        "tasks.markets.adjacency": "counts",
    },
    simple={"ndcg20": "walk_ndcg20", "mrr20": "walk_mrr20"},
    takes_networks=True,
    comparison=Comparison("markets", "random walk"),
)
