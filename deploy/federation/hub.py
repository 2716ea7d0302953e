"""Hub of `fedloom join`: several clients in one process, or trained in several.

They are those of a folder with `clients.toml`, or partitions of one source.
"""

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from client.app import open_session
from client.data.dataset import TEST_MARK, is_demo, resolve_source
from client.data.read import demo_partition, find_own_tables, partition_read, read_all, read_partition
from client.data.tables.schema import Dialect
from client.device import require_processor
from client.hub.hub import Cohort, Hub
from client.hub.view import HubView
from client.owner.control import OwnerControl
from client.owner.journal import RequestJournal
from client.owner.policy import find_looser, read_policy
from client.session import Session
from client.settings import ClientSettings
from client.training.local_round import train
from client.training.participant import TOGETHER, choose_cohort
from common.config.parse import parse
from common.errors import ConfigError, DataError, FedloomError, NothingYetError
from common.methods.base import MethodOptions
from common.node_names import check_name, default_name, fingerprint
from common.tasks.registry import FIRST_TASK
from common.text import count, printable
from common.wire.messages import TrainReply
from deploy.cli.options import CLIENTS_FILE, ClientRequest, DataRequest, PolicyRequest, ServerRequest
from deploy.cli.output import note
from deploy.data.budgets import check_partitioning, require_unpartitioned
from deploy.data.partitions import PARTITIONS, Partitioning
from deploy.federation.agreement import Agreements
from deploy.federation.client import configure, serve_node
from deploy.federation.helper import with_room
from deploy.keys.nodes import load_private_key
from deploy.simulation.blocks import STATE_VECTORS
from deploy.simulation.workers import TrainedBlock, train_apart


def train_in_copies(
    workers: int, options: MethodOptions, cohorts: Sequence[Cohort]
) -> Iterator[Sequence[TrainReply | FedloomError]]:
    """Train all cohorts in copies of this process; return the outcomes of each.

    The results do not depend on the number of copies. When outcomes are taken, the states of their clients are in this process.

    Raises:
        RunError: A copy has ended without a result; no state has changed.
    """
    participants = [[participant for _, participant in cohort] for cohort in cohorts]
    for participant in (one for cohort in participants for one in cohort):
        participant.store.load(participant.run)  # a copy must not be the first to open a file,
        participant.batch()  # and what it computed once for all rounds would end with it

    def train_block(number: int) -> TrainedBlock:
        replies = train(options, participants[number])
        return TrainedBlock(replies, [0] * len(replies), {})

    model = sum(a.nbytes for a in participants[0][0].request.model.values())
    # new memory for each request: states of the last one stay whole if a copy ends early
    trained = train_apart(workers, participants, train_block, STATE_VECTORS * model)
    return (block.replies for block in trained)


Answers = Annotated[tuple[Literal["sums", "replies"], ...], Field(min_length=1)]


class Defaults(BaseModel):
    """Settings of all clients of a hub.

    Args:
        policy: Policy file of the clients that name none.
        locked: True if a client's own policy, or answer, must not allow more.
        answer: Forms in which updates may leave the hub, for clients that name none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: str = ""
    locked: bool = False
    answer: Answers = ("sums", "replies")


class Entry(BaseModel):
    """Client in the file.

    Args:
        data: Data of the client, relative to the folder.
        policy: Its policy file, relative to the folder; empty for the default one.
        answer: Forms in which its update may leave the hub: `sums` with other clients, single `replies`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    policy: str = ""
    answer: Answers | None = None


class ClientsFile(BaseModel):
    """Content of `clients.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    defaults: Defaults = Defaults()
    clients: dict[str, Entry] = Field(min_length=1)


@dataclass(frozen=True)
class HostedData:
    """Data of a client of a hub.

    Args:
        name: Name of the client at the hub.
        data: Source of its data.
        policy: Its policy file; None for the hub's own.
        state: Folder of its private state; None for the hub's own.
        is_own: True if the data are an owner's table, False if they were written here.
        sums_only: True if its update may leave the hub inside sums alone.
    """

    name: str
    data: str
    policy: Path | None = None
    state: Path | None = None
    is_own: bool = True
    sums_only: bool = False


def read_clients(folder: Path) -> list[HostedData]:
    """Return the clients that the file in a folder names.

    Raises:
        ConfigError: The file is malformed, or leads out of the folder.
    """
    path = folder / CLIENTS_FILE
    try:
        found = ClientsFile.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    hosted = []
    for name, entry in found.clients.items():
        policy = entry.policy or found.defaults.policy
        data = TEST_MARK.join(str(_inside(folder, part)) for part in entry.data.split(TEST_MARK))
        source = entry.data if is_demo(entry.data) else data
        answer = found.defaults.answer if entry.answer is None else entry.answer
        client = HostedData(check_name(name), source, _inside(folder, policy) if policy else None)
        hosted.append(replace(client, sums_only="replies" not in answer))
        if found.defaults.locked and entry.policy:
            _check_locked(folder, name, _inside(folder, policy), found.defaults.policy)
        if found.defaults.locked and not {*answer} <= {*found.defaults.answer}:
            raise ConfigError(f"{path}: clients.{name}: answer allows more than the locked one; remove it, or locked")
    return hosted


def _check_locked(folder: Path, name: str, client_policy: Path, default: str) -> None:
    """Check that a client's policy allows no more than the locked one.

    Raises:
        ConfigError: It does; names the client and the keys.
    """
    locked = read_policy(_inside(folder, default) if default else None)
    if looser := find_looser(read_policy(client_policy), locked):
        raise ConfigError(
            f"{folder / CLIENTS_FILE}: clients.{name}: {client_policy.name} allows more than the locked policy"
            f" ({', '.join(looser)}); make it stricter, or remove locked"
        )


def partition_clients(task: str, data: str, clients: int, dialect: Dialect) -> list[HostedData]:
    """Return clients with a partition of a source each, as `fedloom up` makes them; 0 clients: one a unit.

    Raises:
        DataError: The data cannot be read, or have fewer units than clients.
    """
    partitions = partition_read(task, data, read_all(task, data, dialect=dialect), clients, dialect)
    names = [f"client-{k}" for k in range(len(partitions))]
    if is_demo(data):
        return [HostedData(name, demo_partition(task, data, (k, len(partitions)))) for k, name in enumerate(names)]
    partitioning = Partitioning(PARTITIONS, task, resolve_source(data), len(partitions))
    owned, state = {table.resolve() for table in find_own_tables(task, data)}, partitioning.state.resolve()
    tables = partitioning.write(partitions)
    return [
        HostedData(name, str(table), state=state, is_own=table in owned)
        for name, table in zip(names, tables, strict=True)
    ]


def _inside(folder: Path, name: str) -> Path:
    """Return a path in the folder.

    Raises:
        ConfigError: The path, or a link, leads out of it.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{folder / CLIENTS_FILE}: '{printable(name, 80)}' leads out of the folder; move the file into it"
        )
    return path


