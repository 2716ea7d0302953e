"""Hub of `fedloom join`: several clients in one process, or trained in several."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from client.app import open_session
from client.data.dataset import is_demo, resolve_source
from client.data.read import read_partition
from client.hub.hub import Cohort, Hub
from client.hub.view import HubView
from client.owner.journal import RequestJournal
from client.session import Session
from client.settings import ClientSettings
from client.training.local_round import train
from client.training.participant import TOGETHER, choose_cohort
from common.config.parse import parse
from common.errors import ConfigError, DataError, FedloomError, NothingYetError
from common.methods.base import MethodOptions
from common.node_names import check_name, default_name, fingerprint
from common.tasks.registry import FIRST_TASK
from common.text import count
from common.wire.messages import TrainReply
from deploy.cli.options import ClientRequest, DataRequest, PolicyRequest, ServerRequest
from deploy.cli.output import note
from deploy.data.budgets import check_partitioning, require_unpartitioned
from deploy.data.partitions import PARTITIONS, Partitioning
from deploy.federation.client import Node, serve_node, store_limits
from deploy.federation.hub_clients import FILE, HostedData, partition_clients, read_clients
from deploy.keys.nodes import load_private_key
from deploy.simulation.blocks import STATE_VECTORS
from deploy.simulation.workers import TrainedBlock, Workers


class HubWorkers:
    """Copies of a hub's process, made anew for each request; the results do not depend on their number.

    Args:
        count: Number of processes.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(
        self, options: MethodOptions, cohorts: Sequence[Cohort]
    ) -> Iterator[Sequence[TrainReply | FedloomError]]:
        """Train all cohorts, then return the outcomes of each.

        When outcomes are taken, the states of their clients are in this process.

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
        trained = Workers(self._count).train_each(participants, train_block, STATE_VECTORS * model)
        return (block.replies for block in trained)


@dataclass(frozen=True)
class HubRequest:
    """Options of a hub.

    Args:
        source: Data of all clients.
        client: The hub as a client; its name is the first part of its clients' names.
        limits: Limits that hold for each client.
        clients: Number of partitions; None if the folder names the clients.
        workers: Number of processes that train.
    """

    source: DataRequest
    client: ClientRequest
    limits: PolicyRequest
    clients: int | None
    workers: int = 1


def serve_hub(at: ServerRequest, request: HubRequest) -> None:
    """Answer the server for all clients until a signal, or the operator's `fedloom leave`, stops the hub.

    Raises:
        ConfigError: An option is wrong, or no client is left.
        DataError: The data cannot be read.
    """
    torch.set_num_threads(1)
    key = load_private_key(at.key) if at.key else None
    name = request.client.name or (default_name(fingerprint(key.public_key())) if key else "")
    if not name:
        raise ConfigError("a hub needs a name, the first part of its clients' names; give --name or --key")
    hosted = read_hosted(request)
    sessions = open_sessions(check_name(name), request, hosted)
    sums_only = {f"{name}/{one.name}" for one in hosted if one.sums_only} & sessions.keys()
    if sums_only and len(sessions) == 1:
        raise ConfigError(f"one client is no sum; add another one to {FILE}, or 'replies' to its answer")
    note(
        f"hub {name} with {count(len(sessions), 'client')}: this process reads the data of all of them and hosts their"
        " ledgers; nothing here protects them from its operator"
    )
    together = TOGETHER if sums_only else choose_cohort(len(sessions))
    hub = Hub(sessions, together, sums_only, HubWorkers(request.workers) if request.workers > 1 else None)
    state = request.client.state_dir.resolve()
    serve_node(
        at,
        Node(name, state, key, lambda message, context: hub.respond(message)),
        lambda control: HubView(at.server, name, hub, RequestJournal(state), control),
    )


def read_hosted(request: HubRequest) -> list[HostedData]:
    """Return the clients of the hub: those that its folder names, or partitions of its table."""
    source = request.source
    if request.clients is None:
        return read_clients(Path(source.data))
    return partition_clients(_task(request), source.data, request.clients, source.dialect)


def open_sessions(hub: str, request: HubRequest, hosted: Sequence[HostedData]) -> dict[str, Session]:
    """Return the clients whose data can be read, by their public names; print why others are left out."""
    task, source, clients = _task(request), request.source, request.clients
    sessions: dict[str, Session] = {}
    for one in hosted:
        settings = _settings(hub, one, request)
        try:
            session = open_session(settings)
            _check_budget(settings, session, task, source.data, clients and len(hosted))
            _read(task, settings)
        except DataError as error:
            note(f"{settings.public_name} is left out: {error}")
        else:
            sessions[settings.public_name] = session
    if not sessions:
        raise ConfigError("no client of this hub is left; correct the data above")
    return sessions


def _task(request: HubRequest) -> str:
    return parse({"task": request.client.task or FIRST_TASK}).task


def _settings(hub: str, one: HostedData, request: HubRequest) -> ClientSettings:
    client, limits, source = request.client, request.limits, request.source
    state = (one.state or client.state_dir).resolve()
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    policy = one.policy or limits.policy
    settings = ClientSettings(
        data=one.data,
        columns="\n".join(source.columns or []) if one.is_own else "",
        decimal=source.decimal if one.is_own else "auto",
        dates=source.dates if one.is_own else "auto",
        name=one.name,
        hub=hub,
        state_dir=state,
        ledgers=client.ledgers.resolve() if client.ledgers else None,
        policy=policy.resolve() if policy else None,
    )
    if limits.methods or limits.epsilon is not None or limits.delta is not None:
        stricter = store_limits(settings, limits.methods or [], limits.epsilon, limits.delta)
        return settings.model_copy(update={"policy": stricter})
    return settings


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
