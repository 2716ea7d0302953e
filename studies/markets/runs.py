"""Runs of the markets study on seven XMarket markets: methods, baselines, late-joining markets."""

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from client.data.dataset import AnyDataset
from client.tasks.markets.data.reader import read_markets
from client.tasks.markets.learner import ReadyMarket, prepare
from common.errors import ConfigError
from common.tasks.markets.options import MarketsOptions
from studies.harness.bench import Bench, FinishedRun
from studies.harness.experiment import task_options
from studies.harness.row import Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.harness.tuning import Tuning
from studies.markets import retail_runs
from studies.markets.baselines import measure, others_of
from studies.markets.experiments import (
    BASELINES,
    CLAIMED_SEEDS,
    EXPERIMENTS,
    PROTOCOLS,
    VALIDATION_SHARE,
    XMARKET,
    under,
)
from studies.markets.retail import RETAIL
from studies.markets.weights import OF_MEANS, OF_SUMS

STORED = ("mrr20", "ndcg20")
"""Endings of the metrics that are stored, of runs and of baselines."""

REPEATED = {f"{baseline}_{metric}" for baseline in ("degree", "walk") for metric in ("mrr20", "ndcg20")}
"""Metrics of a run that equal those of the baselines' rows."""

TUNING = Tuning(
    "mrr20",
    task_options("markets", {"protocol": "pairs", "validation-share": VALIDATION_SHARE}),
    higher_is_better=True,
    seed=0,
    protocol="pairs",
)


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows of both data sets; of XMarket, a protocol's name stands for a set's."""
    if selection.has_set(RETAIL):
        retail_runs.compute(selection, store)
    bench = Bench(XMARKET, partial(_read, selection.data), store, _trial_of, TUNING, selection=selection)
    protocols = [protocol for protocol in PROTOCOLS if selection.has_set(protocol)]
    for protocol in protocols:
        bench.run_baselines(BASELINES, CLAIMED_SEEDS, partial(_baseline, bench, protocol), protocol)
    bench.run(under(protocol, one) for protocol in protocols for one in EXPERIMENTS)
    if "pairs" in protocols:
        bench.run(under("pairs", one) for one in OF_MEANS)
        of_sums = replace(bench, tuning=replace(TUNING, chooses_round=True))
        of_sums.run(under("pairs", one) for one in OF_SUMS)


def _read(data: Path) -> AnyDataset:
    source = data / "xmarket-electronics"
    if not source.is_dir():
        raise ConfigError(f"{source} is missing; name the folder of data sets with --data")
    return read_markets(source)


def _trial_of(run: FinishedRun) -> Trial:
    """Return every market's metrics at 20 after the last round; the curve while tuning."""
    names = {f"client-{k}": market.name for k, market in enumerate(run.dataset.units)}
    clients = {
        names[client]: {name: value for name, value in found.metrics.items() if is_stored(name)}
        for client, found in run.result.clients.items()
    }
    return Trial(curve=run.curve() if run.tunes else {}, clients=clients)


def is_stored(metric: str) -> bool:
    """Return True for a metric that the page shows and no baseline's row has."""
    return metric.endswith(STORED) and metric not in REPEATED


def _baseline(bench: Bench, protocol: str, key: str, seed: int) -> Trial:
    """Measure a baseline in every market."""
    ready = _ready(bench.dataset, protocol, seed)
    measured = {name: measure(key, market, others_of(ready, name)) for name, market in ready.items()}
    return Trial(clients={name: {m: v for m, v in found.items() if is_stored(m)} for name, found in measured.items()})


@lru_cache(maxsize=1)
def _ready(dataset: AnyDataset, protocol: str, seed: int) -> dict[str, ReadyMarket]:
    """Return all markets, split under a protocol."""
    options = MarketsOptions.model_validate({"protocol": protocol, "features": "ids", "width": 2})
    return {market.name: prepare(market, dataset.vocabulary, options, seed) for market in dataset.units}
