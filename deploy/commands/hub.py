"""Hub of `fedloom join`: several clients in one process."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from client.app import open_session
from client.data.read import read_partition
from client.data.sources import is_demo, resolve_source
from client.hub import Hub
from client.journal import RequestJournal
from client.owner.hub_view import HubView
from client.session import Session
from client.settings import ClientSettings
from client.training.cohort_size import TOGETHER, choose_cohort
from common.config.parse import parse
from common.errors import ConfigError, DataError, NothingYetError
from common.node_keys import default_name, fingerprint
from common.node_names import check_name
from common.tasks.registry import FIRST_TASK
from common.text import count
from deploy.budget_checks import check_partitioning, require_unpartitioned
from deploy.cli.options import DataRequest
from deploy.cli.output import note
from deploy.commands.hub_clients import FILE, HostedData, partition_clients, read_clients
from deploy.commands.join import ClientRequest, PolicyRequest, ServerRequest
from deploy.commands.policy_terms import store_limits
from deploy.commands.resident import Node, serve_node
from deploy.hub_workers import HubWorkers
from deploy.keys import load_private_key
from deploy.partitioning import PARTITIONS, Partitioning


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
