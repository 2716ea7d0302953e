"""Runs of Online Retail: rows, baselines, and the grid of λ_w and λ_s."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from client.data.dataset import AnyDataset
from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.learner import ReadyMarket, prepare
from common.arrays import Arrays
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.options import MarketsOptions
from studies.harness.bench import Bench
from studies.harness.experiment import task_options
from studies.harness.row import Metrics, RowKey, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.harness.tuning import Tuning
from studies.markets.baselines import counted, others_of
from studies.markets.experiments import PREFIX, VALIDATION_SHARE, under
from studies.markets.online_retail import read_online_retail
from studies.markets.ranking import UnpooledRanking
from studies.markets.retail import BASELINES, EFFORTS, EXPERIMENTS, GRIDS, MAIN, PROTOCOLS, RETAIL, SEEDS

TUNING = Tuning(
    "mrr20",
    task_options("markets", {"protocol": "pairs", "validation-share": VALIDATION_SHARE}),
    higher_is_better=True,
    protocol="pairs",
)


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows under both protocols, then the grid."""
    data = selection.data / "online-retail"
    unpooled = UnpooledRanking()
    bench = Bench(RETAIL, lambda: read_online_retail(data), store, unpooled.trial_of, TUNING, selection=selection)
    for protocol in PROTOCOLS:
        bench.run_baselines(BASELINES, SEEDS, partial(_baseline, bench, protocol), protocol)
    with unpooled.patch():
        bench.run(under(protocol, one) for protocol in PROTOCOLS for one in EXPERIMENTS)
        bench.run(under("pairs", one) for one in EFFORTS)
    grid = replace(bench, tuning=replace(TUNING, protocol="lambda"))
    for one in (one for one in GRIDS if selection.has(one.key, one.protocol)):
        grid.choose(one)
        store.results.row(RowKey(RETAIL, one.protocol, one.key)).about.title = one.title


def _baseline(bench: Bench, protocol: str, key: str, seed: int) -> Trial:
    """Measure a baseline in every market."""
    ready = _ready(bench.dataset, protocol, seed)
    return Trial(clients={name: _measure(key, market, others_of(ready, name)) for name, market in ready.items()})


@lru_cache(maxsize=1)
def _ready(dataset: AnyDataset, protocol: str, seed: int) -> dict[str, ReadyMarket]:
    """Return all markets, split under a protocol."""
    options = MarketsOptions.model_validate({"protocol": protocol})
    return {market.name: prepare(market, dataset.vocabulary, options, seed) for market in dataset.units}


def _measure(key: str, ready: ReadyMarket, statics: Arrays) -> Metrics:
    scores = SCORES[key.removeprefix(PREFIX)](ready.baseline(counted(key, ready.graph, statics), statics))
    found, _ = ranking_metrics(scores, ready.split.test.right, ready.masked("test"))
    return {metric: found[metric] for metric in MAIN}


def _texts(baseline: MarketBaseline) -> ScoreBlock:
    return lambda queries: baseline.texts[queries] @ baseline.texts.T


SCORES: dict[str, Callable[[MarketBaseline], ScoreBlock]] = {
    "degree": lambda baseline: baseline.popularity,
    "shared": lambda baseline: baseline.shared,
    "text": _texts,
    "walk": lambda baseline: baseline.scores,
}
