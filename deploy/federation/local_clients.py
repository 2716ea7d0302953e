"""Clients of `fedloom up` and `fedloom simulate`: configuration, partitions, processes."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from client.data.dataset import AnyDataset, is_demo, resolve_source
from client.data.read import read_all, with_test
from client.data.schemes import Scheme
from client.device import describe_device
from client.owner.policy import read_policy
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.node_names import fingerprint
from common.options import Scalar
from common.tasks.registry import TASKS
from common.tasks.vocabulary import FEDERATED
from common.text import count
from deploy.cli.options import LOCAL, DataRequest, RunRequest
from deploy.cli.output import await_room_in, console, note
from deploy.data.budgets import require_one_budget
from deploy.data.partitions import PARTITIONS, remember_source
from deploy.data.sources import (
    DEFAULT_CLIENTS,
    RunSource,
    notes,
    partition_source,
    read_catalogue,
    stored_clients,
    unit_names,
    warnings,
    write_clients,
)
from deploy.federation import start as federation
from deploy.federation.processes import Processes
from deploy.federation.request import (
    extended_vocabulary,
    name_vocabulary,
    refusal,
    repeat_partition,
    resolve,
    run_partition,
    run_vocabulary,
    stop_of_up,
    stored_scheme,
    with_catalogue,
    without_effect,
)
from deploy.federation.runs import Command, origin_of, remember, runs_folder
from deploy.federation.start import ClientSpec
from deploy.files import write_file
from deploy.keys.nodes import load_public_key, make_node_key, public_path
from server.record.folder import RunDirectory
from server.record.result import Result

WARNING = "helpers run by the server's owner protect against nobody but outsiders; let other people run them"
"""Limit of the protection that helpers of the same machine give."""

PINNED = "policy-with-helpers.toml"
"""Policy of the clients that pins the helpers, among the run's private files."""

POLICY = "policy.toml"
"""Policy that `up` was given, stored among the run's private files."""

PATIENCE_SECONDS = 30.0
"""Seconds that a client waits for its admission, before any time per key."""

SECONDS_A_KEY = 3.0
"""Further seconds for each key, because keys are registered one after the other."""


def helper_homes(config: RunConfig, home: Path) -> dict[str, Path]:
    """Return name -> folder of each helper of a run; none without trust `helpers`."""
    number = config.secure_sums.helpers if config.privacy.trust == "helpers" else 0
    return {name: home / name for name in (f"helper-{k}" for k in range(1, number + 1))}


OPEN = 'allow-counts = "summed"\nmin-sum = 2\n'
"""Policy of clients of own data without a policy file: they share sums among themselves."""


def pin_helpers(homes: Mapping[str, Path], policy: Path | None, target: Path, unset: str = "") -> Path:
    """Write a policy of clients that also pins the helpers; one with own pins stays as it is.

    Missing keys of helpers are created. `unset` is the text of a policy that the owner did not give.
    """
    text = policy.read_text("utf-8") if policy else unset
    if policy and "helpers" in tomllib.loads(text):
        return policy
    for path in (home / "node.key" for home in homes.values()):
        if not path.exists():
            make_node_key(path)
    keys = {name: load_public_key(public_path(home / "node.key")) for name, home in homes.items()}
    pins = "".join(f'{name} = "{fingerprint(key)}"\n' for name, key in keys.items())
    write_file(target, f"{text}\n[helpers]\n{pins}".encode(), mode=0o600, overwrite=True)
    return target


