"""A slow network that loses packets; one of two clients is cut off in the middle of a round.

The exchange names no task, which import contracts hold. Rounds of rules are short and of one message; those of traffic are
long, and clients are asked for assignments in them.
"""

import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import make_node_key
from deploy.superlink.superlink import free_port
from server.aggregation.lengths import RECENT_ROUNDS
from tests.system.desk import Command, Desk, until
from tests.system.machines import Machines, connected_machines

pytestmark = pytest.mark.system

DELAY_SECONDS = 0.03  # of each way; a round goes twenty ways there and back, or more
RELAY = Path(__file__).with_name("slow_relay.py")
OPTIONS = {  # networks, whose rounds are many
    "rules": ("--method", "fedrule"),
    "traffic": ("--method", "fedstl", "--set", "training.local-steps=2"),
}
DATA = {"rules": "demo:0-40", "traffic": "demo:0-8"}
TRIES = 3  # on a busy machine a round may begin later than the cut that was meant for it
LATE = {"far": "evaluation: no answer"}


@dataclass
class Federation:
    """Server and two clients of a task; `far` is behind a slow line, which may be cut."""

    folder: Path
    desk: Desk
    line: str
    served: Command
    clients: tuple[Command, Command]

    def rounds(self) -> list[dict[str, Any]]:
        """Return the events of its rounds."""
        assert all(command.process.poll() is None for command in (self.served, *self.clients)), self.message()
        return self.desk.rounds("cut", self.folder)

    def message(self) -> str:
        return f"{self.folder.name}: {[command.error()[-600:] for command in (self.served, *self.clients)]}"

    def await_rounds(self, further: int, answered: int) -> None:
        """Wait for so many further rounds that had so many replies."""
        before = len(self.rounds())
        until(lambda: [e["answered"] for e in self.rounds()[before:]].count(answered) >= further, self.message)

    def cut(self, machines: Machines) -> tuple[float, float]:
        """Cut the line half a round after the end of a round; return the times before and after, in seconds since 1970."""
        self.await_rounds(1, answered=2)
        time.sleep(self.rounds()[-1]["seconds"] / 2)
        before = time.time()
        machines.set_link(self.line, "down")
        return before, time.time()


@pytest.mark.parametrize("task", OPTIONS)
def test_a_task_goes_on_while_one_of_two_clients_is_cut_off_in_a_round(task: str, desk: Desk) -> None:
    with connected_machines(lines=1) as machines:
        if not machines.lines or not machines.lose(0.01):
            pytest.skip("network namespaces and iptables need root")
        federation = start(desk, machines, task)
        for _ in range(TRIES):
            before, after = federation.cut(machines)
            federation.await_rounds(2, answered=1)
            healed = time.time()
            machines.set_link(federation.line, "up")
            federation.await_rounds(1, answered=2)
            events = federation.rounds()
            struck = next(event for event in events if event["time"] > after)
            if was_open := struck["time"] - struck["seconds"] < before:
                break
        assert [event["round"] for event in events] == list(range(1, len(events) + 1))
        assert was_open, "the cut was in an open round"
        refused = [event["refused"] for event in events if event["refused"] not in ({}, LATE)]
        assert all("times the typical" in reason for reasons in refused for reason in reasons.values()), refused
        assert len(refused) <= 2 * RECENT_ROUNDS, "who is too long after an absence counts again"
        cut = [event for event in events if struck["round"] < event["round"] and event["time"] < healed]
        assert {(event["answered"], *event["missing"]) for event in cut} == {(1, "far")}
        assert events[-1]["clients"]["far"]["seconds"] > 2 * DELAY_SECONDS
        for command in (federation.served, *federation.clients):
            command.process.send_signal(signal.SIGTERM)
        assert {command.end() for command in federation.clients} == {0}, "clients leave cleanly"


def start(desk: Desk, machines: Machines, task: str) -> Federation:
    """Start server, clients and the slow line on their machines; each client has half of the data."""
    folder, port, slow = desk.folder / task, free_port(), free_port()
    [(line, far)] = machines.lines.items()
    ca = ensure_certificates(folder / "home", [far, machines.others_address]).ca
    (folder / "home" / "nodes").mkdir()
    options = ("--task", task, "--clients", "2", "--rounds", "5000", "--run-id", "cut", "--home", "home")
    ports = ("--port", str(port), "--control-port", str(free_port()))
    served = desk.start("serve", *options, *OPTIONS[task], *ports, prefix=machines.server, folder=folder)
    relay = [*machines.clients, sys.executable, str(RELAY), str(slow), f"{far}:{port}", str(DELAY_SECONDS)]
    desk.program(relay, folder)
    where = {
        "far": (machines.clients, f"127.0.0.1:{slow}", "0/2"),
        "near": (machines.others, f"{machines.others_address}:{port}", "1/2"),
    }

    def join(name: str) -> Command:
        make_node_key(folder / f"{name}.key")
        shutil.copy(folder / f"{name}.key.pub", folder / "home" / "nodes" / f"{name}.pub")
        prefix, address, shard = where[name]
        at = ("--server", address, "--ca", ca, "--key", f"{name}.key", "--state-dir", f"{name}-state")
        client = ("--task", task, "--data", DATA[task], "--shard", shard, "--name", name)
        return desk.start("join", *at, *client, prefix=prefix, folder=folder)

    return Federation(folder, desk, line, served, (join("far"), join("near")))
