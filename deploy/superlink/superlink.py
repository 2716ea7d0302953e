"""Flower's server process, behind a guard of its control port: start it and wait until it answers."""

import http.client
import random
import socket
import sqlite3
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import ConfigError, RunError
from deploy.federation.fork_server import flower_environment
from deploy.federation.processes import Child, Processes
from deploy.keys.certificates import Certificates
from deploy.superlink.superexec import ONLY_RUN
from server.record.process import FOLDER as RECORDS

PORTS = range(20_000, 32_768)
"""Ports that Linux and macOS give to no outgoing connection, so that a free one stays free."""


def free_port() -> int:
    """Return a currently unused TCP port of 127.0.0.1."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def require_free_port(host: str, port: int, option: str) -> None:
    """Check that a port is free to listen on.

    Raises:
        ConfigError: The port is taken; names the option that changes it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(f"port {port} of {host}: {error.strerror}; choose another with {option}") from None


START_SECONDS = 60.0  # seconds
LOOK_SECONDS = 0.02  # seconds between two questions if it answers
LOOPBACK = "127.0.0.1"
FLOWER_HOME = "flwr"  # folder of a SuperLink for Flower's files, such as installed apps


@dataclass(frozen=True)
class SuperLinkSettings:
    """Settings of a SuperLink.

    Args:
        folder: Folder of its log and database; created if missing.
        certificates: Certificates of the server; None serves unencrypted, for experiments on one machine.
        authenticate: Admit only nodes with a registered key; needs certificates.
        database: Store state in an SQLite file in `folder`, so that a restart loses no run and no registration. Without it,
            rounds are several times faster, and no update reaches the disk.
        host: Address of the Fleet API, which clients join.
        port: Its port (`--port` of fedloom).
        control_host: Address of the Control and Runtime API, whose callers can start runs.
        control_port: Its port (`--control-port` of fedloom).
        environment: Additions to the server's environment, which reaches every ServerApp.
        own_app: The ServerApp of its one run is started by `start_app`, not by Flower's SuperExec.
        stock: Flower's own nodes may join at `control_host` and `control_port`, where Flower serves its Fleet API over HTTP.
    """

    folder: Path
    certificates: Certificates | None = None
    authenticate: bool = False
    database: bool = False
    host: str = LOOPBACK
    port: int = 9092
    control_host: str = LOOPBACK
    control_port: int = 8000
    environment: Mapping[str, str] = field(default_factory=dict)
    own_app: bool = False
    stock: bool = False

    @property
    def log(self) -> Path:
        """Log of the SuperLink and of the ServerApps it starts."""
        return self.folder / "superlink.log"

    @property
    def database_file(self) -> Path:
        """Database of its state, if it has one."""
        return self.folder / "superlink.sqlite"

    @property
    def address(self) -> str:
        """`host:port` that clients on this machine join."""
        return _address(self.host, self.port)

    @property
    def control_address(self) -> str:
        """`host:port` of the Control API, as seen from this machine."""
        return _address(self.control_host, self.control_port)


def start_superlink(
    processes: Processes, settings: SuperLinkSettings, meanwhile: Callable[[], object] = lambda: None
) -> Child:
    """Start a SuperLink, call `meanwhile`, and wait until it serves.

    Raises:
        ConfigError: One of its ports is taken; names the port and the option that changes it.
        RunError: It ended, or did not answer within a minute; quotes its log.
    """
    require_free_port(settings.host, settings.port, "--port")
    require_free_port(settings.control_host, settings.control_port, "--control-port")
    settings.folder.mkdir(parents=True, exist_ok=True)
    records = settings.folder / RECORDS
    environment = _environment(settings)
    child = processes.start(
        "the SuperLink", _command(settings), log=settings.log, environment=environment, records=records
    )
    meanwhile()

    end = time.monotonic() + START_SECONDS
    while not is_healthy(settings):
        child.check()
        if time.monotonic() > end:
            processes.kill(child)
            raise RunError(f"the SuperLink did not answer within {START_SECONDS:.0f} s; see {settings.log}")
        time.sleep(LOOK_SECONDS)
    return child


def start_app(processes: Processes, settings: SuperLinkSettings) -> Child:
    """Start the ServerApp of the next run of a SuperLink without SuperExec."""
    command: list[str | Path] = [sys.executable, "-m", "deploy.superlink.superexec", ONLY_RUN, settings.control_address]
    command += ["--ca", settings.certificates.ca] if settings.certificates else []
    return processes.start("the ServerApp", command, log=settings.log, environment=_environment(settings))


def erase_database(path: Path) -> None:
    """Delete the database of an ended SuperLink, its write-ahead log emptied before."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink(missing_ok=True)


def is_healthy(settings: SuperLinkSettings) -> bool:
    """Return True if the SuperLink answers, under its certificate if it has one.

    Raises:
        RunError: What answers has a certificate that is not valid, or of another server.
    """
    host, port = settings.control_address.rsplit(":", 1)
    connection: http.client.HTTPConnection
    if settings.certificates is None:
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=5)
    else:
        trust = ssl.create_default_context(cafile=settings.certificates.ca)
        connection = http.client.HTTPSConnection(host.strip("[]"), int(port), timeout=5, context=trust)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except ssl.SSLCertVerificationError as error:
        raise RunError(
            f"{settings.control_address} answers with another server's certificate, or one that is not valid "
            f"({error.verify_message}); choose another port, or `fedloom keys server --renew`"
        ) from None
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _environment(settings: SuperLinkSettings) -> dict[str, str]:
    folders = {"FLWR_HOME": str(settings.folder / FLOWER_HOME), "FEDLOOM_PROCESSES": str(settings.folder / RECORDS)}
    return flower_environment({**folders, **settings.environment})


def _command(settings: SuperLinkSettings) -> list[str | Path]:
    command: list[str | Path] = [sys.executable, "-m", "deploy.superlink.guarded_superlink"]
    command.append("--disable-runtime-dependency-installation")
    command += ["--isolation", "process" if settings.own_app else "subprocess"]
    command += ["--host", settings.control_host, "--port", str(settings.control_port)]
    command += ["--fleet-api-address", _bracketed(settings.host, settings.port)]
    if settings.certificates is None:
        command.append("--insecure")
    else:
        command += ["--ssl-ca-certfile", settings.certificates.ca, "--ssl-certfile", settings.certificates.server]
        command += ["--ssl-keyfile", settings.certificates.server_key]
    if settings.stock:
        command.append("--stock")
    if settings.authenticate:
        command.append("--enable-supernode-auth")
    if settings.database:
        command += ["--database", settings.database_file]
    return command


def _address(host: str, port: int) -> str:
    """Return the address by which this machine reaches `host`; a wildcard is not an address to connect to."""
    return _bracketed({"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host), port)


def _bracketed(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
