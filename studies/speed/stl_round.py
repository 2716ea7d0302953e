"""Time of a round of FedSTL by the number of clients and of formulas, and FedSTL's (Table 5).

`python -m studies speed stl_round` trains the paper's GRU on demo sites, a tenth of the clients a round and five clusters, with
10 local steps and 5 under the cluster's property. The paper has 10 and 5 epochs, and does not state their batches; here each
has one. A formula is a range over a window of two hours; forecasts have 40 hours, so 20 formulas fit. Published seconds are of
a cluster's round; ours are of processor time and of the whole round, with choice of clusters and aggregation: growth can be
compared, seconds cannot.
Prints a table and writes JSON.
"""

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from client.data.read import read_all
from common.config.parse import parse
from common.config.run import RunConfig
from deploy.simulation.grid import simulate
from studies.harness.experiment import method_options, task_options
from studies.speed import timing

PUBLISHED = {
    10: {5: 0.5545, 20: 0.9456},
    20: {5: 0.6970, 20: 1.2006},
    50: {5: 1.0387, 20: 1.7981},
    100: {5: 1.1792, 20: 2.0559},
}
"""Clients -> fewest and most formulas -> seconds."""

HORIZON = 40
LOW, HIGH = 100, 900
"""Range of every formula, in vehicles an hour; many forecasts leave it."""


def formula(windows: int) -> str:
    """Return the conjunction of so many ranges over disjoint windows of two hours."""
    return " & ".join(f"G[{2 * k},{2 * k + 1}] (volume >= {LOW} & volume <= {HIGH})" for k in range(windows))


def configuration(clients: int, formulas: int, rounds: int) -> RunConfig:
    """Return the configuration of a run whose last round alone is evaluated."""
    options = {"clusters": 5, "local-steps": 10, "cluster-steps": 5}
    task = {"property": "formula", "formula": formula(formulas), "horizon": HORIZON, "repair": "none"}
    return parse(
        {
            "run-id": f"stl-{clients}-{formulas}-{rounds}",
            "method": "fedstl",
            "task": "traffic",
            "model": "paper",
            "rounds": rounds,
            "evaluate-every": rounds,
            "federation.cohort": 0.1,
            "federation.min-clients": 1,
            **method_options("fedstl", options),
            **task_options("traffic", task),
        }
    )


def run_of(folder: Path, clients: int, formulas: int, rounds: int) -> dict[str, Any]:
    """Return one cell of the table: processor time of a round, the difference of two runs over that of their rounds."""
    sites = read_all("traffic", f"demo:0-{clients}")
    seconds = []
    for number in (1, 1 + rounds):
        start = time.process_time()
        simulate(configuration(clients, formulas, number), sites, folder)
        seconds.append(time.process_time() - start)
    a_round = (seconds[1] - seconds[0]) / rounds
    return {"clients": clients, "formulas": formulas, "round": a_round, "published": PUBLISHED[clients][formulas]}


def growth(runs: Sequence[Mapping[str, Any]], key: str) -> tuple[float, float]:
    """Return the time of most formulas over that of fewest, mean over clients, and the same of clients, mean over formulas."""
    cells = {(run["clients"], run["formulas"]): float(run[key]) for run in runs}
    clients, formulas = (sorted({cell[part] for cell in cells}) for part in (0, 1))
    by_formulas = statistics.fmean(cells[n, formulas[-1]] / cells[n, formulas[0]] for n in clients)
    by_clients = statistics.fmean(cells[clients[-1], k] / cells[clients[0], k] for k in formulas)
    return by_formulas, by_clients


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "stl_round")
    parser.add_argument("--rounds", type=int, default=2, help="rounds by which the two runs differ")
    options = parser.parse_args()
    threads = timing.use_few_threads()

    table = Table("clients", "formulas", "round", "published", title="a round of FedSTL, seconds of processor time")
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for clients, published in PUBLISHED.items():
            for formulas in published:
                run = run_of(Path(folder), clients, formulas, options.rounds)
                table.add_row(str(clients), str(formulas), *(f"{run[key]:.3f}" for key in ("round", "published")))
                runs.append(run)
    grown = {key: growth(runs, key) for key in ("round", "published")}
    Console().print(table, *(f"{key}: times {a:.2f} by formulas, {b:.2f} by clients" for key, (a, b) in grown.items()))
    result = {"rounds": options.rounds, "threads": threads, "growth": grown, "runs": runs}
    timing.write(options.out, result, "torch")
