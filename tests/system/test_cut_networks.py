"""A slow network that loses packets, is cut in the middle of a round and heals, for every task at once."""

import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from common.tasks.registry import TASKS
from deploy.certificates import ensure_certificates
from deploy.keys import make_node_key
from deploy.ports import free_port
from tests.system.desk import Command, Desk, until
from tests.system.machines import Machines, connected_machines

pytestmark = pytest.mark.system

SETTLING_SECONDS = 4.0  # a round whose training replies have arrived ends without its evaluation
CUT_SECONDS = 3.0  # further seconds
DELAY_SECONDS = 0.05  # of each way
RELAY = Path(__file__).with_name("slow_relay.py")
BUILT_IN = ("rules", "sessions", "traffic", "ratings", "markets")


def test_every_task_goes_on_after_a_cut_of_the_network(desk: Desk) -> None:
    with connected_machines() as machines:
        if not machines.cable or not machines.lose(0.01):
            pytest.skip("network namespaces and iptables need root")
        assert set(BUILT_IN) <= set(TASKS)
        commands = [command for task in BUILT_IN for command in start(desk, machines, task)]
        states = {task: desk.folder / task for task in BUILT_IN}
        await_rounds(desk, states, commands, 2)
        machines.set_link("down")
        time.sleep(SETTLING_SECONDS)
        before = counts(desk, states)
        time.sleep(CUT_SECONDS)
        assert counts(desk, states) == before, "nobody answers over a cut network"
        machines.set_link("up")
        await_rounds(desk, states, commands, 2)
        for folder in states.values():
            numbers = [event["round"] for event in desk.rounds("cut", folder)]
            assert numbers == list(range(1, len(numbers) + 1))
            assert desk.rounds("cut", folder)[-1]["answered"] == 1
            assert desk.rounds("cut", folder)[-1]["seconds"] > 2 * DELAY_SECONDS
        for command in reversed(commands):
            command.process.send_signal(signal.SIGTERM)
        assert {command.end() for command in commands[1::3]} == {0}, "clients leave cleanly"


def start(desk: Desk, machines: Machines, task: str) -> tuple[Command, Command, Command]:
    """Start server, client and the slow line between them on their machines."""
    folder, port, near = desk.folder / task, free_port(), free_port()
    ca = ensure_certificates(folder / "home", [machines.address]).ca
    make_node_key(folder / "node.key")
    (folder / "home" / "nodes").mkdir()
    shutil.copy(folder / "node.key.pub", folder / "home" / "nodes" / "client-0.pub")
    options = ("--task", task, "--clients", "1", "--rounds", "5000", "--run-id", "cut", "--home", "home")
    lone = ("--set", "federation.norm-bound=0")  # one client alone has nobody to be compared with
    ports = ("--port", str(port), "--control-port", str(free_port()))
    served = desk.start("serve", *options, *lone, *ports, prefix=machines.server, folder=folder)
    slow = [*machines.clients, sys.executable, str(RELAY), str(near), f"{machines.address}:{port}", str(DELAY_SECONDS)]
    at = ("--server", f"127.0.0.1:{near}", "--ca", ca, "--key", "node.key", "--state-dir", "state")
    client = ("--task", task, "--data", "demo", "--shard", "0/2", "--name", "client-0")
    joined = desk.start("join", *at, *client, prefix=machines.clients, folder=folder)
    return served, joined, desk.program(slow, folder)


def counts(desk: Desk, states: dict[str, Path]) -> dict[str, int]:
    """Return the number of round lines of each task."""
    return {task: len(desk.rounds("cut", folder)) for task, folder in states.items()}


def await_rounds(desk: Desk, states: dict[str, Path], commands: list[Command], further: int) -> None:
    wanted = {task: count + further for task, count in counts(desk, states).items()}

    def message() -> str:
        return "\n".join(command.error()[-600:] for command in commands)

    def are_done() -> bool:
        assert all(command.process.poll() is None for command in commands), message()
        found = counts(desk, states)
        return all(found[task] >= number for task, number in wanted.items())

    until(are_done, message)
