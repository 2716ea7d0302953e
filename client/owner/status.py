"""Status of the clients of a state folder: journals, processes, and the ε that they spent."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from client.owner.consent import ServerConsent, consents_in
from client.owner.control import RunningClient, is_paused, running_clients
from client.owner.journal import read_journal
from client.privacy.claim import Statement, read_statements
from client.privacy.ledger.locate import LINEAGES, find_all_ledgers
from common.config.run import RunConfig
from common.errors import LedgerError
from common.files import find_shortage
from common.privacy.claims import UNBOUNDED
from common.privacy.options import PrivacyOptions

if TYPE_CHECKING:
    from client.privacy.budget import Budget


@dataclass
class RunStatus:
    """Part that a client took in one run."""

    run: str
    task: str = ""
    method: str = ""
    rounds: int = 0
    """Number of rounds of the run; 0 if unknown."""
    trained: list[int] = field(default_factory=list)
    """Rounds whose training reply the server has received."""
    last: str = ""
    """Time of the last request."""
    epsilon_spent: float = 0.0
    epsilon_left: float | None = None
    """Remaining ε of the run; None without noise."""
    contract: str = ""
    """Hash of the contract at the last reply."""


@dataclass
class ClientStatus:
    """Status of one client."""

    client: str
    server: str = ""
    process: RunningClient | None = None
    """Running process; None if the client has ended."""
    connection: str = ""
    """`connected`, `away` or `left`; empty if unknown."""
    connection_since: str = ""
    runs: dict[str, RunStatus] = field(default_factory=dict)
    noised_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes sent with noise, by kind of the request."""
    plaintext_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes sent without noise, by kind of the request."""
    numbers: int = 0
    """Number of numbers sent in plaintext."""
    received_bytes: int = 0
    unacknowledged: int = 0
    """Number of replies that the server may not have received."""
    refusals: int = 0
    last_refusal: str = ""
    last_refusal_time: str = ""
    last_error: str = ""
    last_error_time: str = ""


@dataclass(frozen=True)
class OwnerStatus:
    """Status of a state folder."""

    folder: str
    paused: bool
    clients: tuple[ClientStatus, ...]
    ledgers: tuple[Statement, ...]
    broken: tuple[str, ...]
    """Errors of unreadable ledgers."""
    consents: tuple[tuple[str, str, ServerConsent], ...] = ()
    """Client, identity of the server, and the agreements between them."""
    disk: str = ""
    """Shortage of room on the disk now; empty if there is none."""


def read_status(folder: Path) -> OwnerStatus:
    """Return the status of all clients of a state folder."""
    clients: dict[str, ClientStatus] = {}
    requests: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in read_journal(folder):
        name = entry["client"]
        status = clients.setdefault(name, ClientStatus(name))
        if "connection" in entry:
            _add_connection(status, entry)
        elif isinstance(entry.get("id"), str):
            requests[name, entry["id"]] = entry  # the entry of an acknowledged reply replaces the first one
    for (name, _), entry in requests.items():
        _add_request(clients[name], entry)
    for process in running_clients(folder):
        status = clients.setdefault(process.client, ClientStatus(process.client))
        status.process, status.server = process, process.server
    ledgers, broken = _read_ledgers(folder)
    consents = tuple((name, one.server, one.read()) for name, one in consents_in(folder))
    shortage = find_shortage(folder)
    return OwnerStatus(str(folder), is_paused(folder), tuple(clients.values()), ledgers, broken, consents, shortage)


def _add_connection(status: ClientStatus, entry: dict[str, Any]) -> None:
    status.connection, status.connection_since = str(entry["connection"]), str(entry.get("time", ""))
    status.server = str(entry.get("server", ""))
    if entry.get("reason"):
        status.last_error, status.last_error_time = str(entry["reason"]), status.connection_since


def _add_request(status: ClientStatus, entry: dict[str, Any]) -> None:
    run = status.runs.setdefault(entry.get("run", ""), RunStatus(entry.get("run", "")))
    run.task, run.method = entry.get("task") or run.task, entry.get("method") or run.method
    run.rounds, run.last = entry.get("rounds") or run.rounds, entry.get("time", "")
    run.contract = entry.get("contract") or run.contract
    run.epsilon_spent += entry.get("epsilon_spent", 0.0)
    left = entry.get("epsilon_left_run")
    run.epsilon_left = run.epsilon_left if left is None else left
    status.received_bytes += entry.get("received_bytes", 0)
    if entry.get("refused"):
        status.refusals += 1
        status.last_refusal, status.last_refusal_time = entry["refused"], run.last
        return
    if not entry.get("acknowledged"):
        status.unacknowledged += 1
    if entry.get("asked") == "train" and entry.get("acknowledged") and entry.get("round") not in run.trained:
        run.trained.append(entry.get("round", 0))
    sent = status.noised_bytes if entry.get("noised") else status.plaintext_bytes
    kind = entry.get("asked", "")
    sent[kind] = sent.get(kind, 0) + entry.get("sent_bytes", 0)
    status.numbers += len(entry.get("clear", {}))


def _read_ledgers(folder: Path) -> tuple[tuple[Statement, ...], tuple[str, ...]]:
    found: list[Statement] = []
    broken: list[str] = []
    lineages = [folder / LINEAGES]
    try:
        places = list(find_all_ledgers(lineages))
    except LedgerError as error:
        return (), (str(error),)
    for path in places:
        try:
            if isinstance(path, LedgerError):
                raise path
            found += read_statements(path, lineages)
        except LedgerError as error:
            broken.append(str(error))
    return tuple(found), tuple(broken)


@dataclass(frozen=True)
class EpsilonSpent:
    """ε spent until now, for planning; the guarantee is that of the limits."""

    run: float
    """ε that the run has spent."""
    run_limit: float
    """ε of the run's budget."""
    left_total: float | None
    """Remaining ε of the data over all runs; None without a limit."""

    @property
    def left_run(self) -> float:
        """Remaining ε of the run."""
        return max(0.0, self.run_limit - self.run)


def noise_options(config: RunConfig) -> PrivacyOptions | None:
    """Return the options of the noise; None in a run without noise."""
    return config.privacy if config.privacy.unit != "none" else None


def read_epsilon(budget: "Budget", config: RunConfig, enrolment: str) -> EpsilonSpent | None:
    """Return the ε spent by a run and left to it; None in a run without noise.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    options = noise_options(config)
    if options is None:
        return None
    ledger = budget.ledger(options)

    def epsilon(spent: float, delta: float) -> float:
        return ledger.account.claim(spent, delta) if spent else 0.0

    left = max(0.0, ledger.epsilon - epsilon(ledger.spent(), ledger.delta)) if ledger.epsilon < UNBOUNDED else None
    return EpsilonSpent(epsilon(ledger.spent_in(budget.run_name(enrolment)), options.delta), options.epsilon, left)
