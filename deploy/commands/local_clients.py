"""Clients of `fedloom up`: their configuration, their partitions of the data, their processes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from client.data.read import with_test
from client.data.tables.schema import Dialect
from client.policy import Policy, read_policy
from common import text
from common.config.run import RunConfig
from deploy import federation
from deploy.budget_checks import require_one_budget
from deploy.cli.options import LOCAL, DataRequest, RunRequest
from deploy.client_data import partition_source, read_catalogue, stored_clients, unit_names, write_clients
from deploy.commands.launch import with_catalogue, with_vocabulary_of
from deploy.commands.request import resolve
from deploy.commands.resume import refusal
from deploy.commands.runs import runs_folder
from deploy.federation import ClientSpec
from deploy.files import write_file
from deploy.partitioning import PARTITIONS
from deploy.processes import Processes
from deploy.report.launch_record import remember

POLICY = "policy.toml"
"""Policy that `up` was given, stored among the run's private files."""

PATIENCE_SECONDS = 30.0
"""Seconds that a client waits for its admission, before any time per key."""

SECONDS_A_KEY = 3.0
"""Further seconds for each key, because keys are registered one after the other."""


@dataclass(frozen=True)
class LocalClients:
    """Clients on this machine, ready to start.

    Args:
        config: Configuration of their run.
        home: Folder of the run's private files.
        specs: Description of each client.
        policy: Policy file of every client.
    """

    config: RunConfig
    home: Path
    specs: Sequence[ClientSpec]
    policy: Path | None

    @property
    def server(self) -> Path:
        """Folder of the server's private files."""
        return self.home / "server"

    @property
    def count(self) -> str:
        """Number of clients with its noun."""
        return text.count(len(self.specs), "client")

    def start(self, processes: Processes, server: str) -> list[Path]:
        """Start every client and return the files of their public keys."""
        ca, patience = self.server / "ca.pem", PATIENCE_SECONDS + SECONDS_A_KEY * len(self.specs)
        return [federation.start_client(processes, spec, server, ca, self.policy, patience) for spec in self.specs]


def prepare_clients(
    request: RunRequest,
    source: DataRequest,
    test: str,
    clients: int | None,
    catalogue: Path | None,
    policy: Path | None,
) -> LocalClients:
    """Return the clients of a new run, with their partitions written, or those of a resumed run.

    Raises:
        ConfigError: An option is wrong, or the same units would have a second privacy budget.
        DataError: The data cannot be read or partitioned.
    """
    config = resolve(request, {"federation.min-clients": clients})
    home = (LOCAL / "up" / config.run_id).resolve()
    if request.resume and policy is None and (home / POLICY).exists():
        policy = home / POLICY  # the owner's policy outlives a pause
    limits = read_policy(policy)
    data, dialect = with_test(config.task, source.data, test), source.dialect
    local = LocalClients(config, home, (), policy)
    if request.resume:
        set_again = {"--data": source.data != "demo", "--test": bool(test)}
        local = _resumed(local, limits, [name for name, given in set_again.items() if given], clients)
        with_catalogue(config, catalogue)
    else:
        local = _new(local, request, limits, data, dialect, clients, catalogue)
    if policy and policy != home / POLICY:
        write_file(home / POLICY, policy.read_bytes(), mode=0o600, overwrite=True)
    return local


def _resumed(local: LocalClients, limits: Policy, given: list[str], clients: int | None) -> LocalClients:
    specs = stored_clients(local.home)
    given += ["--clients"] if clients not in (None, len(specs)) else []
    if given:
        raise refusal(local.config.run_id, given[0], f"its own {text.count(len(specs), 'client')} and their data")
    require_one_budget(local.config, limits, specs[0].source, len(specs), PARTITIONS.resolve())
    return replace(local, specs=specs)


def _new(
    local: LocalClients,
    request: RunRequest,
    limits: Policy,
    data: str,
    dialect: Dialect,
    clients: int | None,
    catalogue: Path | None,
) -> LocalClients:
    config, root = local.config, PARTITIONS.resolve()
    parts = partition_source(config.task, data, read_catalogue(config.task, catalogue), clients, dialect)
    resolved = resolve(request, {"federation.min-clients": len(parts)})
    config = resolved.model_copy(update={"run_id": config.run_id})
    require_one_budget(config, limits, data, len(parts), root)
    specs = write_clients(config.task, data, parts, local.home, root, dialect)
    config = with_vocabulary_of(parts, config, data, local.home)
    remember(runs_folder() / config.run_id, "up", data, len(parts), unit_names(config.task, parts))
    return replace(local, config=config, specs=specs)
