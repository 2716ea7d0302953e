"""Models that start from counts with the noise of two helpers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from client.data.dataset import AnyDataset
from client.data.read import read_all
from client.tasks.rules.data.homes import SplitHome
from common.tasks.rules.task import TASK
from studies.harness.bench import Bench, FinishedRun
from studies.harness.row import Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.rules.experiments import (
    METRICS,
    OFF,
    STACKED,
    SUM_SEEDS,
    TRAINED_EPSILONS,
    TRAINED_SETS,
    VISIBLE,
    trained_row,
)
from studies.rules.summed_counts import measure_visible

Read = Callable[[], AnyDataset]

Splits = Callable[[AnyDataset, int], Sequence[SplitHome]]
"""Data set and seed -> homes with test rules."""


def compute(
    selection: Selection,
    store: Store,
    readers: Mapping[str, Read],
    measure: Callable[[FinishedRun], Trial],
    splits: Splits,
) -> None:
    """Compute the selected rows of models, and the share that noise leaves of their counts.

    Args:
        selection: Selected rows.
        store: Store of results.
        readers: Short name of a set -> its reader; other sets are embedded homes.
        measure: Returns the metrics of a run.
        splits: Splits the homes of a set.
    """

    def trial(run: FinishedRun) -> Trial:
        found = measure(run).metrics
        return Trial({name: found[name] for name in METRICS})

    for name in filter(selection.has_set, TRAINED_SETS):
        read = readers.get(name) or partial(read_all, TASK.name, f"demo:0-{name.removeprefix('demo-')}")
        bench = Bench(name, read, store, trial, stacked=lambda _: STACKED, selection=selection)
        bench.run([trained_row(kind) for kind in (OFF, *TRAINED_EPSILONS)])
        titles = {epsilon: f"{TRAINED_SETS[name]}, ε = {epsilon}" for epsilon in TRAINED_EPSILONS}
        bench.run_baselines(titles, SUM_SEEDS, partial(_visible, bench, splits), VISIBLE)


def _visible(bench: Bench, splits: Splits, epsilon: str, seed: int) -> Trial:
    return measure_visible(splits(bench.dataset, seed), bench.dataset.vocabulary, float(epsilon), seed)
