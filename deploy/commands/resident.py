"""Client of `fedloom join`: settings from the command line, data, and service until a signal.

A client that waits has no PyTorch. Its first request imports it.
"""

import logging
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from client.checks import check_client
from client.data.child_reader import read_partition_apart
from client.data.read import with_test
from client.helper.app import help_too
from client.helper.book import open_book
from client.helper.desk import Desk
from client.journal import RequestJournal
from client.node import resident
from client.node.failures import Server
from client.node.observer import Observer
from client.node.place import Place
from client.node.replies import refusals
from client.owner.control import OwnerControl, RunningClient
from client.owner.view import OwnerView
from client.settings import ClientSettings
from common.config.parse import parse
from common.errors import ConfigError, NothingYetError
from common.node_keys import default_name, fingerprint
from common.node_names import check_name
from common.options import Scalar
from common.tasks.registry import FIRST_TASK
from deploy.budget_checks import require_unpartitioned
from deploy.cli.options import DataRequest
from deploy.cli.output import note
from deploy.commands.first_request import respond, session_of
from deploy.commands.join import NEWCOMER, ClientRequest, PolicyRequest, ServerRequest
from deploy.commands.policy_terms import store_limits
from deploy.files import read_file
from deploy.keys import load_private_key
from deploy.partitioning import PARTITIONS


@dataclass(frozen=True)
class OpenClient:
    """Client with checked settings and data.

    Args:
        settings: Its settings.
        config: The same as a node's configuration.
        key: Its private key; None for a client without one.
    """

    settings: ClientSettings
    config: dict[str, Scalar]
    key: ec.EllipticCurvePrivateKey | None


def open_client(
    at: ServerRequest, source: DataRequest, client: ClientRequest, limits: PolicyRequest, test: str, adapt: str
) -> OpenClient:
    """Return the client, with its policy written; print notes about its data.

    Raises:
        ConfigError: An option is wrong, or partitions of these data have spent their budget.
        DataError: The data cannot be read.
    """
    key = load_private_key(at.key) if at.key else None
    name = client.name or (default_name(fingerprint(key.public_key())) if key else "") or (NEWCOMER if adapt else "")
    task = _task_of_run(adapt, client.task) if adapt else parse({"task": client.task or FIRST_TASK}).task
    config = _node_config(with_test(task, source.data, test), source, client, name, limits.policy)
    settings = ClientSettings.from_node(config, name)
    if limits.methods or limits.epsilon is not None or limits.delta is not None:
        config["policy"] = str(store_limits(settings, limits.methods or [], limits.epsilon, limits.delta))
        settings = ClientSettings.from_node(config, name)
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    policy = check_client(settings).policy  # fails at once if policy or state are wrong, and the next lines if data are
    if at.server and (policy.require_noise or math.isfinite(policy.max_epsilon)):
        require_unpartitioned(PARTITIONS, settings.data)
    try:
        part = read_partition_apart(task, settings.data, settings.part, settings.data_seed, dialect=settings.dialect)
        for line in part.notes:
            note(f"{source.data}: {line}")
    except NothingYetError as error:  # a client without records takes part with the shared model
        note(str(error))
    return OpenClient(settings, config, key)


@dataclass(frozen=True)
class Node:
    """Node that answers a server.

    Args:
        name: Public name.
        state: Folder of private state.
        key: Private key; None for a node without one.
        app: Function that answers messages.
        config: Node configuration.
    """

    name: str
    state: Path
    key: ec.EllipticCurvePrivateKey | None
    app: resident.Answer
    config: Mapping[str, Scalar] = field(default_factory=dict)


def serve_requests(at: ServerRequest, client: OpenClient) -> None:
    """Answer the server until a signal, or the owner's `fedloom leave`, stops the client."""
    settings = client.settings
    journal = RequestJournal(settings.state_dir)
    with _open_app(client) as answers:
        serve_node(
            at,
            Node(settings.name, settings.state_dir, client.key, answers, client.config),
            lambda control: OwnerView(at.server, settings.name, journal, control, session_of),
        )


@contextmanager
def _open_app(client: OpenClient) -> Iterator[resident.Answer]:
    """Yield the client's app; with `serve-as-helper` it also helps.

    Raises:
        ConfigError: The client has no key.
    """
    settings, key = client.settings, client.key
    if not check_client(settings).policy.serve_as_helper:
        yield respond
        return
    if key is None:
        raise ConfigError("serve-as-helper = true needs the node's key, by which clients know their helpers; use --key")
    name = check_name(f"{settings.name}-helper")
    with closing(open_book(settings.state_dir / settings.name / "helper")) as book:
        yield help_too(Desk(name, key, book, serves="also"), respond)


def serve_node(at: ServerRequest, node: Node, observe: Callable[[OwnerControl], Observer]) -> None:
    """Answer the server by a node until a signal, or the owner's `fedloom leave`, stops it."""
    ca = read_file(at.ca) if at.ca else b""
    stop = threading.Event()
    resident.leave_on_signals(stop)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)
    logging.getLogger("flwr").setLevel(logging.WARNING)
    refusals.setLevel(logging.CRITICAL)  # the owner's log has a line for each
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with OwnerControl(node.state, RunningClient(os.getpid(), node.name, at.server, started)) as control:
        if not control.is_alone:
            note(f"another client '{node.name}' runs in {node.state}; give each client its own --state-dir")
        is_known = control.is_alone and node.key is not None
        place = Place(node.state / f"{node.name or 'client'}.node" if is_known else None)
        server, observer = Server(at.server, ca, node.key, place), observe(control)
        resident.run_resident(
            node.app, server, stop=stop, node_config=node.config, patience=at.patience, observer=observer
        )


def _task_of_run(run: str, task: str) -> str:
    from deploy.commands.adapt import task_of

    return task_of(run, task)


def _node_config(
    data: str, source: DataRequest, client: ClientRequest, name: str, policy: Path | None
) -> dict[str, Scalar]:
    _ = source.dialect  # fails at once if an option is wrong
    config: dict[str, Scalar] = {
        "data": data,
        "columns": "\n".join(source.columns or []),
        "decimal": source.decimal,
        "dates": source.dates,
        "shard": client.shard,
        "name": name,
        "state-dir": str(client.state_dir.resolve()),
    }
    config |= {"policy": str(policy.resolve())} if policy else {}
    return config | ({"ledgers": str(client.ledgers.resolve())} if client.ledgers else {})
