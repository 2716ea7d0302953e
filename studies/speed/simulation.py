"""Time per client update: Flower's Ray simulation and `fedloom simulate` with the same apps.

`python -m studies speed simulation` runs FedRule on 1,000 demo homes, one client each, in both, and a ClientApp that does
nothing under Ray. Then it checks that the memory of the in-process simulation does not grow with rounds. Prints a table and
writes JSON. A client update is one train request with its reply; evaluation and start-up are left out.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from client.app import app as client_app
from client.data.read import read_all
from common.config.parse import parse
from common.config.run import RunConfig
from deploy.simulation.grid import simulate
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from studies.speed import timing

CORES = 2


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "simulation")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=4, help="timed rounds; one more round precedes them")
    options = parser.parse_args()
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)

    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"FEDLOOM_DATA": f"demo:0-{options.clients}", "FEDLOOM_STATE_DIR": f"{folder}/state"}
        os.environ["FEDLOOM_RUNS"] = folder
        in_process = fedloom(Path(folder), options.clients, options.rounds)
        ray = rays(Path(folder), options.clients, options.rounds)
        ray_nothing = rays_nothing(options.clients, options.rounds)
        memory = memory_growth(Path(folder), options.clients)
    table = [
        ("Ray, ClientApp that does nothing", ray_nothing),
        ("Ray, FedRule update", ray),
        ("fedloom simulate, FedRule update", in_process),
    ]
    print(
        f"{options.clients} clients, {CORES} cores\n\n| runtime | ms per client update | times fedloom's |\n|---|---|---|"
    )
    for name, milliseconds in table:
        print(f"| {name} | {milliseconds:.2f} | {milliseconds / in_process:.1f} |")
    print(f"\nmemory after 2, 10, 20 rounds: {', '.join(f'{m:.0f} MB' for m in memory)}")
    result = {"clients": options.clients, "milliseconds": dict(table), "memory_mb": memory, "command": sys.argv[1:]}
    timing.write(options.out, result, "torch", "flwr", "ray")


def settings(name: str, rounds: int) -> RunConfig:
    """Return the default configuration of FedRule, with evaluation at the end alone."""
    return parse({"run-id": name, "rounds": rounds, "evaluate-every": 1_000_000, "federation.deadline": 3600.0})


def fedloom(folder: Path, clients: int, rounds: int) -> float:
    """Return milliseconds per client update in process."""
    simulate(settings("fedloom", rounds + 1), read_all("rules", f"demo:0-{clients}"), folder)
    return _milliseconds(folder, "fedloom")


def rays(folder: Path, clients: int, rounds: int) -> float:
    """Return milliseconds per client update under Ray, with the product's ClientApp and server."""
    server = ServerApp()

    @server.main()
    def train(grid: Grid, context: Context) -> None:
        run(grid, settings("ray", rounds + 1), folder)

    run_simulation(server, client_app, clients, backend_config=_two_cores())
    return _milliseconds(folder, "ray")


def rays_nothing(clients: int, rounds: int) -> float:
    """Return milliseconds per message under Ray with a ClientApp that returns its message."""
    server, client = ServerApp(), ClientApp()
    seconds: list[float] = []

    @client.train()
    def nothing(message: Message, context: Context) -> Message:
        return Message(message.content, reply_to=message)

    @server.main()
    def ask(grid: Grid, context: Context) -> None:
        from flwr.app import RecordDict

        while len(nodes := list(grid.get_node_ids())) < clients:
            time.sleep(0.1)
        for _ in range(rounds + 1):
            start = time.monotonic()
            list(grid.send_and_receive([Message(RecordDict(), node, "train") for node in nodes]))
            seconds.append(time.monotonic() - start)

    run_simulation(server, client, clients, backend_config=_two_cores())
    return 1000 * statistics.median(seconds[1:]) / clients


def memory_growth(folder: Path, clients: int) -> list[float]:
    """Return resident megabytes after 2, 10 and 20 rounds of one simulation each, in this order."""
    sizes = []
    for rounds in (2, 10, 20):
        simulate(settings(f"memory-{rounds}", rounds), read_all("rules", f"demo:0-{clients}"), folder)
        sizes.append(psutil.Process().memory_info().rss / 2**20)
    return sizes


def _milliseconds(folder: Path, name: str) -> float:
    """Return the milliseconds per client, median over rounds.

    The first round (enrolment, imports) and the last are left out.
    """
    rounds = [event for event in RunDirectory(folder, name).events() if isinstance(event, RoundEvent)]
    return 1000 * statistics.median(r.seconds / r.answered for r in rounds[1:-1])


def _two_cores() -> Any:
    return {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": CORES}}
