"""A federation whose ClientApp does nothing, for timings of rounds."""

import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from common.errors import RunError
from deploy.federation.fork_server import flower_environment
from deploy.federation.processes import Processes
from deploy.keys.certificates import Certificates, make_authority, make_server_certificate
from deploy.keys.nodes import make_node_key, public_path
from deploy.superlink.control import Control, FlowerConfig
from deploy.superlink.superlink import SuperLinkSettings, free_port, start_superlink
from studies.harness.study import ROOT

APP = ROOT / "studies" / "speed" / "noop_app"
LIGHT = ", light app"
CLIENTS = ["stock, light app", "stock", "resident", "resident, light app"]
CHANNELS = ["bare", "memory", "full"]
DEADLINE = 900.0  # seconds that a measurement may take
STATUS_SECONDS = 30.0  # between two status requests, each of which occupies a core for a second


@dataclass(frozen=True)
class Case:
    """Case of a measurement: kind and number of clients, and channel.

    Kinds are those of `CLIENTS`; channels are those of `CHANNELS`.
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
    superlink_mb: tuple[float, float]
    """Resident memory of the SuperLink in MB at the start and the end of the rounds."""
    calls: dict[str, float] = field(default_factory=dict)
    """Kind of request -> calls of a resident client in a round, the mean over rounds and clients."""

    @property
    def median(self) -> float:
        """Median seconds per round."""
        return statistics.median(self.seconds)


def measure(case: Case) -> Timing:
    """Start server and clients, run the rounds, and stop all processes."""
    with tempfile.TemporaryDirectory(prefix="round-latency-") as folder, Processes() as processes:
        home, secure = Path(folder), case.channel != "bare"
        certificates = _certificates(home / "certificates") if secure else None
        settings = SuperLinkSettings(
            home,
            certificates,
            authenticate=secure,
            database=case.channel == "full",
            port=free_port(),
            control_port=free_port(),
            environment={"PYTHONPATH": str(ROOT)},
        )
        superlink = psutil.Process(start_superlink(processes, settings).process.pid)
        control = Control(settings.control_address, certificates.ca if certificates else None)
        keys = [home / f"node-{i}.key" for i in range(case.clients)] if secure else []
        for key in keys:
            make_node_key(key)
            control.register(public_path(key))

        for i, arguments in enumerate(_clients(case, settings, keys)):
            loads = "nothing" if case.client.endswith(LIGHT) else "fedloom"
            own = {"PYTHONPATH": str(ROOT), "FLWR_HOME": str(home / f"flwr-{i}"), "NOOP_LOADS": loads}
            own["NOOP_CALLS"] = str(home / f"calls-{i}.jsonl")
            environment = flower_environment(own)
            processes.start(f"client {i}", arguments, log=home / f"client-{i}.log", environment=environment)
        polling = "fedloom" if case.client.startswith("resident") else "stock"
        result = home / "seconds.json"
        config: FlowerConfig = {"nodes": case.clients, "rounds": case.rounds, "polling": polling, "result": str(result)}
        run = control.submit(APP, config)
        memory: list[float] = []
        seconds = _wait(
            processes, control, run, result, settings, lambda: memory.append(superlink.memory_info().rss / 1e6)
        )
        early, late = memory[len(memory) // 4], memory[-1]
        megabytes, calls = (round(early), round(late)), count_calls(home.glob("calls-*.jsonl"), case.rounds)
        return Timing(case.client, case.clients, case.channel, seconds, megabytes, calls)


def count_calls(files: Iterable[Path], rounds: int) -> dict[str, float]:
    """Return the calls of a client in a round by kind, the mean over the last rounds of all clients.

    Args:
        files: One for each client; a line a reply has the calls until then.
        rounds: Number of rounds.
    """
    totals, counted = Counter[str](), 0
    for file in files:
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()][-rounds - 1 :]
        totals += Counter(lines[-1]) - Counter(lines[0])
        counted += len(lines) - 1
    return {kind: number / counted for kind, number in totals.items()}


def _certificates(folder: Path) -> Certificates:
    make_authority(folder)
    return make_server_certificate(folder)


def _clients(case: Case, settings: SuperLinkSettings, keys: list[Path]) -> Iterator[list[str | Path]]:
    ca = settings.certificates.ca if settings.certificates else None
    for i in range(case.clients):
        if case.client.startswith("resident"):
            yield [sys.executable, APP / "resident.py", settings.address, *([ca, keys[i]] if ca else [])]
            continue
        proof = ["--root-certificates", ca, "--auth-supernode-private-key", keys[i]] if ca else ["--insecure"]
        yield [
            Path(sys.executable).with_name("flower-supernode"),
            *("--superlink", settings.address, "--isolation", "subprocess", "--port", str(free_port())),
            *proof,
        ]


def _wait(
    processes: Processes,
    control: Control,
    run: int,
    result: Path,
    settings: SuperLinkSettings,
    watch: Callable[[], object],
) -> list[float]:
    start = checked = time.monotonic()
    while not (result.is_file() and result.read_text()):
        processes.check()
        watch()
        time.sleep(0.5)
        if time.monotonic() < checked + STATUS_SECONDS:
            continue
        status, checked = control.status(run), time.monotonic()
        if status.startswith("finished") and status != "finished:completed":
            raise RunError(f"the benchmark's run ended as {status}:\n{settings.log.read_text()[-3000:]}")
        if checked > start + DEADLINE:
            raise RunError(f"the benchmark's run took more than {DEADLINE:.0f} s")
    return [float(seconds) for seconds in json.loads(result.read_text())]
