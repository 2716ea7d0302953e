"""Federations under attack: rounds a second, memory, and the log before, during and after."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from common.node_names import fingerprint
from deploy.keys.nodes import load_public_key, make_node_key, public_path
from deploy.superlink.superlink import free_port
from studies.faults.apart import HOST, Served
from studies.faults.asleep import HOUR, prepare_clock, set_ahead
from studies.faults.attacks import STRANGER, STRANGERS
from tests.system.machines import Machines, connected_machines

CALM_SECONDS, ATTACK_SECONDS, POLL_SECONDS = 4.0, 5.0, 0.25
DELAY_SECONDS, LOSS = 0.1, 0.05
"""Delay of each way of a slow line, and its loss of packets."""

CUT, ASLEEP = "client cut off", "client asleep for an hour"
SHARED, HOSTILE = "two clients with a key", "flood of a server"
CLIENTS, MANY_ROUNDS = 3, "100000"
ATTACKER, VICTIM = "attacker", "client-0"
SHARDS = 40
"""Partitions of the demo data; each client has one, so rounds are short and an attack shows."""

WARM_UP_ROUNDS = 5
OPTIONS: tuple[str, ...] = (
    "--task",
    "rules",
    "--method",
    "fedrule",
    "--clients",
    str(CLIENTS),
    "--rounds",
    MANY_ROUNDS,
    "--seed",
    "0",
)
OPTIONS += ("--patience", "0", "--set", "training.local-steps=1")


@dataclass
class Window:
    """Rounds a second, and memory in MB, of an interval.

    Args:
        rate: Rounds a second.
        memory: Largest resident memory of the door's process, the ServerApp and a client.
    """

    rate: float
    memory: dict[str, float]


@dataclass
class Row:
    """Attack of a kind, and the run that it struck.

    Args:
        kind: The kind.
        calm: Windows before the attacks, between them, and after them.
        attacked: Windows during the attacks.
        lines: Lines of the door's log since the first attack that name the attacker's address or key; of the client's log
            if a server attacks.
        lines_lost: Rounds without a line.
        lines_twice: Rounds with two.
        load: Load average of the machine.
    """

    kind: str
    calm: list[Window] = field(default_factory=list)
    attacked: list[Window] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    lines_lost: int = 0
    lines_twice: int = 0
    load: float = 0.0


@dataclass
class Besieged(Served):
    """Run with three small clients, and a registered key of none of them.

    Args:
        machines: Network namespaces, where the victim is behind a slow line; none of them without such.
    """

    machines: Machines = field(default_factory=Machines)
    flooded: list[psutil.Popen] = field(default_factory=list)
    """Client of a hostile server."""
    clock: dict[str, str] = field(default_factory=dict)
    """Environment of the victim, whose clock can jump."""

    def __post_init__(self) -> None:
        (self.private / "server" / "nodes").mkdir(parents=True)
        make_node_key(self.key_of(ATTACKER))
        shutil.copy(public_path(self.key_of(ATTACKER)), self.private / "server" / "nodes" / f"{ATTACKER}.pub")

    def key_of(self, name: str) -> Path:
        """Return the path of a key."""
        return self.private / name / "node.key"

    def fingerprint_of(self, name: str) -> str:
        """Return the fingerprint of a key."""
        return fingerprint(load_public_key(public_path(self.key_of(name))))

    @property
    def ca(self) -> Path:
        """Certificate of the server's authority."""
        return self.private / "server" / "ca.pem"

    def words(self, *, resume: bool) -> tuple[str, ...]:
        """Return the command, which other machines reach too."""
        words = super().words(resume=resume)
        return tuple("0.0.0.0" if word == HOST and self.machines.lines else word for word in words)

    def run_command(self, *words: str | Path) -> psutil.Popen:
        """Return a running command on the server's machine."""
        self.prefix = self.machines.server
        return super().run_command(*words)

    def join(self, name: str, shard: str, port: str = "") -> psutil.Popen:
        """Return a running client with a small partition of the data; the victim may be behind a slow line."""
        if name == VICTIM and self.machines.lines:
            [far] = self.machines.lines.values()
            port = port or str(free_port())
            relay = (port, f"{far}:{self.ports[1]}", str(DELAY_SECONDS))
            self.prefix = self.machines.clients
            self.run_module("tests.system.slow_relay", *relay)
        home, address = self.private / name, f"{HOST}:{port or self.ports[1]}"
        data = ("--task", "rules", "--shard", f"{shard.partition('/')[0]}/{SHARDS}", "--name", name)
        where = ("--server", address, "--ca", self.ca, "--key", self.key_of(name), "--state-dir", home / "state")
        self.prefix = self.machines.clients if name == VICTIM else self.machines.server
        return self.run_module("deploy.cli", "join", *where, *data, **(self.clock if name == VICTIM else {}))

    @contextmanager
    def under(self, kind: str) -> Iterator[None]:
        """Attack the door, its keys or its clients."""
        if kind in FAULTS:
            with FAULTS[kind](self):
                yield
            return
        port = self.ports[1]
        if kind == "revoked key":
            key = self.fingerprint_of(ATTACKER)
            self.run_command("nodes", "revoke", key, "--home", self.private / "server").wait()
        if kind == HOSTILE:
            port = str(free_port())
        attack = self.attack(kind, port)
        try:
            if kind == HOSTILE:
                self.flooded.append(self.join(ATTACKER, "3/", port))
                before = self.excesses()
                self.wait(lambda: self.excesses() > before)
            yield
        finally:
            for process in (attack, *self.flooded):
                process.kill()
                process.wait()
            self.flooded.clear()

    def attack(self, kind: str, port: str) -> psutil.Popen:
        """Return a running attack, whose first volley is over."""
        key, before = self.key_of(VICTIM if kind == SHARED else ATTACKER), self.begun(kind)
        attack = self.run_module("studies.faults.attacks", kind, port, self.ca, key)
        self.wait(lambda: self.begun(kind) > before)
        return attack

    def excesses(self) -> list[str]:
        """Return the lines of clients that left a server for its excess."""
        return [line for line in (self.folder / "output").read_text().splitlines() if "this client leaves" in line]

    def begun(self, kind: str) -> int:
        """Return the number of attacks of a kind so far."""
        return (self.folder / "output").read_text().count(f"begun {kind}\n")

    def bring_forward(self) -> None:
        """Give all sessions the priority of this command; Linux weighs sessions against each other."""
        for process in self.family():
            with suppress(OSError):
                Path(f"/proc/{process.pid}/autogroup").write_text(str(os.getpriority(os.PRIO_PROCESS, 0)))

    def memory(self) -> dict[str, float]:
        """Return the resident memory in MB of the door's process, the ServerApp and the largest client."""
        server = {"door": self.find("the SuperLink")[-1:], "ServerApp": self.find("the ServerApp")[-1:]}
        groups: dict[str, Sequence[psutil.Process]] = {**server, "client": self.flooded or self.clients}
        return {name: max(map(_memory, found), default=0.0) for name, found in groups.items()}

    def is_whole(self, number: int) -> bool:
        """Return True if there are so many rounds, and all clients answered in the last one."""
        rounds = self.rounds()
        return len(rounds) >= number and rounds[-1]["answered"] == CLIENTS

    def watch(self, seconds: float) -> Window:
        """Return what happens in so many seconds."""
        memory, began = dict[str, float](), time.time()
        while time.time() < began + seconds:
            memory = {name: max(now, memory.get(name, 0.0)) for name, now in self.memory().items()}
            time.sleep(POLL_SECONDS)
        ended = time.time()
        rounds = sum(began < event["time"] <= ended for event in self.rounds())
        return Window(round(rounds / (ended - began), 2), memory)


