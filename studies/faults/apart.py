"""Federations of `fedloom serve` and `fedloom submit`, which clients of their own join over TLS."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from deploy.keys.certificates import Certificates, ensure_certificates
from deploy.keys.nodes import make_node_key, public_path
from deploy.superlink.superlink import SuperLinkSettings, is_healthy
from studies.faults.federation import RUN, Federation

HOST = "127.0.0.1"
LEAVE_SECONDS = 30.0  # seconds in which a client or a SuperLink leaves after SIGTERM
SUPEREXEC = "deploy.superlink.superexec"


def words_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process; empty if it has ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@dataclass
class Served(Federation):
    """Run of `fedloom serve`, which clients of their own join."""

    clients: list[psutil.Popen] = field(default_factory=list)

    @property
    def private(self) -> Path:
        """Folder of the server's files, and of a folder for each client."""
        return self.folder / "private"

    def words(self, *, resume: bool) -> tuple[str, ...]:
        """Return the command: the same at each start, as in `deploy/systemd/fedloom-server.service`."""
        home = str(self.private / "server")
        own = ("--host", HOST, *self.ports, "--json")
        return "serve", "--home", home, "--run-id", RUN, "--resume-if-there", *self.options, *own

    def start(self) -> None:
        """Start the command, and its clients, whose keys are registered."""
        server = self.private / "server"
        ensure_certificates(server, [HOST])
        (server / "nodes").mkdir(exist_ok=True)
        names = [f"client-{k}" for k in range(int(self.option("--clients")))]
        for name in names:
            key = self.private / name / "node.key"
            make_node_key(key)
            shutil.copy(public_path(key), server / "nodes" / f"{name}.pub")
        self.run_server()
        self.clients = [self.join(name, f"{k}/{len(names)}") for k, name in enumerate(names)]

    def run_server(self) -> None:
        """Start the command."""
        super().start()

    def join(self, name: str, shard: str) -> psutil.Popen:
        """Return a running client."""
        home, address = self.private / name, f"{HOST}:{self.ports[1]}"
        keys = ("--ca", self.private / "server" / "ca.pem", "--key", home / "node.key")
        data = ("--task", self.option("--task"), "--shard", shard, "--name", name, "--state-dir", home / "state")
        return self.run_command("join", "--server", address, *keys, *data)

    def option(self, name: str) -> str:
        """Return the value of an option of the run."""
        return self.options[self.options.index(name) + 1]

    def close(self) -> int:
        """Let the clients leave, and end what still runs; return the number of processes left."""
        for client in self.clients:
            client.terminate()
        psutil.wait_procs(self.clients, timeout=LEAVE_SECONDS)
        return super().close()


@dataclass
class Submitted(Served):
    """Run of `fedloom submit` on a SuperLink with SuperExec, as in `docker-compose.yml`."""

    superlink: psutil.Popen = field(init=False)

    def words(self, *, resume: bool) -> tuple[str, ...]:
        """Return the command."""
        server = self.private / "server"
        own = ("--control", f"{HOST}:{self.ports[3]}", "--ca", str(server / "ca.pem"), "--nodes", str(server / "nodes"))
        return "submit", "--run-id", RUN, *self.options, *own, "--work", str(self.private / "submit"), "--json"

    def run_server(self) -> None:
        """Start the SuperLink, and then the command."""
        server = self.private / "server"
        files = Certificates(server)
        tls = ("--ssl-ca-certfile", files.ca, "--ssl-certfile", files.server, "--ssl-keyfile", files.server_key)
        addresses = ("--fleet-api-address", f"{HOST}:{self.ports[1]}", "--host", HOST, "--port", self.ports[3])
        state = ("--enable-supernode-auth", "--database", server / "superlink.sqlite", "--isolation", "subprocess")
        words = (*addresses, *tls, *state, "--disable-runtime-dependency-installation")
        variables = {"FLWR_HOME": str(server / "flwr"), "FEDLOOM_RUNS": str(self.folder / "runs")}
        self.superlink = self.run_module("deploy.superlink.guarded_superlink", *words, **variables)
        settings = SuperLinkSettings(server, files, port=int(self.ports[1]), control_port=int(self.ports[3]))
        self.wait(lambda: is_healthy(settings))
        super().run_server()

    def superexec(self) -> list[psutil.Process]:
        """Return the SuperExec of the SuperLink."""
        return [process for process in self.superlink.children() if SUPEREXEC in words_of(process)]

    def close(self) -> int:
        """Let SuperLink and clients leave, and end what still runs; return the number of processes left."""
        if self.command.poll() is not None:
            self.superlink.terminate()
            self.superlink.wait(LEAVE_SECONDS)
        return super().close()
