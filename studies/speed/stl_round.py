"""Processor time of training in a round of FedSTL, by clients and formulas (FedSTL's Table 5).

`python -m studies speed stl_round` trains the paper's GRU on demo sites: a tenth of the clients a round, five clusters, 10
local steps and 5 under the cluster's property. The paper has 10 and 5 epochs of a length that it does not state; here each has
one batch. A formula is a range over a window of two hours; forecasts have 40 hours, so 20 formulas fit. The paper's seconds are
of a cluster's round, ours of the round's training in all clusters, without the choice of clusters. Growth can be compared,
seconds cannot. Prints a table and writes JSON.
"""

import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from client.data.read import partition, read_all
from common.config.parse import parse
from common.config.run import RunConfig
from common.wire.messages import TRAIN
from deploy.simulation.clients import open_sessions
from server.run import run
from studies.harness.experiment import Settings, method_options, task_options
from studies.speed import timing
from studies.speed.closed_forms import TimedGrid

PUBLISHED = {10: (0.5545, 0.9456), 20: (0.6970, 1.2006), 50: (1.0387, 1.7981), 100: (1.1792, 2.0559)}
"""Clients -> seconds with 5 and with 20 formulas."""

FORMULAS = (5, 20)

HORIZON = 40

RANGE = "volume >= 100 & volume <= 900"
"""Range of every formula, in vehicles an hour; many forecasts leave it."""


def configuration(clients: int, formulas: int, rounds: int) -> RunConfig:
    """Return the configuration of a run under so many ranges over disjoint windows of two hours."""
    formula = " & ".join(f"G[{2 * k},{2 * k + 1}] ({RANGE})" for k in range(formulas))
    settings: Settings = {
        "run-id": f"stl-{clients}-{formulas}",
        **{"method": "fedstl", "task": "traffic", "model": "paper"},
        **{"rounds": rounds, "evaluate-every": rounds, "federation.cohort": 0.1, "federation.min-clients": 1},
        **method_options("fedstl", {"clusters": 5, "local-steps": 10, "cluster-steps": 5}),
        **task_options("traffic", {"property": "formula", "formula": formula, "horizon": HORIZON, "repair": "none"}),
    }
    return parse(settings)


def seconds_of(clients: int, formulas: int, rounds: int) -> float:
    """Return the processor time of a round's training, mean over rounds."""
    sites = partition(read_all("traffic", f"demo:0-{clients}"), 0)
    sessions, _ = open_sessions(sites, 0)
    with tempfile.TemporaryDirectory() as folder, TimedGrid(sessions, 0) as grid:
        run(grid, configuration(clients, formulas, rounds), Path(folder))
    return grid.seconds[TRAIN] / rounds


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "stl_round")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    threads = timing.use_few_threads()

    columns = [f"{formulas} formulas" for formulas in FORMULAS]
    table = Table(
        "clients", *columns, "times", "published times", title="training in a round of FedSTL, s of processor time"
    )
    runs: list[dict[str, Any]] = []
    for clients, published in PUBLISHED.items():
        ours = [seconds_of(clients, formulas, options.rounds) for formulas in FORMULAS]
        grown = [each[1] / each[0] for each in (ours, published)]
        table.add_row(str(clients), *(f"{one:.2f}" for one in (*ours, *grown)))
        runs.append({"clients": clients, "seconds": ours, "published": published, "times": grown})
    Console().print(table)
    result = {"formulas": FORMULAS, "rounds": options.rounds, "threads": threads, "runs": runs}
    timing.write(options.out, result, "torch")
