"""Clients of `fedloom up` and `fedloom simulate`: configuration, partitions, processes."""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from client.data.dataset import AnyDataset, is_demo
from client.data.read import with_test
from client.data.tables.schema import Dialect
from client.owner.policy import Policy, read_policy
from common import text
from common.config.run import RunConfig
from common.node_names import fingerprint
from common.options import Scalar
from common.text import count
from deploy.cli.options import LOCAL, DataRequest, RunRequest
from deploy.cli.output import console
from deploy.data.budgets import require_one_budget
from deploy.data.partitions import PARTITIONS
from deploy.data.sources import (
    DEFAULT_CLIENTS,
    partition_source,
    read_catalogue,
    stored_clients,
    unit_names,
    write_clients,
)
from deploy.federation import start as federation
from deploy.federation.fork_server import flower_environment
from deploy.federation.launch import config_catalogue, with_catalogue, with_vocabulary_of
from deploy.federation.processes import Processes
from deploy.federation.request import refusal, repeat_partition, resolve, run_partition, run_vocabulary, stop_of_up
from deploy.federation.runs import remember, runs_folder
from deploy.federation.start import ClientSpec
from deploy.files import write_file
from deploy.keys.nodes import load_public_key, make_node_key, public_path
from server.record.folder import RunDirectory
from server.record.process import FOLDER as RECORDS
from server.record.result import Result

WARNING = "helpers run by the server's owner protect against nobody but outsiders; let other people run them"
"""Limit of the protection that helpers of the same machine give."""

PINNED = "policy-with-helpers.toml"
"""Policy of the clients that pins the helpers, among the run's private files."""


@dataclass(frozen=True)
class OwnHelpers:
    """Helpers on this machine, ready to start.

    Args:
        homes: Name -> folder of its key, state and log.
    """

    homes: Mapping[str, Path]

    def pin(self, policy: Path | None, target: Path) -> Path:
        """Write a policy that also pins the helpers; one with own pins stays as it is.

        Args:
            policy: Policy file of the clients; None without one.
            target: File to write.
        """
        text = policy.read_text("utf-8") if policy else ""
        if policy and "helpers" in tomllib.loads(text):
            return policy
        pins = (f'{name} = "{fingerprint(load_public_key(key))}"\n' for name, key in self.keys().items())
        write_file(target, f"{text}\n[helpers]\n{''.join(pins)}".encode(), mode=0o600, overwrite=True)
        return target

    def keys(self) -> dict[str, Path]:
        """Return name -> file of the public key; missing keys are created."""
        for home in self.homes.values():
            if not (home / "node.key").exists():
                make_node_key(home / "node.key")
        return {name: public_path(home / "node.key") for name, home in self.homes.items()}

    def start(self, processes: Processes, server: str, ca: Path, patience: float) -> list[Path]:
        """Start every helper and return the files of their public keys."""
        keys = self.keys()
        for name, home in self.homes.items():
            command: list[str | Path] = [sys.executable, "-m", "deploy.cli", "helper", "--server", server, "--ca", ca]
            command += ["--key", home / "node.key", "--name", name, "--state-dir", home / "state"]
            command += ["--patience", f"{patience:g}"]
            environment, log = flower_environment({"OMP_NUM_THREADS": "1"}), home / "helper.log"
            processes.start(name, command, log=log, environment=environment, records=ca.parent / RECORDS, preload=False)
        return [*keys.values()]


