"""Time of a round with a ClientApp without work: Flower's stock SuperNode and the resident client.

`python -m benchmarks speed round_latency` measures 2 and 8 clients, bare (no TLS, state in memory) and full (TLS, node
authentication, SQLite), prints a table and writes JSON. One message with a 100 kB array goes to every node and one such
array comes back. "stock" is `flower-supernode` and Flower's own waiting; "resident" is fedloom's client and polling. Both
run the same ClientApp, which imports the modules of fedloom's clients; "stock, light app" is the stock client with a
ClientApp that imports nothing. The difference is the cost of imports, the rest that of waiting.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness.study import ROOT
from benchmarks.speed import timing
from common.errors import RunError
from deploy.certificates import Certificates, make_authority, make_server_certificate
from deploy.control import Control, RunConfig
from deploy.flower_programs import flower_environment, flower_program
from deploy.keys import make_node_key, public_path
from deploy.ports import free_port
from deploy.processes import Processes
from deploy.superlink import SuperLinkSettings, start_superlink

APP = ROOT / "benchmarks" / "speed" / "noop_app"
LIGHT = "stock, light app"
CLIENTS = [LIGHT, "stock", "resident"]
TARGET = {"bare": 50.0, "full": 20.0}
"""Times less than stock, by channel."""
DEADLINE = 900.0  # seconds that a measurement may take
STATUS_SECONDS = 30.0  # between two status requests, each of which occupies a core for a second


@dataclass(frozen=True)
class Case:
    """Case of a measurement: kind and number of clients, and channel.

    Kinds are `stock`, `stock, light app` and `resident`; channels are `bare` and `full`.
    """

    client: str
    clients: int
    channel: str
    rounds: int


@dataclass(frozen=True)
class Timing:
    """Seconds per round of one case."""

    client: str
    clients: int
    channel: str
    seconds: list[float]

    @property
    def median(self) -> float:
        """Median seconds per round."""
        return statistics.median(self.seconds)


def main() -> None:
    """Measure, print and write."""
    options = _options()
    timings = []
    for channel in options.channels:
        for clients in options.clients:
            for client in options.only:
                rounds = options.rounds if client == "resident" else options.stock_rounds
                timings.append(measure(Case(client, clients, channel, rounds)))
                print(f"{client} {clients} {channel}: {timings[-1].median:.3f} s", file=sys.stderr)
    _print_table(timings)
    rows = [{**asdict(t), "median": t.median} for t in timings]
    timing.write(options.out, {"cores": os.cpu_count(), "array_bytes": 100_000, "rows": rows}, "flwr")


def measure(case: Case) -> Timing:
    """Start server and clients, run the rounds, and stop all processes."""
    with tempfile.TemporaryDirectory(prefix="round-latency-") as folder, Processes() as processes:
        home, full = Path(folder), case.channel == "full"
        certificates = _certificates(home / "certificates") if full else None
        settings = SuperLinkSettings(
            home,
            certificates,
            authenticate=full,
            database=full,
            port=free_port(),
            control_port=free_port(),
            environment={"PYTHONPATH": str(ROOT)},
        )
        start_superlink(processes, settings)
        control = Control(settings.control_address, certificates.ca if certificates else None)
        keys = [home / f"node-{i}.key" for i in range(case.clients)] if full else []
        for key in keys:
            make_node_key(key)
            control.register(public_path(key))

        for i, arguments in enumerate(_clients(case, settings, keys)):
            loads = "nothing" if case.client == LIGHT else "fedloom"
            own = {"PYTHONPATH": str(ROOT), "FLWR_HOME": str(home / f"flwr-{i}"), "NOOP_LOADS": loads}
            environment = flower_environment(own)
            processes.start(f"client {i}", arguments, log=home / f"client-{i}.log", environment=environment)
        polling = "fedloom" if case.client == "resident" else "stock"
        result = home / "seconds.json"
        config: RunConfig = {"nodes": case.clients, "rounds": case.rounds, "polling": polling, "result": str(result)}
        run = control.submit(APP, config)
        return Timing(case.client, case.clients, case.channel, _wait(processes, control, run, result, settings))


def _certificates(folder: Path) -> Certificates:
    make_authority(folder)
    return make_server_certificate(folder)


def _clients(case: Case, settings: SuperLinkSettings, keys: list[Path]) -> Iterator[list[str | Path]]:
    ca = settings.certificates.ca if settings.certificates else None
    for i in range(case.clients):
        if case.client == "resident":
            yield [sys.executable, APP / "resident.py", settings.address, *([ca, keys[i]] if ca else [])]
            continue
        proof = ["--root-certificates", ca, "--auth-supernode-private-key", keys[i]] if ca else ["--insecure"]
        yield [
            flower_program("flower-supernode"),
            *("--superlink", settings.address, "--isolation", "subprocess", "--port", str(free_port())),
            *proof,
        ]


def _wait(processes: Processes, control: Control, run: int, result: Path, settings: SuperLinkSettings) -> list[float]:
    start = checked = time.monotonic()
    while not (result.is_file() and result.read_text()):
        processes.check()
        time.sleep(0.5)
        if time.monotonic() < checked + STATUS_SECONDS:
            continue
        status, checked = control.status(run), time.monotonic()
        if status.startswith("finished") and status != "finished:completed":
            raise RunError(f"the benchmark's run ended as {status}:\n{settings.log.read_text()[-3000:]}")
        if checked > start + DEADLINE:
            raise RunError(f"the benchmark's run took more than {DEADLINE:.0f} s")
    return [float(seconds) for seconds in json.loads(result.read_text())]


def _print_table(timings: list[Timing]) -> None:
    table = Table("channel", "clients", "client", "median s", "min s", "max s", "times less", "target")
    stock = {(t.channel, t.clients): t.median for t in timings if t.client == "stock"}
    for t in timings:
        base = stock.get((t.channel, t.clients))
        gain = f"{base / t.median:.0f}" if base and t.client == "resident" else ""
        target = f"{TARGET[t.channel]:.0f}" if gain else ""
        row = (f"{t.median:.3f}", f"{min(t.seconds):.3f}", f"{max(t.seconds):.3f}", gain, target)
        table.add_row(t.channel, str(t.clients), t.client, *row)
    Console().print(table)


def _options() -> argparse.Namespace:
    parser = timing.options(__doc__, "round_latency")
    parser.add_argument("--clients", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--channels", nargs="+", choices=list(TARGET), default=list(TARGET))
    parser.add_argument("--only", nargs="+", choices=CLIENTS, default=CLIENTS)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the resident client")
    parser.add_argument("--stock-rounds", type=int, default=4)
    return parser.parse_args()