def _memory(process: psutil.Process) -> float:
    try:
        return round(process.memory_info().rss / 1e6, 1)
    except psutil.Error:
        return 0.0


@contextmanager
def freeze(federation: Besieged) -> Iterator[None]:
    """Suspend a client, as a process that hangs."""
    federation.clients[0].suspend()
    yield
    federation.clients[0].resume()


@contextmanager
def sleep(federation: Besieged) -> Iterator[None]:
    """Suspend a client for a while, after which its clock is an hour ahead."""
    federation.clients[0].suspend()
    yield
    set_ahead(federation.private, HOUR)
    federation.clients[0].resume()


@contextmanager
def kill(federation: Besieged) -> Iterator[None]:
    """Kill a client, and start it again afterwards."""
    federation.clients[0].kill()
    yield
    federation.clients[0] = federation.join(VICTIM, "0/")


@contextmanager
def cut(federation: Besieged) -> Iterator[None]:
    """Cut the line of a client off."""
    [line] = federation.machines.lines
    federation.machines.set_link(line, "down")
    yield
    federation.machines.set_link(line, "up")


@contextmanager
def kill_door(federation: Besieged) -> Iterator[None]:
    """Kill the process of the door; `serve` starts it again."""
    federation.find("the SuperLink")[-1].kill()
    yield