def find_own_helpers(config: RunConfig, home: Path) -> OwnHelpers:
    """Return the helpers of a run with trust `helpers`; none of other runs.

    Args:
        config: Configuration of the run.
        home: Folder of the run's private files.
    """
    number = config.secure_sums.helpers if config.privacy.trust == "helpers" else 0
    return OwnHelpers({name: home / name for name in (f"helper-{k}" for k in range(1, number + 1))})


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
        parts: Data of each client, if they were read here.
    """

    config: RunConfig
    home: Path
    specs: Sequence[ClientSpec]
    policy: Path | None
    parts: Sequence[AnyDataset] = ()

    @property
    def server(self) -> Path:
        """Folder of the server's private files."""
        return self.home / "server"

    def measure(self, result: Result, *, alone: bool) -> Result:
        """Return the result with what its clients measured here, and the comparison with each client alone."""
        from common.config.parse import is_comparable
        from deploy.federation.compare import read_measured, with_alone, with_local_metrics

        measured = read_measured(self.specs, self.config.run_id)
        result = with_local_metrics(result, measured)
        if not (alone and self.parts and is_comparable(self.config)):
            return result
        return with_alone(result, self.config, self.parts, measured)

    @property
    def count(self) -> str:
        """Number of clients with its noun."""
        return text.count(len(self.specs), "client")

    @property
    def helpers(self) -> OwnHelpers:
        """Helpers of the run."""
        return find_own_helpers(self.config, self.home)

    def start(self, processes: Processes, server: str) -> list[Path]:
        """Start every client and every helper, and return the files of their public keys."""
        number, policy = len(self.specs) + len(self.helpers.homes), self.policy
        ca, patience = self.server / "ca.pem", PATIENCE_SECONDS + SECONDS_A_KEY * number
        if self.helpers.homes and (policy or not is_demo(self.specs[0].data)):  # else clients pin them at first contact
            policy = self.helpers.pin(policy, self.home / PINNED)
        helpers = self.helpers.start(processes, server, ca, patience)
        clients = [federation.start_client(processes, spec, server, ca, policy, patience) for spec in self.specs]
        return [*helpers, *clients]


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
    decided = {"federation.stop": stop} if (stop := stop_of_up(request)) is not None else {}
    config = resolve(request, {**decided, "federation.min-clients": clients})
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
        data, clients = repeat_partition(request.config, "up", data, clients)
        local = _new(
            local, request, decided, limits, data, dialect, clients, catalogue or config_catalogue(request, config)
        )
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
    decided: Mapping[str, Scalar],
    limits: Policy,
    data: str,
    dialect: Dialect,
    clients: int | None,
    catalogue: Path | None,
) -> LocalClients:
    config, root = local.config, PARTITIONS.resolve()
    fewest = max(DEFAULT_CLIENTS, config.secure_sums.fewest if config.privacy.trust == "helpers" else 0)
    vocabulary = read_catalogue(config.task, catalogue)
    parts = partition_source(config.task, data, vocabulary, clients, dialect, fewest=fewest)
    resolved = resolve(request, {**decided, "federation.min-clients": len(parts)})
    config = resolved.model_copy(update={"run_id": config.run_id})
    require_one_budget(config, limits, data, len(parts), root)
    specs = write_clients(config.task, data, parts, local.home, root, dialect)
    config = with_vocabulary_of(parts, config, data, local.home)
    remember(runs_folder() / config.run_id, "up", data, len(parts), unit_names(config.task, parts))
    return replace(local, config=config, specs=specs, parts=parts)


def prepare_simulation(
    request: RunRequest, source: DataRequest, test: str, clients: int | None, catalogue: Path | None
) -> tuple[RunConfig, Sequence[AnyDataset]]:
    """Return the configuration of a simulation and each client's partition of the data.

    Raises:
        ConfigError: An option is wrong, or does not fit the run that is resumed.
        DataError: The data cannot be read or partitioned.
    """
    config = resolve(request, {"federation.min-clients": 1, "federation.wait": 1})
    data, dialect = with_test(config.task, source.data, test), source.dialect
    vocabulary = read_catalogue(config.task, catalogue or config_catalogue(request, config))
    folder = RunDirectory(runs_folder(), config.run_id)
    if request.resume:
        vocabulary = run_vocabulary(folder, config.task, vocabulary)
        data, clients = run_partition(folder, data, clients)
    else:
        data, clients = repeat_partition(request.config, "simulate", data, clients)
    parts = partition_source(config.task, data, vocabulary, clients or 0, dialect)
    if not request.resume:
        config = with_vocabulary_of(parts, config, data, (LOCAL / "simulate" / config.run_id).resolve())
        remember(folder.path, "simulate", data, clients or 0, unit_names(config.task, parts))
    console.print(f"run [bold]{config.run_id}[/]: {count(len(parts), 'client')} in this process", soft_wrap=True)
    return config, parts
