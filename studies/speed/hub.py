"""Time of a round with many clients behind a few hubs: TLS, node keys, FedRule, all on this machine.

`python -m studies speed hub` starts `fedloom serve` and eight `fedloom join --clients 0`, each with 125 demo homes. Every
client trains in every round, three steps; the model is measured after the last round only. Hubs send sums, then in
another run each reply; `--answer` chooses. The time of a round is that between the ends of two rounds, the first left out.
Processor time is of all processes, hubs and server apart, whatever else runs here. Memory is the largest resident one.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from common.errors import RunError
from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import add_key, make_node_key
from deploy.superlink.superlink import free_port
from studies.harness.command import start_command
from studies.speed import timing

LIMITS = {"sums": 0.8, "replies": 5.0}
"""Seconds of a round with 1,000 clients behind 8 hubs, by the answer of hubs."""

HUB_MB, CLIENT_MB = 400, 0.25
"""Largest resident memory of a hub: without clients, and of each client."""
CHECKED = {"median": "limit", "peak_mb_hub": "limit_mb"}
"""Figure -> its limit."""

TRAINED = 0.9
"""Share of the clients that must reply; some demo homes have no rule to train on."""

RUN, MEGABYTE = "hub", 2**20
PAUSE_SECONDS, PATIENCE = 0.5, 1800.0


@dataclass(frozen=True)
class Figures:
    """Figures of one run.

    Args:
        answer: Answer of the hubs: `sums` or `replies`.
        hubs: Number of hubs.
        clients: Number of clients.
        seconds: Seconds of each round but the first.
        cpu_hubs: Processor seconds of all hubs in a round.
        cpu_server: The same of server, SuperLink and the command that started them.
        mb_up: Megabytes of the replies of a round.
        mb_down: Megabytes of its requests.
        peak_mb_hub: Largest resident memory of a hub.
        peak_mb_server: Largest resident memory of a process of the server.
    """

    answer: str
    hubs: int
    clients: int
    seconds: list[float]
    cpu_hubs: float
    cpu_server: float
    mb_up: float
    mb_down: float
    peak_mb_hub: float
    peak_mb_server: float


class _Watch:
    """Processor time and memory of processes, and of all that they start."""

    def __init__(self, roots: list[int]) -> None:
        self._roots, self.seconds, self.peak = roots, dict[int, float](), 0.0

    def look(self) -> float:
        """Return the processor seconds so far."""
        for root in self._roots:
            with suppress(psutil.NoSuchProcess):
                parent = psutil.Process(root)
                for process in (parent, *parent.children(recursive=True)):
                    times = process.cpu_times()
                    self.seconds[process.pid] = times.user + times.system
                    self.peak = max(self.peak, process.memory_info().rss / MEGABYTE)
        return sum(self.seconds.values())


def measure(answer: str, hubs: int, clients: int, rounds: int) -> Figures:
    """Start server and hubs, train, and return the figures."""
    with tempfile.TemporaryDirectory(prefix="hub-") as folder, ExitStack() as stack:
        home, port = Path(folder), free_port()
        ensure_certificates(home / "home", [])
        options = ["--clients", str(clients), "--rounds", str(rounds), "--run-id", RUN, "--home", "home", "--json"]
        options += ["--port", str(port), "--control-port", str(free_port()), "--method", "fedrule"]
        federation = [f"federation.min-replies={int(TRAINED * clients)}", f"federation.answer={answer}"]
        for pair in ["evaluate-every=1000000", "training.local-steps=3", *federation]:
            options += ["--set", pair]
        for k in range(hubs):
            add_key(home / "home" / "nodes", make_node_key(home / f"{k}.key"), f"hub-{k}", _share(k, hubs, clients))
        server = start_command(stack, home, "server", "serve", *options)
        joined = []
        for k in range(hubs):
            keys = ["--ca", "home/ca.pem", "--key", f"{k}.key", "--name", f"hub-{k}", "--state-dir", f"state-{k}"]
            first = sum(_share(j, hubs, clients) for j in range(k))
            data = ["--data", f"demo:{first}-{first + _share(k, hubs, clients)}", "--clients", "0"]
            joined.append(start_command(stack, home, f"hub-{k}", "join", "--server", f"localhost:{port}", *keys, *data))
        return _follow(home, server, joined, (answer, hubs, clients), rounds)


def _share(k: int, hubs: int, clients: int) -> int:
    return clients * (k + 1) // hubs - clients * k // hubs


Process = subprocess.Popen[bytes]


def _follow(home: Path, server: Process, joined: list[Process], about: tuple[str, int, int], rounds: int) -> Figures:
    """Watch the processes until the run ends; processor time counts from the end of the first round."""
    watches = _Watch([process.pid for process in joined]), _Watch([server.pid])
    marks: dict[int, tuple[float, float]] = {}
    end = time.monotonic() + PATIENCE
    while server.poll() is None and rounds not in marks and time.monotonic() < end:
        used = watches[0].look(), watches[1].look()
        marks.setdefault(len(_rounds(home)), used)
        time.sleep(PAUSE_SECONDS)
    for process in joined:
        process.terminate()
    events = _rounds(home)
    if len(events) < rounds or min(event["answered"] for event in events) < TRAINED * about[2]:
        raise RunError(f"the run did not complete:\n{(home / 'server.log').read_text()[-3000:]}")
    times = [event["time"] for event in events]
    seen = sorted(number for number in marks if number)
    (first, last), between = (seen[0], seen[-1]), max(seen[-1] - seen[0], 1)
    hub_cpu, server_cpu = ((marks[last][k] - marks[first][k]) / between for k in (0, 1))
    return Figures(
        *about,
        [later - earlier for earlier, later in pairwise(times)],
        hub_cpu,
        server_cpu,
        statistics.median(event["bytes_up"] for event in events) / 1e6,
        statistics.median(event["bytes_down"] for event in events) / 1e6,
        watches[0].peak,
        watches[1].peak,
    )


def _rounds(home: Path) -> list[dict[str, Any]]:
    path = home / "runs" / RUN / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("\n")]
    return [event for event in events if event["event"] == "round"]


def main() -> None:
    """Measure, print, write and check."""
    parser = timing.options(__doc__, "hub")
    parser.add_argument("--answer", choices=LIMITS, nargs="+", default=[*LIMITS])
    parser.add_argument("--hubs", type=int, default=8)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    options = parser.parse_args()
    columns = "answer | hubs | clients | s a round | CPU s of hubs | CPU s of the server | MB up | MB down | MB a hub"
    print(f"| {columns} | MB server |\n{'|---' * 10}|")
    rows = [_measure_row(answer, options.hubs, options.clients, options.rounds) for answer in options.answer]
    timing.write(options.out, {"rows": rows, "cores": os.cpu_count()}, "torch", "flwr")
    missed = [(row, key, limit) for row in rows for key, limit in CHECKED.items() if row[key] > row[limit]]
    for row, key, limit in missed:
        print(f"{row['answer']}: {key} is {row[key]:.3g}, the limit is {row[limit]:.3g}", file=sys.stderr)
    if options.check and missed:
        sys.exit(1)


def _measure_row(answer: str, hubs: int, clients: int, rounds: int) -> dict[str, Any]:
    load = os.getloadavg()[0]
    found = measure(answer, hubs, clients, rounds)
    median = statistics.median(found.seconds)
    parts = (median, found.cpu_hubs, found.cpu_server, found.mb_up, found.mb_down)
    memory = [f"{value:.0f}" for value in (found.peak_mb_hub, found.peak_mb_server)]
    cells = [answer, str(hubs), f"{clients:,}", *(f"{value:.2f}" for value in parts), *memory]
    print(f"| {' | '.join(cells)} |", flush=True)
    limits = {"limit": LIMITS[answer], "limit_mb": HUB_MB + CLIENT_MB * clients / hubs}
    return {**asdict(found), "median": median, **limits, "load": [load, os.getloadavg()[0]]}