@dataclass(frozen=True)
class HubRequest:
    """Options of a hub.

    Its name is the first part of its clients' names. Without a number of clients, the folder of the data names them.
    """

    source: DataRequest
    client: ClientRequest
    limits: PolicyRequest
    clients: int | None
    workers: int = 1

    @property
    def task(self) -> str:
        """Task of the data."""
        return parse({"task": self.client.task or FIRST_TASK}).task


def serve_hub(at: ServerRequest, request: HubRequest) -> None:
    """Answer the server for all clients until a signal, or the operator's `fedloom leave`, stops the hub.

    Raises:
        ConfigError: An option is wrong, or no client is left.
        DataError: The data cannot be read.
    """
    torch.set_num_threads(1)
    if request.workers > 1:
        require_processor(request.client.device)
    key = load_private_key(at.key) if at.key else None
    name = request.client.name or (default_name(fingerprint(key.public_key())) if key else "")
    if not name:
        raise ConfigError("a hub needs a name, the first part of its clients' names; give --name or --key")
    hosted = read_hosted(request)
    sessions = open_sessions(at, check_name(name), request, hosted)
    sums_only = {f"{name}/{one.name}" for one in hosted if one.sums_only} & sessions.keys()
    if sums_only and len(sessions) == 1:
        raise ConfigError(f"one client is no sum; add another one to {CLIENTS_FILE}, or 'replies' to its answer")
    note(
        f"hub {name} with {count(len(sessions), 'client')}: this process reads the data of all of them and hosts their"
        " ledgers; nothing here protects them from its operator"
    )
    together = TOGETHER if sums_only else choose_cohort(len(sessions))
    hub = Hub(sessions, together, sums_only, partial(train_in_copies, request.workers) if request.workers > 1 else None)
    state = request.client.state_dir.resolve()

    def observe(control: OwnerControl) -> HubView:
        return HubView(at.server, name, hub, RequestJournal(state), control)

    serve_node(at, name, state, key, with_room(lambda message, context: hub.respond(message), state), observe)


def read_hosted(request: HubRequest) -> list[HostedData]:
    """Return the clients of the hub: those that its folder names, or partitions of its table."""
    source = request.source
    if request.clients is None:
        return read_clients(Path(source.data))
    return partition_clients(request.task, source.data, request.clients, source.dialect)


def open_sessions(at: ServerRequest, hub: str, request: HubRequest, hosted: Sequence[HostedData]) -> dict[str, Session]:
    """Return the clients whose data can be read, by their public names; print why others are left out."""
    agreements = Agreements(at)
    task, data = request.task, request.source.data
    sessions: dict[str, Session] = {}
    for one in hosted:
        source = replace(request.source, data=one.data) if one.is_own else DataRequest(one.data)
        client = replace(request.client, state_dir=one.state or request.client.state_dir)
        limits = replace(request.limits, policy=one.policy or request.limits.policy)
        _, settings = configure(at, source, client, limits, one.name, hub)
        try:
            session = open_session(settings)
            _check_budget(settings, session, task, data, request.clients and len(hosted))
            _read(task, settings)
            agreements.settle(settings, session.policy)
        except DataError as error:
            note(f"{settings.public_name} is left out: {error}")
        else:
            sessions[settings.public_name] = session
    if not sessions:
        raise ConfigError("no client of this hub is left; correct the data above")
    return sessions


def _check_budget(settings: ClientSettings, session: Session, task: str, data: str, clients: int | None) -> None:
    """Refuse data whose budget other clients have spent."""
    if not session.policy.require_noise and not math.isfinite(session.policy.max_epsilon):
        return
    if clients is None:
        require_unpartitioned(PARTITIONS, settings.data)
    elif not is_demo(data):
        check_partitioning(Partitioning(PARTITIONS, task, resolve_source(data), clients))


def _read(task: str, settings: ClientSettings) -> None:
    """Read the data once, so that faults show before the first connection."""
    try:
        part = read_partition(task, settings.data, settings.part, settings.data_seed, dialect=settings.dialect)
    except NothingYetError as error:  # a client without records takes part with the shared model
        note(f"{settings.public_name}: {error}")
    else:
        for line in part.notes:
            note(f"{settings.public_name}: {line}")
