"""Runs of the real thing (`deploy.simulation`), each remembered in a cache folder so that a killed study goes on."""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.markets.experiments import HELD_BACK, RATES, SCORER_RATE, Experiment
from benchmarks.markets.lines import TITLES, line_metrics
from benchmarks.markets.sets import Markets
from common.config import parse
from deploy.simulation import simulate
from server.artifacts import RunDirectory
from server.events import Round

Metrics = dict[str, float]
PerMarket = dict[str, Metrics]
"""Market -> its metrics."""


class Bench:
    """The data set with a cache of what was computed on it."""

    def __init__(self, markets: Markets, cache: Path, *, compute: bool) -> None:
        self.markets, self.cache, self.compute = markets, cache, compute

    def lines(self, protocol: str, seed: int) -> dict[str, PerMarket]:
        """Line -> its metrics in every market."""
        key = f"lines-{len(TITLES)}-{protocol}-{seed}"  # what was remembered of fewer lines does not do
        return self.remembered(key, lambda: line_metrics(self.markets, protocol, seed))

    def rate(self, experiment: Experiment) -> float | None:
        """The rate that does best on held-back pairs; None where it is not known yet."""
        if not experiment.tuned:
            return SCORER_RATE
        known = self.rates(experiment)
        return max(known, key=lambda rate: known[rate]) if len(known) == len(RATES) else None

    def trial(self, experiment: Experiment, protocol: str, seed: int) -> PerMarket:
        """Every market's metrics after the last round, on what is held out for testing; empty where they are unknown."""
        rate = self.rate(experiment)
        if rate is None:
            return {}
        key = f"{experiment.key}-{protocol}-{seed}"
        return self.remembered(key, lambda: self._run(key, experiment, protocol, seed, rate)[1])

    def rates(self, experiment: Experiment) -> dict[float, float]:
        """Rate -> MRR@20 on held-back pairs, of those that are known."""
        found = {rate: self._validated(experiment, rate) for rate in RATES if experiment.tuned}
        return {rate: metrics["mrr20"] for rate, metrics in found.items() if metrics}

    def remembered(self, key: str, make: Callable[[], Mapping[str, object]]) -> dict:  # type: ignore[type-arg]  # JSON
        """What the cache holds under that key, or what `make` makes and then holds; empty if nothing is to be computed."""
        path = self.cache / f"{key}.json"
        if not path.exists():
            if not self.compute:
                return {}
            started = time.perf_counter()
            path.write_text(json.dumps(make()), "utf-8")
            print(f"{key}: {time.perf_counter() - started:.0f} s", flush=True)
        found: dict[str, object] = json.loads(path.read_text("utf-8"))
        return found

    def _validated(self, experiment: Experiment, rate: float) -> Metrics:
        key = f"{experiment.key}-rate-{rate:g}"
        return self.remembered(key, lambda: self._run(key, experiment, "pairs", 0, rate, HELD_BACK)[0])

    def _run(
        self, key: str, experiment: Experiment, protocol: str, seed: int, rate: float, held_back: float = 0.0
    ) -> tuple[Metrics, PerMarket]:
        """Metrics over all markets before the last round, on what is held back, and in each after it, on the test part."""
        flat = experiment.config(seed, protocol, rate, validation_share=held_back)
        config = parse({**flat, "run-id": key, "catalogue": str(self.markets.catalogue)})
        shutil.rmtree(self.cache / key, ignore_errors=True)
        result = simulate(config, self.markets.whole, self.cache, noise_seed=seed)
        rounds = [e for e in RunDirectory(self.cache, key).events() if isinstance(e, Round) and e.metrics]
        shutil.rmtree(self.cache / key)
        names = {f"client-{k}": name for k, name in enumerate(self.markets.names)}
        return rounds[0].metrics, {names[c]: client.metrics for c, client in result.clients.items()}