FAULTS: dict[str, Callable[[Besieged], AbstractContextManager[None]]] = {
    "client frozen": freeze,
    "client killed": kill,
    CUT: cut,
    ASLEEP: sleep,
    "door killed": kill_door,
}
"""Kind of a fault -> what begins and ends it."""

SECONDS = {"client frozen": 20.0, CUT: 30.0, ASLEEP: 20.0}
"""Kind -> its duration if that is not the usual one."""


def besiege(kind: str, folder: Path, turns: int) -> Row:
    """Return the row of a kind of attack on a run in a folder."""
    row = Row(kind)
    with connected_machines(lines=1) if kind == CUT else nullcontext(Machines()) as machines:
        if machines.lines:
            machines.lose(LOSS)
        federation = Besieged(folder, OPTIONS, machines=machines)
        if kind == ASLEEP:
            federation.clock = prepare_clock(federation.private)
        federation.start()
        try:
            federation.wait(lambda: federation.has_rounds(WARM_UP_ROUNDS))
            federation.bring_forward()
            log = federation.private / "server" / "superlink.log"
            seen = log.stat().st_size
            row.calm.append(federation.watch(CALM_SECONDS))
            for _ in range(1 if kind in FAULTS else turns):
                with federation.under(kind):
                    row.attacked.append(federation.watch(SECONDS.get(kind, ATTACK_SECONDS)))
                if kind in FAULTS:
                    federation.wait(partial(federation.is_whole, len(federation.rounds()) + 2))
                row.calm.append(federation.watch(CALM_SECONDS))
        finally:
            federation.close()
    mark = STRANGER if kind in STRANGERS else federation.fingerprint_of(ATTACKER if kind != SHARED else VICTIM)
    lines = log.read_bytes()[seen:].decode(errors="replace").splitlines()
    row.lines = [line for line in lines if "refused: " in line and mark in line]
    if kind == HOSTILE:
        row.lines = federation.excesses()
    numbers = [event["round"] for event in federation.rounds()]
    row.lines_twice = len(numbers) - len({*numbers})
    row.lines_lost = max(numbers, default=0) - len({*numbers})
    row.load = round(os.getloadavg()[0], 1)
    return row


def age(folder: Path) -> list[dict[str, float]]:
    """Return the memory of each process in a run of 500 rounds, from time to time."""
    options = tuple("500" if word == MANY_ROUNDS else word for word in OPTIONS)
    federation, found = Besieged(folder, options), list[dict[str, float]]()
    federation.start()
    try:
        federation.wait(partial(federation.has_rounds, WARM_UP_ROUNDS))
        federation.bring_forward()
        for number in range(50, 501, 50):
            federation.wait(partial(federation.has_rounds, number - (number == 500)))  # its processes end with the last
            found.append({"round": number, **federation.memory()})
    finally:
        federation.close()
    return found
