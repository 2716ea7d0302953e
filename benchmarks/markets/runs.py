"""Runs of the markets study on seven XMarket markets: methods, baselines, late-joining markets."""

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from benchmarks.harness.bench import Bench, FinishedRun
from benchmarks.harness.experiment import task_options
from benchmarks.harness.row import Metrics, Trial
from benchmarks.harness.store import Store
from benchmarks.harness.study import Selection
from benchmarks.harness.tuning import Tuning
from benchmarks.markets import late_market
from benchmarks.markets.baselines import measure
from benchmarks.markets.experiments import (
    BASELINES,
    EXPERIMENTS,
    KINDS,
    LATE,
    NEW_MARKET,
    PROTOCOLS,
    SEEDS,
    SHARES,
    SMALL,
    VALIDATION_SHARE,
    XMARKET,
    under,
)
from client.data.dataset import AnyDataset
from client.tasks.markets.data.reader import read_markets
from client.tasks.markets.prepare import ReadyMarket, prepare
from common.errors import ConfigError
from common.tasks.markets.options import MarketsOptions

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
    """Compute the selected rows under all protocols; a data set's name is that of a protocol here."""
    bench = Bench(XMARKET, partial(_read, selection.data), store, _trial_of, TUNING, selection=selection)
    protocols = [protocol for protocol in PROTOCOLS if selection.has_set(protocol)]
    for protocol in protocols:
        bench.run_baselines(BASELINES, SEEDS, partial(_baseline, bench, protocol), protocol)
    bench.run(under(protocol, one) for protocol in protocols for one in EXPERIMENTS)
    if selection.has_set(NEW_MARKET):
        bench.run_baselines(KINDS, SEEDS, partial(_cold, bench), NEW_MARKET)
    if selection.has_set(LATE):
        late = lru_cache(partial(late_market.late, bench))
        for share in SHARES:
            titles = {f"share-{share:g}": f"late-joining market, {share:.0%} of its pairs"}
            bench.run_baselines(titles, SEEDS, partial(_late, late, share), LATE)


def _read(data: Path) -> AnyDataset:
    source = data / "xmarket-electronics"
    if not source.is_dir():
        raise ConfigError(f"{source} is missing; name the folder of data sets with --data")
    return read_markets(source)


def _trial_of(run: FinishedRun) -> Trial:
    """Return every market's metrics after the last round; the curve while tuning."""
    names = {f"client-{k}": market.name for k, market in enumerate(run.dataset.units)}
    clients = {
        names[client]: {name: value for name, value in found.metrics.items() if name not in REPEATED}
        for client, found in run.result.clients.items()
    }
    return Trial(curve=run.curve() if run.tunes else {}, clients=clients)


def _baseline(bench: Bench, protocol: str, key: str, seed: int) -> Trial:
    """Measure a baseline in every market."""
    return Trial(clients={name: measure(key, ready) for name, ready in _ready(bench.dataset, protocol, seed).items()})


@lru_cache(maxsize=1)
def _ready(dataset: AnyDataset, protocol: str, seed: int) -> dict[str, ReadyMarket]:
    """Return all markets, split under a protocol."""
    options = MarketsOptions.model_validate({"protocol": protocol, "features": "ids", "width": 2})
    return {market.name: prepare(market, dataset.vocabulary, options, seed) for market in dataset.units}


def _cold(bench: Bench, kind: str, seed: int) -> Trial:
    return Trial(clients={name: late_market.cold(bench, kind, seed, name) for name in SMALL})


def _late(late: Callable[[int, str], dict[float, Metrics]], share: float, _: str, seed: int) -> Trial:
    return Trial(clients={name: late(seed, name)[share] for name in SMALL})
