"""A federation whose ClientApp does nothing, for timings of rounds."""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
CLIENTS = ["resident", "resident, light app"]
CHANNELS = ["bare", "memory", "full"]
DEADLINE = 900.0  # seconds that a measurement may take
MOST_PROCESSES, TOGETHER = 64, 10  # processes of one client each at most; of more clients, which are threads of them
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

        for i, arguments in enumerate(_clients(case.clients, settings, keys)):
            loads = "nothing" if case.client.endswith(LIGHT) else "fedloom"
            own = {"PYTHONPATH": str(ROOT), "FLWR_HOME": str(home / f"flwr-{i}"), "NOOP_LOADS": loads}
            environment = flower_environment(own)
            processes.start(f"client {i}", arguments, log=home / f"client-{i}.log", environment=environment)
        result = home / "seconds.json"
        config: FlowerConfig = {
            "nodes": case.clients,
            "rounds": case.rounds,
            "result": str(result),
        }
        run = control.submit(APP, config)
        memory: list[float] = []
        seconds = _wait(
            processes, control, run, result, settings, lambda: memory.append(superlink.memory_info().rss / 1e6)
        )
        early, late = memory[len(memory) // 4], memory[-1]
        return Timing(case.client, case.clients, case.channel, seconds, (round(early), round(late)))


def _certificates(folder: Path) -> Certificates:
    make_authority(folder)
    return make_server_certificate(folder)


def _clients(number: int, settings: SuperLinkSettings, keys: list[Path]) -> Iterator[list[str | Path]]:
    """Yield the command line of each process of clients: one client each, or an equal share of many."""
    ca = settings.certificates.ca if settings.certificates else None
    processes = number if number <= MOST_PROCESSES else TOGETHER
    for i in range(processes):
        yield [sys.executable, APP / "resident.py", settings.address, *([ca, *keys[i::processes]] if ca else [])]


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