@dataclass(frozen=True)
class LocalClients:
    """Clients on this machine, ready to start.

    Their partitions are there if they were read here.
    """

    config: RunConfig
    home: Path
    specs: Sequence[ClientSpec]
    policy: Path | None
    partitions: Sequence[AnyDataset] = ()

    @property
    def helpers(self) -> dict[str, Path]:
        """Name -> folder of each helper."""
        return helper_homes(self.config, self.home)

    @property
    def server(self) -> Path:
        """Folder of the server's private files."""
        return self.home / "server"

    def measure(self, result: Result, *, alone: bool, device: str = "cpu") -> Result:
        """Return the result with what its clients measured here, and the comparison with each alone."""
        from common.config.parse import is_comparable
        from deploy.federation.compare import read_measured, with_alone, with_local_metrics

        measured = read_measured(self.specs, self.config.run_id)
        described = describe_device(device, solves=self.config.capabilities.closed_form)
        result = replace(with_local_metrics(result, measured), device=described)
        if not (alone and self.partitions and is_comparable(self.config)):
            return result
        return with_alone(result, self.config, self.partitions, measured, device)

    def start(
        self, processes: Processes, server: str, device: str, load: Callable[[str], object] = lambda task: None
    ) -> list[Path]:
        """Start all clients and helpers, and return the files of their public keys; `load` imports a task."""
        load(self.config.task)
        policy, patience = self.policy, PATIENCE_SECONDS + SECONDS_A_KEY * (len(self.specs) + len(self.helpers))
        ca = self.server / "ca.pem"
        if self.helpers and (policy or not is_demo(self.specs[0].data)):  # else clients pin them at first contact
            unset = OPEN if self.config.has_closed_form else ""
            policy = pin_helpers(self.helpers, policy, self.home / PINNED, unset)
        return [
            *(federation.start_helper(processes, home, server, ca, patience) for home in self.helpers.values()),
            *(federation.start_client(processes, spec, server, ca, policy, patience, device) for spec in self.specs),
        ]


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
    resolved = resolve(request, {**decided, "federation.min-clients": clients}, helpers=True)
    config, catalogue = name_vocabulary(resolved, catalogue)
    await_room_in(LOCAL.resolve(), runs_folder())
    home = (LOCAL / "up" / config.run_id).resolve()
    if request.resume and policy is None and (home / POLICY).exists():
        policy = home / POLICY  # the owner's policy outlives a pause
    limits = read_policy(policy)
    data, dialect, root = with_test(config.task, source.data, test), source.dialect, PARTITIONS.resolve()
    partitions: Sequence[AnyDataset] = ()
    if request.resume:
        specs = stored_clients(home)
        set_again = {
            "--data": source.data != "demo",
            "--test": bool(test),
            "--clients": clients not in (None, len(specs)),
        }
        if given := [name for name, is_set in set_again.items() if is_set]:
            raise refusal(config.run_id, given[0], f"its own {count(len(specs), 'client')} and their data")
        origin = origin_of(runs_folder() / config.run_id)  # names all partitions, also that of a forgotten client
        require_one_budget(config, limits, specs[0].source, origin.clients if origin else len(specs), root)
        with_catalogue(config, catalogue)
    else:
        data, clients = repeat_partition(request.config, "up", data, clients)
        if source.scheme and is_demo(data):
            raise ConfigError(
                f"--partition {source.scheme} needs data that were read, and demo clients of `fedloom up` generate their"
                " own; use fedloom simulate, or --data"
            )
        partitions = _partition(config, request, source, data, clients, catalogue)
        decided = {**decided, "federation.min-clients": len(partitions)}
        resolved = resolve(request, decided, _of_few(config, request, len(partitions)), helpers=True)
        config = resolved.model_copy(update={"run_id": config.run_id, "catalogue": config.catalogue})
        require_one_budget(config, limits, data, len(partitions), root)
        specs = write_clients(config.task, data, partitions, home, root, dialect)
        config = _record(config, request, "up", data, partitions, len(partitions), home, source.scheme)
        remember_source(home, replace(source, data=data))
    if policy and policy != home / POLICY:
        write_file(home / POLICY, policy.read_bytes(), mode=0o600, overwrite=True)
    return LocalClients(config, home, specs, policy, partitions)


