"""Processor time and bytes of each task's closed form beside those of its network.

`python -m studies speed closed_forms [--only TASK ...]` trains both rows of a study on seed 0, in one process, with the point
that the study has chosen. *Statistics* are the clients' work on sums, *training* that on updates; *server* is the rest
without evaluation, which solves or aggregates. The processor time of one sum may be 1 % of the network's training. Prints a
table and writes JSON.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from flwr.app import Message
from rich.console import Console
from rich.table import Table

from client.data.dataset import AnyDataset
from client.data.read import partition
from client.tasks.markets.data.reader import read_markets
from client.tasks.ratings.data.reader import read_raters
from client.tasks.registry import CLIENT_TASKS
from client.tasks.rules.data.reader import read_homes
from common.config.parse import parse
from common.config.run import RunConfig
from common.wire.messages import EVALUATE, TRAIN
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid
from server.run import run
from studies.harness.bench import Bench
from studies.harness.experiment import Experiment, Settings
from studies.harness.store import Store
from studies.harness.study import DATA, Study
from studies.harness.tuning import Tuning
from studies.markets import experiments as markets
from studies.ratings import experiments as ratings
from studies.ratings import sets as ratings_sets
from studies.rules import experiments as rules
from studies.sessions import sets as sessions_sets
from studies.sessions.data import READERS
from studies.speed import timing
from studies.traffic import data as traffic_data
from studies.traffic.sets import BOROONDARA

GOWALLA, MOVIELENS = sessions_sets.SETTINGS[0], ratings_sets.SETTINGS[0]

SHARE = 0.01
"""Limit of one sum's processor time, as a share of the network's training."""

CHOSEN = Tuning("", {})
"""Points are those that a study has stored."""


class Case(NamedTuple):
    """Two rows of a study.

    Args:
        set: Short name of the data set.
        read: Reads it from the folder of all sets; the second argument is a folder for files in between.
        rows: All rows of the study on it.
        network: Short name of the network's row.
        together: Number of clients that train stacked; 0 chooses.
    """

    set: str
    read: Callable[[Path, Path], AnyDataset]
    rows: Callable[[], Iterable[Experiment]]
    network: str
    together: int


CASES = {
    "rules": Case(
        "A", lambda data, _: read_homes(data / "ifttt-recrules"), lambda: rules.EXPERIMENTS, "default-fedrule", 32
    ),
    "sessions": Case(
        GOWALLA.key,
        lambda data, _: READERS[GOWALLA.key](data),
        lambda: (*GOWALLA.experiments(), *GOWALLA.sampled()),
        "default-sampled",
        20,
    ),
    "traffic": Case(
        BOROONDARA.key,
        lambda data, cache: traffic_data.read(BOROONDARA, data, cache),
        BOROONDARA.experiments,
        "default",
        20,
    ),
    "ratings": Case(
        MOVIELENS.key,
        lambda data, _: read_raters(data / MOVIELENS.folder),
        lambda: (ratings.RIDGE, ratings.once("", 0.0, 1)),
        "none",
        0,
    ),
    "markets": Case(
        "xmarket",
        lambda data, _: read_markets(data / "xmarket-electronics"),
        lambda: (markets.under("pairs", one) for one in markets.EXPERIMENTS),
        "default-alone",
        0,
    ),
}
"""Task -> its rows."""


class TimedGrid(InProcessGrid):
    """Grid that adds up the processor time of clients' answers by type of message."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer all messages, which are of one type."""
        messages = list(messages)
        started = time.process_time()
        identities = super().push_messages(messages)
        self.seconds[messages[0].metadata.message_type if messages else ""] += time.process_time() - started
        return identities


def measure(config: RunConfig, dataset: AnyDataset, together: int, folder: Path) -> dict[str, float]:
    """Return processor time and megabytes of a run."""
    with open_grid(config, dataset, together) as grid:
        started = time.process_time()
        result = run(grid, config, folder)
        whole = time.process_time() - started
    clients = grid.seconds[TRAIN]
    return {
        "clients": len(grid.get_node_ids()),
        "rounds": result.rounds_done,
        "seconds": round(clients, 3),
        "server_seconds": round(whole - sum(grid.seconds.values()), 3),
        "evaluation_seconds": round(grid.seconds[EVALUATE], 3),
        "mb_down": round(result.bytes_down / 1e6, 2),
        "mb_up": round(result.bytes_up / 1e6, 2),
    }


def open_grid(config: RunConfig, dataset: AnyDataset, together: int) -> TimedGrid:
    """Return a grid of all clients of a data set, of which so many train stacked."""
    parts = partition(dataset, 0, unit=CLIENT_TASKS[config.task].unit)
    return TimedGrid(open_sessions(parts, config.seed)[0], together)


def open_bench(task: str, data: Path, folder: Path) -> Bench:
    """Return the data of a task's case, with the points that its study has stored."""
    read = partial(CASES[task].read, data, folder)
    return Bench(CASES[task].set, read, Store(folder, Study(task).results()), tuning=CHOSEN)


def configure(bench: Bench, task: str, key: str, changes: Settings) -> RunConfig:
    """Return the configuration of a row of a case at its point, with changes."""
    row = next(one for one in CASES[task].rows() if one.key == key)
    flat = {**row.settings, **(bench.choose(row) or {}), "seed": 0, "catalogue": str(bench.vocabulary)}
    return parse({**flat, **changes})


def compare(task: str, data: Path = DATA) -> dict[str, Any]:
    """Return the figures of both rows of a task, and the share of one sum in the network's training."""
    case, found = CASES[task], {}
    with TemporaryDirectory() as folder:
        bench = open_bench(task, data, Path(folder))
        for name, key in (("network", case.network), ("closed_form", "ridge")):
            config = configure(bench, task, key, {"run-id": name, "evaluate-every": 10_000})
            found[name] = measure(config, bench.dataset, case.together, Path(folder))
    network, closed = found["network"], found["closed_form"]
    share = closed["seconds"] / closed["rounds"] / (network["seconds"] + network["server_seconds"])
    return {"task": task, "set": case.set, **found, "share_of_one_sum": round(share, 4), "holds": share <= SHARE}


def read_options(about: str | None, name: str) -> argparse.Namespace:
    """Return the options of a script that measures the cases: their tasks and the folder of the data sets."""
    parser = timing.options(about, name)
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    timing.use_few_threads()
    return parser.parse_args()


def main() -> None:
    """Measure and write."""
    options = read_options(__doc__, "closed_forms")
    table = Table("task", "row", "rounds", "clients, s", "server, s", "evaluation, s", "MB down", "MB up", "share")
    for task in options.only:
        found = compare(task, options.data)
        timing.write(options.out, found, "torch", "numpy", under=task)
        for name in ("network", "closed_form"):
            cells = [found[name][key] for key in ("rounds", "seconds", "server_seconds", "evaluation_seconds")]
            share = found["share_of_one_sum"] if name == "closed_form" else ""
            table.add_row(task, name, *map(str, [*cells, found[name]["mb_down"], found[name]["mb_up"], share]))
    Console().print(table)


if __name__ == "__main__":
    main()
