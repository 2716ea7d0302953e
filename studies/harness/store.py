"""Store of a study's trials: what was computed once is not computed again."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from studies.harness.results import Results
from studies.harness.row import About, RowKey, Trial


class Store:
    """Trials by row and seed: in a cache folder, one file each, and in the published results.

    A study that was interrupted continues from the cache, a fresh clone from the published results.

    Args:
        folder: The cache; it also holds the runs' own folders while they last.
        results: Published results; every new trial is added to them.
        made: Provenance of runs of this process: `made` and `versions`.
    """

    def __init__(self, folder: Path, results: Results, made: dict[str, object] | None = None) -> None:
        self.folder, self.results = folder, results
        self._made = made or {}
        folder.mkdir(parents=True, exist_ok=True)

    def get_or_compute(self, key: RowKey, seed: int, compute: Callable[[], Trial], title: str = "") -> Trial:
        """Return the trial of a row on a seed; compute, cache and add it to the results if nothing holds it.

        Args:
            key: The row.
            seed: Seed of the trial, `NO_SEED` without one.
            compute: Measures it.
            title: Name of the row in the tables.
        """
        row = self.results.rows.get(key)
        if row and seed in row.trials:
            return row.trials[seed]
        if row and str(seed) in row.about.failures:
            return Trial(failure=row.about.failures[str(seed)])
        trial = self._load_or_compute("-".join([*key, str(seed)]), compute)
        self._add(key, seed, trial, title)
        return trial

    def tuning_trial(self, key: RowKey, point: str, compute: Callable[[], Trial]) -> Trial:
        """Return the trial of a point on the tuning seed; only the cache holds it."""
        return self._load_or_compute("-".join([*key, point, "tune"]), compute)

    def _load_or_compute(self, name: str, compute: Callable[[], Trial]) -> Trial:
        path = self.folder / f"{name.replace(' ', '').replace('/', '_')}.json"
        if path.exists():
            return Trial.from_json(json.loads(path.read_text("utf-8")))
        started = time.perf_counter()
        trial = compute()
        if not trial.seconds:
            trial = replace(trial, seconds=time.perf_counter() - started)
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(trial.to_json()), "utf-8")
        partial.replace(path)
        print(f"{name}: {trial.seconds:.0f} s {trial.failure or _short(trial)}".rstrip(), flush=True)
        return Trial.from_json(json.loads(path.read_text("utf-8")))

    def _add(self, key: RowKey, seed: int, trial: Trial, title: str) -> None:
        row = self.results.row(key)
        about: About = row.about
        about.title = title or about.title
        about.config = {name: value for name, value in trial.config.items() if name != "seed"} or about.config
        for name, value in self._made.items():
            setattr(about, name, value)
        if trial.failure:
            about.failures[str(seed)] = trial.failure
            return
        row.trials[seed] = trial
        about.seconds[str(seed)] = round(trial.seconds, 3)
        if trial.megabytes:
            about.megabytes[str(seed)] = trial.megabytes


def _short(trial: Trial) -> str:
    """Return the first metrics of a trial, as text."""
    metrics = trial.metrics or next(iter(trial.clients.values()), {})
    return " ".join(f"{name} {value:.4f}" for name, value in list(metrics.items())[:4])