def prepare_simulation(
    request: RunRequest, source: DataRequest, test: str, clients: int | None, catalogue: Path | None
) -> tuple[RunConfig, Sequence[AnyDataset], RunSource]:
    """Return the configuration of a simulation, each client's partition of the data, and their source.

    Raises:
        ConfigError: An option is wrong, or does not fit the run that is resumed.
        DataError: The data cannot be read or partitioned.
    """
    has_noise, decided = request.epsilon is not None, {"federation.min-clients": 1, "federation.wait": 1}
    config, catalogue = name_vocabulary(resolve(request, decided, helpers=has_noise), catalogue)
    await_room_in(LOCAL.resolve(), runs_folder())
    data, dialect = with_test(config.task, source.data, test), source.dialect
    if request.resume:
        folder = RunDirectory(runs_folder(), config.run_id)
        given = read_catalogue(config.task, catalogue)
        vocabulary = run_vocabulary(folder, config.task, given) if given or config.catalogue != FEDERATED else None
        data, clients = run_partition(folder, data, clients)
        scheme = stored_scheme(folder, source.scheme)
        partitions = partition_source(config.task, data, vocabulary, clients or 0, dialect, scheme=scheme)
    else:
        data, clients = repeat_partition(request.config, "simulate", data, clients)
        scheme = source.scheme
        partitions = _partition(config, request, source, data, clients or 0, catalogue)
        resolved = resolve(request, decided, _of_few(config, request, len(partitions)), helpers=has_noise)
        config = resolved.model_copy(update={"run_id": config.run_id, "catalogue": config.catalogue})
        home = (LOCAL / "simulate" / config.run_id).resolve()
        config = _record(config, request, "simulate", data, partitions, clients or 0, home, scheme)
        remember_source(home, replace(source, data=data))
    console.print(f"run [bold]{config.run_id}[/]: {count(len(partitions), 'client')} in this process", soft_wrap=True)
    fields = resolve_source(data), clients or 0, dialect.to_fields(), str(scheme or "")
    return config, partitions, RunSource(config.task, *fields)


def _of_few(config: RunConfig, request: RunRequest, clients: int) -> dict[str, Scalar]:
    """Return the smallest sum of few clients of one owner, where the command itself chose helpers."""
    is_few = config.privacy.trust == "helpers" and request.helpers is None and clients < config.secure_sums.min_sum
    return {"secure-sums.min-sum": max(2, clients)} if is_few else {}


def _partition(
    config: RunConfig, request: RunRequest, source: DataRequest, data: str, clients: int | None, catalogue: Path | None
) -> Sequence[AnyDataset]:
    """Return each client's partition of a new run's data, read under the vocabulary that the options name."""
    if config.catalogue == FEDERATED and is_demo(data):
        raise ConfigError("--catalogue federated does not apply to demo data, whose names are public; set --data")
    named = Path(config.catalogue) if request.config and config.catalogue not in ("demo", FEDERATED) else None
    fewest = max(DEFAULT_CLIENTS, config.secure_sums.fewest if config.privacy.trust == "helpers" else 0)
    vocabulary, dialect = read_catalogue(config.task, catalogue or named), source.dialect
    if config.start_from:
        vocabulary = extended_vocabulary(config, vocabulary or read_all(config.task, data, dialect=dialect).vocabulary)
    scheme = source.scheme
    return partition_source(config.task, data, vocabulary, clients, dialect, fewest=fewest, scheme=scheme)


def _record(
    config: RunConfig,
    request: RunRequest,
    command: Command,
    data: str,
    partitions: Sequence[AnyDataset],
    clients: int,
    home: Path,
    scheme: Scheme | None,
) -> RunConfig:
    """Store the origin of a new run and, below `home`, its vocabulary; print notes and warnings.

    Raises:
        ConfigError: The clients are too few for secure sums.
        DataError: No client has a record to train on.
    """
    fewest, network = config.secure_sums.fewest, TASKS[config.task].network.get("method")
    instead = f", or train a network by --method {network}" if network and config.capabilities.closed_form else ""
    if config.privacy.trust == "helpers" and len(partitions) < fewest:
        raise ConfigError(
            f"a masked sum needs {count(fewest, 'client')}, the data make {len(partitions)};"
            f" raise --clients or set secure-sums.min-sum{instead}"
        )
    for line in (*notes(partitions), *warnings(config, partitions)):
        note(f"{data}: {line}")
    for line in without_effect(request, config):
        note(line)
    is_whole_demo = data == "demo"  # it has records; a learner would load PyTorch
    if not is_whole_demo and not any(build_learner(config, part).examples for part in partitions):
        raise DataError("no client has a record to train on; add records to the data", data)
    if not is_demo(data) and config.catalogue != FEDERATED:
        vocabulary = home / "catalogue.json"
        write_file(vocabulary, partitions[0].vocabulary.to_json().encode(), overwrite=True)
        config = config.model_copy(update={"catalogue": str(vocabulary)})
    markets, name = unit_names(config.task, partitions), str(scheme or "")
    remember(runs_folder() / config.run_id, command, data, clients, markets, name)
    return config
