"""Runs of the real thing (`deploy.simulation`), each remembered in a cache folder so that a killed study goes on."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.markets.experiments import HELD_BACK, RATES, SCORER_RATE, Experiment
from benchmarks.markets.lines import TITLES, line_metrics
from benchmarks.markets.sets import XMarket
from benchmarks.memory import Json, Memory
from benchmarks.studies import passing
from common.config.parse import parse
from deploy.simulation import simulate
from server.events import Round

Metrics = dict[str, float]
PerMarket = dict[str, Metrics]
"""Market -> its metrics."""


class Bench:
    """The data set, and what is known of it."""

    def __init__(self, folder: Path, memory: Memory) -> None:
        self._folder, self.memory = folder, memory

    @cached_property
    def markets(self) -> XMarket:
        """Read when first needed."""
        return XMarket.read(self._folder, self.memory.folder)

    def lines(self, protocol: str, seed: int) -> dict[str, PerMarket]:
        """Line -> its metrics in every market."""
        key = f"lines-{len(TITLES)}-{protocol}-{seed}"  # what was remembered of fewer lines does not do
        return self.recalled(key, lambda: line_metrics(self.markets, protocol, seed))

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
        return self.recalled(key, lambda: self._run(key, experiment, protocol, seed, rate)[1])

    def rates(self, experiment: Experiment) -> dict[float, float]:
        """Rate -> MRR@20 on held-back pairs, of those that are known."""
        found = {rate: self._validated(experiment, rate) for rate in RATES if experiment.tuned}
        return {rate: metrics["mrr20"] for rate, metrics in found.items() if metrics}

    def recalled(self, key: str, make: Callable[[], Json]) -> dict[str, Any]:
        """What is known under that key, or what `make` makes; empty if nothing is to be computed."""
        found: dict[str, Any] = self.memory.recall(key, make) or {}
        return found

    def _validated(self, experiment: Experiment, rate: float) -> Metrics:
        key = f"{experiment.key}-rate-{rate:g}"
        return self.recalled(key, lambda: self._run(key, experiment, "pairs", 0, rate, HELD_BACK)[0])

    def _run(
        self, key: str, experiment: Experiment, protocol: str, seed: int, rate: float, held_back: float = 0.0
    ) -> tuple[Metrics, PerMarket]:
        """Metrics over all markets before the last round, on what is held back, and in each after it, on the test part."""
        flat = experiment.config(seed, protocol, rate, validation_share=held_back)
        config = parse({**flat, "run-id": key, "catalogue": str(self.markets.catalogue)})
        with passing(self.memory.folder, key) as folder:
            result = simulate(config, self.markets.whole, self.memory.folder, noise_seed=seed)
            rounds = [event for event in folder.events() if isinstance(event, Round) and event.metrics]
        names = {f"client-{k}": name for k, name in enumerate(self.markets.names)}
        return rounds[0].metrics, {names[c]: client.metrics for c, client in result.clients.items()}
