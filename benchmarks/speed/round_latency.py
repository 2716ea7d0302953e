"""Seconds per federated round with a ClientApp that does nothing: Flower's stock SuperNode against the resident client.

`python -m benchmarks.round_latency` measures 2 and 8 clients, once bare (no TLS, state in memory) and once full (TLS,
node authentication, SQLite), prints a table and writes JSON. One message with a 100 kB array goes to every node and one
such array comes back. "stock" is `flower-supernode` and Flower's own waiting; "resident" is fedloom's client and polling.
Both run the same ClientApp, which loads what fedloom's clients load; "stock, light app" is the stock client with a ClientApp
that loads nothing, so that the table shows what the loading and what the waiting costs.
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

from common.errors import RunError
from deploy.certificates import Certificates, make_authority, make_server_certificate
from deploy.control import Control, RunConfig
from deploy.keys import make_node_key, public_path
from deploy.processes import Processes, free_port
from deploy.superlink import SuperLinkSettings, flower_environment, flower_program, start_superlink

ROOT = Path(__file__).resolve().parent.parent
APP = ROOT / "benchmarks" / "speed" / "noop_app"
LIGHT = "stock, light app"
CLIENTS = [LIGHT, "stock", "resident"]
TARGET = {"bare": 50.0, "full": 20.0}  # times less than stock
DEADLINE = 900.0  # seconds a measurement may take
ASK_EVERY = 30.0  # seconds between two questions whether the run still goes on: each costs a core for a second


@dataclass(frozen=True)
class Case:
    """One measurement: `stock`, `stock, light app` or `resident` clients, how many, over a `bare` or `full` line."""

    client: str
    clients: int
    line: str
    rounds: int


@dataclass(frozen=True)
class Timing:
    """Seconds per round of one case."""

    client: str
    clients: int
    line: str
    seconds: list[float]

    @property
    def median(self) -> float:
        """Median seconds per round."""
        return statistics.median(self.seconds)


def main() -> None:
    """Measure, print and write."""
    options = _options()
    timings = []
    for line in options.lines:
        for clients in options.clients:
            for client in options.only:
                rounds = options.rounds if client == "resident" else options.stock_rounds
                timings.append(measure(Case(client, clients, line, rounds)))
                print(f"{client} {clients} {line}: {timings[-1].median:.3f} s", file=sys.stderr)
    _print_table(timings)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(t), "median": t.median} for t in timings]
    options.out.write_text(json.dumps({"cores": os.cpu_count(), "array_bytes": 100_000, "rows": rows}, indent=1) + "\n")


def measure(case: Case) -> Timing:
    """Start server and clients, run the rounds, end everything."""
    with tempfile.TemporaryDirectory(prefix="round-latency-") as folder, Processes() as processes:
        home, full = Path(folder), case.line == "full"
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
        control = Control(settings.control_address, certificates.ca if certificates else None, home / "flwr-cli")
        keys = [home / f"node-{i}.key" for i in range(case.clients)] if full else []
        for key in keys:
            make_node_key(key)
        control.register_all([public_path(key) for key in keys])

        for i, arguments in enumerate(_clients(case, settings, keys)):
            loads = "nothing" if case.client == LIGHT else "fedloom"
            own = {"PYTHONPATH": str(ROOT), "FLWR_HOME": str(home / f"flwr-{i}"), "NOOP_LOADS": loads}
            environment = flower_environment(own)
            processes.start(f"client {i}", arguments, log=home / f"client-{i}.log", environment=environment)
        polling = "fedloom" if case.client == "resident" else "stock"
        result = home / "seconds.json"
        config: RunConfig = {"nodes": case.clients, "rounds": case.rounds, "polling": polling, "result": str(result)}
        run = control.submit(APP, config)
        return Timing(case.client, case.clients, case.line, _wait(processes, control, run, result, settings))


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
    start = asked = time.monotonic()
    while not (result.is_file() and result.read_text()):
        processes.check()
        time.sleep(0.5)
        if time.monotonic() < asked + ASK_EVERY:
            continue
        status, asked = control.status(run), time.monotonic()
        if status.startswith("finished") and status != "finished:completed":
            raise RunError(f"the benchmark's run ended as {status}:\n{settings.log.read_text()[-3000:]}")
        if asked > start + DEADLINE:
            raise RunError(f"the benchmark's run took more than {DEADLINE:.0f} s")
    return [float(seconds) for seconds in json.loads(result.read_text())]


def _print_table(timings: list[Timing]) -> None:
    table = Table("line", "clients", "client", "median s", "min s", "max s", "times less", "target")
    stock = {(t.line, t.clients): t.median for t in timings if t.client == "stock"}
    for t in timings:
        base = stock.get((t.line, t.clients))
        gain = f"{base / t.median:.0f}" if base and t.client == "resident" else ""
        target = f"{TARGET[t.line]:.0f}" if gain else ""
        row = (f"{t.median:.3f}", f"{min(t.seconds):.3f}", f"{max(t.seconds):.3f}", gain, target)
        table.add_row(t.line, str(t.clients), t.client, *row)
    Console().print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--lines", nargs="+", choices=list(TARGET), default=list(TARGET))
    parser.add_argument("--only", nargs="+", choices=CLIENTS, default=CLIENTS)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the resident client")
    parser.add_argument("--stock-rounds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "round_latency.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
