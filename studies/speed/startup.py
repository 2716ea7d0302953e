"""Processor time and memory of commands at their start, and of clients that wait and that train.

`python -m studies speed startup` starts each command in a process of its own and takes the best of three. Then, for each
task, `fedloom join` connects over TLS to `fedloom serve` and trains two rounds by FedAvg on four parts of the demo data. Its
processor time is that until the connection, its memory the largest. Waiting memory is that at the connection: PyTorch is
imported by the first request after it. Private memory is what no other process shares.
"""

import argparse
import os
import socket
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

from client.tasks.registry import CLIENT_TASKS
from common.errors import RunError
from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import add_key, make_node_key
from deploy.superlink.superlink import free_port
from studies.harness.command import start_command, time_start
from studies.speed import timing

HELP = {"cpu_seconds": 0.3, "resident_mb": 60.0}
LIGHT = {"cpu_seconds": 0.8}
COMMANDS = {
    "--help": HELP,
    "--version": HELP,
    "keys node node.key": LIGHT,
    "nodes list": LIGHT,
    "budget": LIGHT,
    "runs": LIGHT,
    "status --state-dir .": LIGHT,
}
"""Command -> limits; none of them may import a heavy package."""

WAITING = {"waiting_resident_mb": 100.0}
PLAIN = {"cpu_seconds": 2.5, "resident_mb": 330.0, "private_mb": 215.0, **WAITING}
LIMITS = {"rules": {"cpu_seconds": 4.0, "resident_mb": 470.0, **WAITING}}
"""Task -> limits of its client; the others have those of `PLAIN`."""

RUN, DATA, MEGABYTE, PAUSE_SECONDS, PATIENCE = "startup", "demo:0-4", 2**20, 0.05, 300.0


def measure_command(words: str, tries: int) -> dict[str, Any]:
    """Return the figures of a command, the best of several starts."""
    starts = []
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder:
            starts.append(time_start(words.split(), Path(folder), {"FEDLOOM_RUNS": str(Path(folder) / "runs")}))
    if failed := [start.code for start in starts if start.code]:
        raise RunError(f"fedloom {words} has ended with exit code {failed[0]}")
    return {
        "command": words,
        "cpu_seconds": min(start.user + start.system for start in starts),
        "resident_mb": min(start.megabytes for start in starts),
        "modules": sorted(frozenset().union(*(start.heavy for start in starts))),
        "limits": COMMANDS[words],
    }


def measure_client(task: str, tries: int) -> dict[str, Any]:
    """Return the figures of a client of this task, the best of several."""
    found = [_join_once(task) for _ in range(tries)]
    best = {name: min(figures[name] for figures in found) for name in found[0]}
    return {"command": f"join, {task}", **best, "limits": LIMITS.get(task, PLAIN)}


def _join_once(task: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="startup-") as folder, ExitStack() as stack:
        home, port = Path(folder), free_port()
        ensure_certificates(home / "home", [])
        add_key(home / "home" / "nodes", make_node_key(home / "node.key"), "client", 1)
        options = ["--task", task, "--method", "fedavg", "--clients", "1", "--rounds", "2", "--run-id", RUN]
        ports = ["--home", "home", "--port", str(port), "--control-port", str(free_port())]
        server = start_command(stack, home, "server", "serve", *options, *ports)
        keys = ["--ca", "home/ca.pem", "--key", "node.key", "--name", "client", "--state-dir", "state"]
        _wait_for_port(port)
        joined = start_command(
            stack, home, "client", "join", "--server", f"localhost:{port}", *keys, "--data", DATA, "--task", task
        )
        client, log = psutil.Process(joined.pid), home / "client.log"
        at_connection, peak = dict[str, float](), dict[str, float]()
        end = time.monotonic() + PATIENCE
        while server.poll() is None and time.monotonic() < end:
            with suppress(psutil.NoSuchProcess):
                now = _figures(client)
                peak = {name: max(value, peak.get(name, 0.0)) for name, value in now.items()}
            if not at_connection and "connected to" in log.read_text():
                at_connection = now
            time.sleep(PAUSE_SECONDS)
        if server.poll() or not at_connection:
            raise RunError(f"the run did not complete:\n{log.read_text()[-2000:]}")
        waiting = {f"waiting_{name}": at_connection[name] for name in ("resident_mb", "private_mb")}
        return {
            **peak,
            "cpu_seconds_in_all": peak["cpu_seconds"],
            "cpu_seconds": at_connection["cpu_seconds"],
            **waiting,
        }


def _wait_for_port(port: int) -> None:
    """Wait until a server listens; a client before it would use processor time for asking again."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(PAUSE_SECONDS)
    raise RunError("the server did not start")


def _figures(process: psutil.Process) -> dict[str, float]:
    times, memory = process.cpu_times(), process.memory_full_info()
    return {
        "cpu_seconds": times.user + times.system,
        "resident_mb": memory.rss / MEGABYTE,
        "private_mb": memory.uss / MEGABYTE,
    }


def missed(row: dict[str, Any]) -> list[str]:
    """Return a line for each limit that a row misses."""
    over = [f"{name} {row[name]:.2f}, at most {limit:g}" for name, limit in row["limits"].items() if row[name] > limit]
    return [f"{row['command']}: {line}" for line in [*over, *(f"imports {name}" for name in row.get("modules", []))]]


def main() -> None:
    """Measure, print, write and check."""
    options = _read_options()
    load, rows = os.getloadavg()[0], []
    print("| command | CPU s | MB resident | MB private | MB while waiting |\n|---|---|---|---|---|")
    for measure, names in ((measure_command, options.commands), (measure_client, options.tasks)):
        for name in names:
            row = measure(name, options.tries)
            memory = [row.get(name) for name in ("resident_mb", "private_mb", "waiting_resident_mb")]
            cells = [f"{row['cpu_seconds']:.2f}", *("" if value is None else f"{value:.0f}" for value in memory)]
            print(f"| {row['command']} | {' | '.join(cells)} |", flush=True)
            rows.append(row)
    about = {"rows": rows, "cores": os.cpu_count(), "load": [load, os.getloadavg()[0]]}
    timing.write(options.out, about, "torch", "flwr", "typer")
    lines = [line for row in rows for line in missed(row)]
    print("\n".join(lines), file=sys.stderr)
    if options.check and lines:
        sys.exit(1)


def _read_options() -> argparse.Namespace:
    parser = timing.options(__doc__, "startup")
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=[*COMMANDS], help="commands to start")
    parser.add_argument("--tasks", nargs="*", choices=CLIENT_TASKS, default=[*CLIENT_TASKS], help="tasks of clients")
    parser.add_argument("--tries", type=int, default=3, help="starts of each, of which the best counts")
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    return parser.parse_args()
